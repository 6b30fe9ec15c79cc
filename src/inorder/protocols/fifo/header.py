"""The order facts a publisher puts on every event, opaque to the network between.

| field        | meaning                                                                        |
|--------------|--------------------------------------------------------------------------------|
| incarnation  | larger after every restart of the publisher; None from a publisher without one |
| seq          | 1, 2, 3, ... within the incarnation, over all topics and contents together     |
| departure_us | the publisher's monotonic clock, microseconds                                  |
| prev_gap_us  | departure of this event minus departure of the one before; always present      |
| record       | what the last k events were about (record.py); empty in basic mode             |

The previous gap is not in the paper ("Probabilistic FIFO Ordering in Publish/Subscribe Networks",
section III-E): without it a receiver cannot know when a missing event departed (E-F7).

Header bytes that cannot be read never cost the event: whoever receives it delivers it, tagged.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from inorder.core.errors import BadFrame
from inorder.core.event import Event
from inorder.core.limits import RECORD_BYTES_MAX

# A jump of sequence numbers beyond this is a broken header, not a quiet spell.
SEQ_JUMP_MAX = 2**32
# Beyond this nobody counts; below it, one more always fits into the wire's 64 bits.
NUMBER_MAX = 2**63 - 1

_encode = msgspec.msgpack.Encoder().encode


class Header(Struct, frozen=True, gc=False, array_like=True):
    """Order facts of one event."""

    incarnation: int | None
    seq: int
    departure_us: int
    prev_gap_us: int
    record: bytes = b""


class _Text(Struct, frozen=True, gc=False):
    """The same fields by name."""

    incarnation: int | None
    seq: int
    departure_us: int
    prev_gap_us: int
    record: bytes = b""


_encode_text = msgspec.json.Encoder().encode
_decode_text = msgspec.json.Decoder(_Text).decode


class Published(Struct, frozen=True, gc=False, array_like=True, tag="fifo"):
    """An event on its way, with its header packed."""

    event: Event
    header: bytes


_decode = msgspec.msgpack.Decoder(Header).decode


def pack(header: Header) -> bytes:
    """The header as it travels.

    >>> unpack(pack(Header(0, 7, 1_500_000, 10_000)))
    Header(incarnation=0, seq=7, departure_us=1500000, prev_gap_us=10000, record=b'')
    """
    return _encode(header)


def unpack(frame: bytes) -> Header:
    """The header in these bytes; `BadFrame` says what is wrong with them."""
    try:
        header = _decode(frame)
    except Exception as error:
        raise BadFrame(f"not an order header: {error}") from None
    if problem := problem_of(header):
        raise BadFrame(problem)
    return header


def text_of(header: Header) -> str:
    """The header as tables keep it.

    >>> text_of(Header(0, 7, 1_500_000, 10_000))
    '{"incarnation":0,"seq":7,"departure_us":1500000,"prev_gap_us":10000,"record":""}'
    """
    return _encode_text(_Text(*astuple(header))).decode()


def read_text(text: str) -> Header:
    """The way back; `BadFrame` if the text is no header."""
    try:
        header = Header(*astuple(_decode_text(text)))
    except Exception as error:
        raise BadFrame(f"not an order header: {error}") from None
    if problem := problem_of(header):
        raise BadFrame(problem)
    return header


def problem_of(header: Header) -> str:
    """What makes a header impossible whatever came before it; empty if nothing does."""
    if not 1 <= header.seq <= NUMBER_MAX:
        return f"sequence number {header.seq}"
    if not (0 <= header.departure_us <= NUMBER_MAX and 0 <= header.prev_gap_us <= NUMBER_MAX):
        return f"impossible time: departure {header.departure_us}, gap {header.prev_gap_us}"
    if header.incarnation is not None and not 0 <= header.incarnation <= NUMBER_MAX:
        return f"incarnation {header.incarnation}"
    if len(header.record) > RECORD_BYTES_MAX:
        return f"record of {len(header.record)} bytes, the limit is {RECORD_BYTES_MAX}"
    return ""
