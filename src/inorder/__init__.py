"""Publish/subscribe whose subscribers agree on the order."""

from inorder.event import Event

__all__ = ["Event"]
__version__ = "0.1.0"
