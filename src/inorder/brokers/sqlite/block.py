"""The rows of the file: blocks of events, chained, under sums.

| column | is                                                                                  |
|--------|-------------------------------------------------------------------------------------|
| last   | the offset of the last event                                                        |
| n      | how many offsets the block takes                                                    |
| head   | when it was stored, and its segments: a run of events each, without the values      |
| seal   | link in, link out, the sum of the body, and the sum of everything before the body   |
| body   | the segments' values, one MessagePack array behind the other                        |

A block without segments is a range that was removed. A segment without events is the beginning of
a life. The seal stands before the body: a row that is skipped for its topics is verified, too, and
its overflow pages are not touched. The link out of a row is the link into the next one; it depends
on everything before it, and stays when an event is erased.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from zlib import crc32

import msgspec
from msgspec import Struct

from inorder.brokers import runs
from inorder.core.limits import BLOCK_BYTES_MAX
from inorder.logs.broker import Run

# last, n, head, seal, body
Row = tuple[int, int, bytes, bytes, bytes]

_SEAL = struct.Struct(">8s8sII")
_PLACE = struct.Struct(">QQ")
LINK_BYTES = 8


class Segment(Struct, frozen=True, gc=False, array_like=True):
    """A run of events as it stands in a head; `size` bytes of the body are its values."""

    topic: str
    publisher: str
    epoch: int
    sequence: int
    count: int
    size: int
    published_at: float
    keys: tuple[str | None, ...] | None = None
    headers: tuple[Mapping[str, str] | None, ...] | None = None


class Head(Struct, frozen=True, gc=False, array_like=True):
    stored_at: float
    segments: tuple[Segment, ...]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Head).decode


class Unsound(Exception):
    """A row that cannot be what was written."""


def origin(identity: str) -> bytes:
    """The link into the first block of a file."""
    return blake2b(identity.encode(), digest_size=LINK_BYTES).digest()


def blocks(some: Sequence[Run], first: int, link: bytes, stored_at: float) -> list[Row]:
    """The rows that hold these events from an offset on."""
    rows: list[Row] = []
    waiting: list[Run] = []
    size = 0
    for piece in _pieces(some):
        if waiting and size + len(piece.values) > BLOCK_BYTES_MAX:
            rows.append(row(waiting, first, link, stored_at))
            first, link = rows[-1][0] + 1, link_out(rows[-1][3])
            waiting, size = [], 0
        waiting.append(piece)
        size += len(piece.values)
    rows.append(row(waiting, first, link, stored_at))
    return rows


def _pieces(some: Sequence[Run]) -> Iterator[Run]:
    for run in some:
        yield from runs.pieces(run, BLOCK_BYTES_MAX)


def row(some: Sequence[Run], first: int, link: bytes, stored_at: float, out: bytes = b"") -> Row:
    """One block that follows a link; `out` is the link out of it where it was there before."""
    segments = tuple(
        Segment(
            run.topic, run.publisher, run.epoch, run.sequence, run.count, len(run.values),
            run.published_at, run.keys, run.headers,
        )
        for run in some
    )  # fmt: skip
    body = some[0].values if len(some) == 1 else b"".join([run.values for run in some])
    n = sum([run.count or 1 for run in some])
    return sealed(first + n - 1, n, _encode(Head(stored_at, segments)), body, link, out)


def gap(first: int, end: int, link: bytes, stored_at: float) -> Row:
    """The block of a range that was removed, or never written."""
    return sealed(end - 1, end - first, _encode(Head(stored_at, ())), b"", link)


def sealed(last: int, n: int, head: bytes, body: bytes, link: bytes, out: bytes = b"") -> Row:
    """A row with its links and sums; the link out is made, or kept where a row is rewritten."""
    body_sum = crc32(body)
    place = _PLACE.pack(last, n)
    if not out:
        content = b"%b%b%d,%d" % (link, place, crc32(head), body_sum)
        out = blake2b(content, digest_size=LINK_BYTES).digest()
    links = _SEAL.pack(link, out, body_sum, 0)[:-4]
    whole = crc32(head, crc32(links, crc32(place)))
    return last, n, head, links + whole.to_bytes(4), body


def link_in(seal: bytes) -> bytes:
    return seal[:LINK_BYTES]


def link_out(seal: bytes) -> bytes:
    return seal[LINK_BYTES : 2 * LINK_BYTES]


def verify(last: object, n: object, head: object, seal: object) -> None:
    """Raise `Unsound` if these are not of a row as it was written."""
    if not (
        isinstance(last, int) and isinstance(n, int) and 0 < n <= last < 2**63
        and isinstance(head, bytes) and isinstance(seal, bytes) and len(seal) == _SEAL.size
    ):  # fmt: skip
        raise Unsound("a column of another type")
    whole = crc32(head, crc32(seal[:-4], crc32(_PLACE.pack(last, n))))
    if whole != int.from_bytes(seal[-4:]):
        raise Unsound("the sum does not match")


def verify_body(seal: bytes, body: object) -> None:
    if not isinstance(body, bytes) or crc32(body) != int.from_bytes(seal[-8:-4]):
        raise Unsound("the sum of the values does not match")


def head_of(head: bytes) -> Head:
    """The head of a verified row."""
    try:
        return _decode(head)
    except msgspec.MsgspecError as error:
        raise Unsound(f"the head is none of ours: {error}") from None


def runs_of(last: int, n: int, head: Head, body: bytes, link: bytes) -> Iterator[Run]:
    """The runs of a verified row, with the link out of it."""
    offset, at = last - n + 1, 0
    for s in head.segments:
        values = body if s.size == len(body) else body[at : at + s.size]
        yield Run(
            s.topic, s.publisher, s.epoch, s.sequence, s.count, values, s.published_at, s.keys,
            s.headers, offset, head.stored_at, link,
        )  # fmt: skip
        offset += s.count or 1
        at += s.size
