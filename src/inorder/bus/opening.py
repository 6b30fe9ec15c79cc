"""A subscription that has been described but not begun: enter it, or await it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from inorder.bus.subscription import Subscription

if TYPE_CHECKING:
    from inorder.bus.bus import Bus


class Opening:
    """What `subscribe` was asked for; entering it subscribes, leaving it unsubscribes."""

    def __init__(
        self,
        bus: Bus,
        topics: tuple[str, ...],
        where: str | None,
        parameters: Mapping[str, Any],
        guarantee: str | None,
        order: Mapping[str, Any] | None,
        replay: str | int | Mapping[str, int] | None,
        name: str | None,
        type: type | None,
        idle: float | None,
    ) -> None:
        self.topics = tuple(sorted({*topics}))
        self.where = where
        self.parameters = parameters
        self.guarantee = guarantee
        self.order = order
        self.replay = replay
        self.name = name
        self.type = type
        self.idle = idle
        self._bus = bus
        self._open: Subscription | None = None

    async def __aenter__(self) -> Subscription:
        self._open = await self._bus.subscribed(self)
        return self._open

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open is not None:
            await self._open.close()

    def __await__(self) -> Generator[Any, None, Subscription]:
        """`events = await bus.subscribe(...)`, for those who close it themselves."""
        return self._bus.subscribed(self).__await__()
