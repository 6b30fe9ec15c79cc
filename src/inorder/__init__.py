"""Publish/subscribe whose subscribers agree on the order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inorder.core.event import Event

if TYPE_CHECKING:
    from inorder.bus.blocking import connect_sync
    from inorder.bus.bus import connect
    from inorder.bus.parameters import Parameters

__all__ = ["Event", "Parameters", "connect", "connect_sync"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The bus is loaded when it is asked for: a Spark task needs none."""
    if name == "connect":
        from inorder.bus.bus import connect

        return connect
    if name == "connect_sync":
        from inorder.bus.blocking import connect_sync

        return connect_sync
    if name == "Parameters":
        from inorder.bus.parameters import Parameters

        return Parameters
    raise AttributeError(f"module 'inorder' has no attribute {name!r}")
