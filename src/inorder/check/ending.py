"""How a run ended: what its driver says of the last moment, kept in `trace.json`.

A judge must know whether something was still to happen. An event that nobody has delivered is lost
when the run was quiet; in a run that was cut it may only be under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isfinite
from typing import Any

import msgspec
from msgspec import Struct

from inorder.core.errors import BadTrace

# The window of a trace that names none, in seconds: a live run, or the log of another system.
WITHIN_S = 10.0


class Ending(Struct, frozen=True):
    """`quiet`: nothing was under way at `ended_at`; else `under_way` says what was, in words.

    `within` is the window: what takes no longer may still have been under way at the end.
    """

    quiet: bool
    ended_at: float
    within: float = WITHIN_S
    under_way: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The keys of `trace.json`."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def of(cls, summary: Mapping[str, Any], source: str) -> Ending | None:
        """What `trace.json` says of the end; None when it says nothing of it."""
        if "quiet" not in summary or "ended_at" not in summary:
            return None
        fields = {name: summary[name] for name in cls.__struct_fields__ if name in summary}
        try:
            ending = msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError as error:
            raise BadTrace(source, f"trace.json: {error}") from None
        if not isfinite(ending.ended_at):
            raise BadTrace(source, f"trace.json: `ended_at` is {ending.ended_at}")
        if not 0 <= ending.within < inf:
            raise BadTrace(source, f"trace.json: `within` is {ending.within:g}, no window")
        return ending


def window(ending: Ending | None, within: float | None = None) -> float:
    """The window in seconds: the one asked for, that of the run, or a default."""
    if within is not None:
        return within
    return WITHIN_S if ending is None else ending.within


def lasts_until(ending: Ending | None, latest: float) -> float:
    """Until when what was open at the end lasted: for ever if nothing was under way any more. A run
    of which nobody said how it ended was cut when the last thing happened."""
    if ending is None:
        return latest
    return inf if ending.quiet else ending.ended_at


def clocks_apart(summaries: Iterable[Mapping[str, Any]]) -> float | None:
    """How far the clocks behind some traces are apart: 0 when they say that it was one clock.

    >>> clocks_apart([{"clock": "host one"}, {"clock": "host one"}])
    0.0
    >>> clocks_apart([{"clock": "host one"}, {"clock": "host two"}]) is None
    True
    """
    clocks = [summary.get("clock") for summary in summaries]
    same = all(clock == clocks[0] for clock in clocks)
    return 0.0 if same and isinstance(clocks[0], str) else None


def others_publish(summaries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether processes that wrote none of these traces may have published, too.

    A simulated run is whole. A live one never knows: others use the same broker, and its log keeps
    what was published before.
    """
    return any(summary.get("driver") == "live" for summary in summaries)
