"""Which numbers of a topic a subscriber has received, and which it must still ask for.

A number is known to exist when an event, the entry of another event, or a heartbeat names it. It
is missing until it has been received; received is not the same as delivered. The received numbers
are a line without holes up to `have`, and some beyond.
"""

from __future__ import annotations

from msgspec import Struct


class TopicGaps(Struct):
    have: int
    known: int
    beyond: set[int] = set()


class Gaps:
    """The received numbers of every topic held.

    >>> gaps = Gaps({})
    >>> gaps.begin("t", 5)
    >>> gaps.add("t", 6), gaps.add("t", 8), gaps.add("t", 8)
    (True, True, False)
    >>> gaps.missing("t", 10)
    (7, 7)
    """

    def __init__(self, topics: dict[str, TopicGaps]) -> None:
        self.topics = topics

    def begin(self, topic: str, start: int) -> None:
        """A subscription starts: owed are the numbers after `start`."""
        self.topics[topic] = TopicGaps(start, start)

    def end(self, topic: str) -> None:
        self.topics.pop(topic, None)

    def has(self, topic: str, number: int) -> bool:
        gaps = self.topics[topic]
        return number <= gaps.have or number in gaps.beyond

    def add(self, topic: str, number: int) -> bool:
        """Note a number as received; False if it was already."""
        gaps = self.topics[topic]
        if number == gaps.have + 1:
            gaps.have = number
            if gaps.beyond:
                while gaps.have + 1 in gaps.beyond:
                    gaps.have += 1
                    gaps.beyond.remove(gaps.have)
        elif number <= gaps.have or number in gaps.beyond:
            return False
        else:
            gaps.beyond.add(number)
        if number > gaps.known:
            gaps.known = number
        return True

    def extend(self, topic: str, first: int, count: int) -> bool:
        """Note a run of numbers at once, if it is just the next ones; else do nothing."""
        gaps = self.topics[topic]
        if first != gaps.have + 1 or gaps.beyond:
            return False
        gaps.have += count
        gaps.known = max(gaps.known, gaps.have)
        return True

    def hear(self, topic: str, number: int) -> bool:
        """A number is known to exist; True if it, or one before it, is missing."""
        gaps = self.topics.get(topic)
        if gaps is None:
            return False
        if number > gaps.known:
            gaps.known = number
        return gaps.known > gaps.have

    def skip(self, topic: str, number: int) -> None:
        """Nobody can get the numbers up to here any more."""
        gaps = self.topics[topic]
        if number > gaps.have:
            gaps.have = number
            gaps.known = max(gaps.known, number)
            gaps.beyond = {other for other in sorted(gaps.beyond) if other > number}
            while gaps.have + 1 in gaps.beyond:
                gaps.have += 1
                gaps.beyond.remove(gaps.have)

    def missing(self, topic: str, limit: int) -> tuple[int, int] | None:
        """The first hole: first and last number, at most so many."""
        gaps = self.topics[topic]
        if gaps.known <= gaps.have:
            return None
        first = gaps.have + 1
        last = first
        top = min(gaps.known, gaps.have + limit)
        while last < top and last + 1 not in gaps.beyond:
            last += 1
        return first, last
