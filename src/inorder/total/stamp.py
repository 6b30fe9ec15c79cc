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

from inorder.event import Stamp


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
