"""States and log records as bytes. Not frames: they come from our own disk and may be large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from inorder.core.errors import BadFrame

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def pack(value: Any) -> bytes:
    """Equal values give equal bytes, whatever the order in which dicts and sets grew."""
    return _encoder.encode(value)


def unpacker(kind: Any) -> Callable[[bytes], Any]:
    """The way back; bytes that are not such a value raise `BadFrame`."""
    decode = msgspec.msgpack.Decoder(kind).decode

    def unpack(frame: bytes) -> Any:
        try:
            return decode(frame)
        except Exception as error:
            raise BadFrame(f"not a state or record of ours: {error}") from None

    return unpack
