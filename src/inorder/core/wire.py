"""Messages and bytes: one way out, one way in.

Every message class is a msgspec Struct with a tag; a room lists its classes in one union. `decode`
is the only door for bytes from outside, and only `BadFrame` leaves it: msgspec itself raises half a
dozen kinds of error on mutated frames.
"""

from __future__ import annotations

from typing import Any

import msgspec

from inorder.core.errors import BadFrame, TooLarge
from inorder.core.limits import FRAME_BYTES_MAX

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def encode(message: Any) -> bytes:
    """The frame of a message: equal messages give equal bytes."""
    frame = _encode(message)
    if len(frame) > FRAME_BYTES_MAX:
        raise TooLarge("frame", len(frame), FRAME_BYTES_MAX)
    return frame


def size(message: Any) -> int:
    """How many bytes a message takes on a link."""
    return len(_encode(message))


class Decoder:
    """Turns frames into messages of one union of classes."""

    def __init__(self, messages: Any) -> None:
        self._decode = msgspec.msgpack.Decoder(messages).decode

    def decode(self, frame: bytes) -> Any:
        if len(frame) > FRAME_BYTES_MAX:
            raise BadFrame(f"frame of {len(frame)} bytes, the limit is {FRAME_BYTES_MAX}")
        try:
            return self._decode(frame)
        except Exception as error:
            raise BadFrame(f"not a message of ours: {error}") from None
