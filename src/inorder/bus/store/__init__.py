"""Where a URL leads: one file a broker."""

from __future__ import annotations

from collections.abc import Callable

from inorder.bus.store.broker import Broker
from inorder.bus.store.memory import MemoryBroker
from inorder.bus.store.sqlite.broker import SqliteBroker
from inorder.core.errors import Misuse

SCHEMES: dict[str, Callable[[str, float], Broker]] = {
    "memory": MemoryBroker,
    "sqlite": SqliteBroker,
}


def broker_at(url: str, wait_s: float) -> Broker:
    """The broker a URL names; no answer of it takes longer than about `wait_s`."""
    scheme, colon, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not colon or scheme not in SCHEMES:
        known = " or ".join(f"{name}://" for name in SCHEMES)
        raise Misuse(f"{url!r} leads to no broker: a URL begins with {known}")
    return SCHEMES[scheme](rest, wait_s)
