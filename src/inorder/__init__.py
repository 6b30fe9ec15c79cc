"""Publish/subscribe whose subscribers agree on the order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inorder.bus.blocking import connect_sync
    from inorder.bus.bus import Bus, connect
    from inorder.bus.parameters import Parameters
    from inorder.bus.receipt import Change, Receipt
    from inorder.bus.subscription import Subscription
    from inorder.core import errors
    from inorder.logs.event import Event

__all__ = [
    "Bus", "Change", "Event", "Parameters", "Receipt", "Subscription", "connect", "connect_sync",
    "errors",
]  # fmt: skip
__version__ = "0.1.0"

# Where each name is; it is loaded when it is asked for: a Spark task needs none of them.
_PLACES = {
    "Bus": "bus.bus", "connect": "bus.bus", "connect_sync": "bus.blocking",
    "Subscription": "bus.subscription", "Parameters": "bus.parameters", "Change": "bus.receipt",
    "Receipt": "bus.receipt", "Event": "logs.event",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("inorder.core.errors")
    if name in _PLACES:
        return getattr(import_module(f"inorder.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'inorder' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
