"""A place to go on from, as short text: what programs store.

`event.cursor` says: done up to and with this event. It names the order (over one log: the log), the
position, what the past below it looks like (`digest`, over one log its mark), and the record with
which the subscription was `born` (over one log 0). So a cursor of another file, or of a file whose
tail was lost and has grown again, is refused instead of going on at a wrong place.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec
from msgspec import Struct

from inorder.core.errors import Misuse

_SHAPE = 1


class Cursor(Struct, frozen=True, array_like=True, gc=False):
    order: str
    position: int
    digest: bytes
    born: int = 0
    shape: int = _SHAPE

    def __str__(self) -> str:
        return urlsafe_b64encode(_encode(self)).decode().rstrip("=")


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Cursor).decode


def parse(text: str) -> Cursor:
    """The cursor that was stored as this text.

    >>> parse(str(Cursor("2f0c", 41, b"\\x07")))
    Cursor(order='2f0c', position=41, digest=b'\\x07', born=0, shape=1)
    """
    try:
        padded = text.encode() + b"=" * (-len(text) % 4)
        cursor = _decode(urlsafe_b64decode(padded))
    except (ValueError, msgspec.MsgspecError):
        raise Misuse(f"{text[:80]!r} is no cursor") from None
    if cursor.shape != _SHAPE or cursor.position < -1 or cursor.born < 0:
        raise Misuse(f"{text[:80]!r} is a cursor of another kind than inorder knows")
    return cursor
