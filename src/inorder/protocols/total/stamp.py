"""Stamps: what an event says about its place.

An event on topic T carries its own number on T and, for every topic k sequenced with T, how many
events of k come before it. A stamp is a tuple of (topic, number) pairs sorted by topic.

- *full* stamps carry entries for higher and lower topics (the supplement's LLC);
- *compact* stamps carry the own and the higher ones only (the report). They are shorter, but an
  event of a higher topic then says nothing about lower ones, so nobody can wait for those (R7).

Theory: let x on Tx and y on Ty. If y carries Tx, then x comes before y exactly when
x[Tx] <= y[Tx]. If both carry each other's topic the two answers must agree, which is property P7:
"both before" is a deadlock to come, "neither" would be two orders to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from inorder.core.errors import BadFrame
from inorder.core.event import Stamp
from inorder.core.limits import STAMP_ENTRIES_MAX, STAMP_NUMBER_MAX

# No topic has an empty name: in a stamp's text it stands for the epoch, if that is not the first.
EPOCH = ""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, int]).decode


def stamp_of(entries: Mapping[str, int]) -> Stamp:
    """The canonical form of a stamp.

    >>> stamp_of({"b": 2, "a": 1})
    (('a', 1), ('b', 2))
    """
    return tuple(sorted(entries.items()))


def without(stamp: Stamp, topic: str) -> Stamp:
    """The entries of the other topics."""
    return tuple(entry for entry in stamp if entry[0] != topic)


def with_own(others: Stamp, topic: str, number: int) -> Stamp:
    """The whole stamp of one event of a batch.

    >>> with_own((("a", 1), ("c", 5)), "b", 3)
    (('a', 1), ('b', 3), ('c', 5))
    """
    return tuple(sorted((*others, (topic, number))))


def entry(stamp: Stamp, topic: str) -> int | None:
    for name, number in stamp:
        if name == topic:
            return number
    return None


def precedes(
    x_topic: str, x_number: int, x_others: Stamp, y_topic: str, y_number: int, y_others: Stamp
) -> bool:
    """Whether the stamps say that x comes before y; False also when they say nothing.

    >>> precedes("a", 1, (), "b", 1, (("a", 1),)), precedes("a", 2, (), "b", 1, (("a", 1),))
    (True, False)
    """
    if x_topic == y_topic:
        return x_number < y_number
    seen = entry(y_others, x_topic)
    if seen is not None:
        return x_number <= seen
    seen = entry(x_others, y_topic)
    return seen is not None and y_number > seen


def consistent(
    x_topic: str, x_number: int, x_others: Stamp, y_topic: str, y_number: int, y_others: Stamp
) -> bool:
    """P7: of two events that carry each other's topic, exactly one comes first.

    >>> consistent("a", 1, (("b", 1),), "b", 1, (("a", 1),))
    False
    """
    if x_topic == y_topic:
        return x_number != y_number
    of_x = entry(y_others, x_topic)
    of_y = entry(x_others, y_topic)
    if of_x is None or of_y is None:
        return True
    return (x_number <= of_x) != (y_number <= of_y)


def raise_to(clock: dict[str, int], entries: Iterable[tuple[str, int]]) -> None:
    """Entry by entry the maximum, never an assignment: clocks do not go back (R4, S11)."""
    for topic, number in entries:
        if clock.get(topic, -1) < number:
            clock[topic] = number


def text_of(epoch: int, stamp: Stamp) -> str:
    """A whole stamp as tables keep it.

    >>> text_of(0, (("a", 1), ("b", 3)))
    '{"a":1,"b":3}'
    """
    entries = dict(stamp) if epoch == 0 else {EPOCH: epoch, **dict(stamp)}
    return _encode(entries).decode()


def read_text(topic: str, text: str) -> tuple[int, int, Stamp]:
    """Epoch, own number and the entries of the other topics; `BadFrame` if that is no stamp.

    >>> read_text("b", '{"a":1,"b":3}')
    (0, 3, (('a', 1),))
    """
    try:
        entries = _decode(text)
    except Exception as error:
        raise BadFrame(f"not a stamp: {error}") from None
    if (largest := max(entries.values(), default=0)) > STAMP_NUMBER_MAX:
        raise BadFrame(f"a stamp with a number beyond 64 bits: {largest}")
    epoch = entries.pop(EPOCH, 0)
    number = entries.pop(topic, 0)
    if number < 1:
        raise BadFrame(f"a stamp without a number of {topic!r}")
    if epoch < 0 or len(entries) > STAMP_ENTRIES_MAX or min(entries.values(), default=0) < 0:
        raise BadFrame("a stamp that nobody gave")
    return epoch, number, stamp_of(entries)
