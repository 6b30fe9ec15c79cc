"""Publish/subscribe whose subscribers agree on the order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inorder.event import Event

if TYPE_CHECKING:
    from inorder.live.blocking import connect_sync
    from inorder.live.bus import connect

__all__ = ["Event", "connect", "connect_sync"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The bus is loaded when it is asked for: a Spark task needs none."""
    if name == "connect":
        from inorder.live.bus import connect

        return connect
    if name == "connect_sync":
        from inorder.live.blocking import connect_sync

        return connect_sync
    raise AttributeError(f"module 'inorder' has no attribute {name!r}")
