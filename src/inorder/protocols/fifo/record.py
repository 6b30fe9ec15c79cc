"""The publication record: what the last k events of a publisher were about, newest first.

A receiver that misses an event looks it up in the record of a later one and learns when it departed
and whether it can concern its subscription at all ("Probabilistic FIFO Ordering in
Publish/Subscribe Networks", section III, enhanced mode). It is what keeps the wait short: far more
so than the choice of the estimator.

Layout: one byte count, one byte size of a summary, one byte number of hash functions (0: summaries
are topics, see summary.py); then per event a varint and a summary. Entry i describes the event i
before the bearer; its varint is the time to the next event in microseconds. Both are settled when
the next event is published, so the bytes of an entry never change and a record is one join.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from inorder.core.errors import BadFrame

# Bits of a number in a record: centuries of microseconds.
VARINT_BITS = 56


def varint(number: int) -> bytes:
    """Seven bits a byte, lowest first.

    >>> varint(5), varint(300)
    (b'\\x05', b'\\xac\\x02')
    """
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class RecordWriter:
    """A publisher's side: remembers the last `size` events."""

    __slots__ = ("_last", "entries", "hashes", "size", "summary_bytes")

    def __init__(self, size: int, summary_bytes: int, hashes: int) -> None:
        self.size = size
        self.summary_bytes = summary_bytes
        self.hashes = hashes
        self.entries: deque[bytes] = deque(maxlen=size)
        self._last: bytes | None = None

    def next(self, gap_us: int, summary: bytes) -> bytes:
        """The record for the next event, which departs `gap_us` after the one before it."""
        if not self.size:
            return b""
        if self._last is not None:
            self.entries.appendleft(varint(gap_us) + self._last)
        self._last = summary
        count = len(self.entries)
        if not count:
            return b""
        return bytes((count, self.summary_bytes, self.hashes)) + b"".join(self.entries)

    # For snapshots.

    def state(self) -> tuple[list[bytes], bytes | None]:
        return list(self.entries), self._last

    def load(self, entries: list[bytes], last: bytes | None) -> None:
        self.entries = deque(entries, maxlen=self.size)
        self._last = last


class Record(Struct, frozen=True, gc=False):
    """A receiver's side: entry i - 1 is about the event i before the bearer."""

    departures_us: tuple[int, ...]
    summaries: tuple[bytes, ...]
    hashes: int


EMPTY = Record((), (), 0)


def read_record(frame: bytes, departure_us: int, newest: int = 255) -> Record:
    """The `newest` entries in these bytes, borne by an event that departed then."""
    if newest <= 0:
        return EMPTY
    departures: list[int] = []
    summaries: list[bytes] = []
    try:
        count, size, hashes = frame[0], frame[1], frame[2]
        place = 3
        for _ in range(min(count, newest)):
            gap = shift = 0
            while (byte := frame[place]) > 0x7F and shift <= VARINT_BITS:
                gap |= (byte & 0x7F) << shift
                shift += 7
                place += 1
            gap |= byte << shift
            departure_us -= gap
            departures.append(departure_us)
            summaries.append(frame[place + 1 : place + 1 + size])
            place += 1 + size
            if shift > VARINT_BITS:
                raise BadFrame("record with an endless number")
    except IndexError:
        raise BadFrame("record cut short") from None
    if (place > len(frame) or not size) or (newest >= count and place != len(frame)):
        raise BadFrame(f"record of {len(frame)} bytes, its entries take {place}")
    return Record(tuple(departures), tuple(summaries), hashes)
