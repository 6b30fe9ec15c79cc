"""What networks hand over, as rows: each event of a message with its stamp as text."""

from __future__ import annotations

from typing import Any

from inorder.core.event import Event
from inorder.guarantee import none
from inorder.protocols.fifo import header
from inorder.protocols.total.messages import Events
from inorder.protocols.total.stamp import text_of, with_own


def stamped(message: Any) -> list[tuple[Event, str]]:
    """The events of a message of any guarantee; none if it carries none."""
    if isinstance(message, Events):
        stamps = [
            with_own(message.stamp, message.topic, number)
            for number in range(message.first, message.first + len(message.events))
        ]
        texts = [text_of(message.epoch, stamp) for stamp in stamps]
        return list(zip(message.events, texts, strict=True))
    if isinstance(message, header.Published):
        return [(message.event, header.text_of(header.unpack(message.header)))]
    if isinstance(message, none.Published):
        return [(message.event, "{}")]
    return []
