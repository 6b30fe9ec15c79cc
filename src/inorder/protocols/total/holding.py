"""The room where events wait, and the index that finds who may leave.

Rule 1: an event waits on one thing at a time: its first unsatisfied entry. It is looked at again
        only when that is satisfied, so an arrival costs O(entries), however many wait. In tag mode
        it is also found when its place goes by, and when it is the oldest: again by index.
Rule 2: the index is derived. It is not part of the state and is built anew from the events.
Rule 3: nothing here judges; engine.py says what an event waits for.

An event waits either for the clock of a topic to reach a number, or for a pending topic's walk.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from msgspec import Struct

from inorder.core.event import Event, Stamp

Key = tuple[str, int]
Heap = list[tuple[int, Key]]

# A heap may hold this many entries more than twice what waits before it is swept.
GARBAGE = 64


class Held(Struct, gc=False):
    """An event that waits; `stamp` has the entries of the other topics."""

    epoch: int
    stamp: Stamp
    event: Event
    place: int = 0


class Holding:
    """Events by topic and number."""

    def __init__(self, rows: list[tuple[str, int, Held]]) -> None:
        self.topics: dict[str, dict[int, Held]] = {}
        self.size = 0
        for topic, number, held in rows:
            self.put((topic, number), held)
        # topic -> heap of (number to be reached, who waits); topic -> who waits for its walk.
        self._clocks: dict[str, Heap] = {}
        self._walks: dict[str, list[Key]] = {}
        # Of the events being watched: by own number, by the entry that names a topic, by age.
        self._numbers: dict[str, Heap] = {}
        self._entries: dict[str, Heap] = {}
        self._ages: Heap = []

    def __contains__(self, key: Key) -> bool:
        return key[1] in self.topics.get(key[0], ())

    def get(self, key: Key) -> Held | None:
        return self.topics.get(key[0], {}).get(key[1])

    def put(self, key: Key, held: Held) -> None:
        assert key not in self
        self.topics.setdefault(key[0], {})[key[1]] = held
        self.size += 1

    def pop(self, key: Key) -> Held:
        numbers = self.topics[key[0]]
        held = numbers.pop(key[1])
        if not numbers:
            del self.topics[key[0]]
        self.size -= 1
        return held

    def keys(self, topic: str) -> list[Key]:
        """The waiting events of a topic, by number."""
        return [(topic, number) for number in sorted(self.topics.get(topic, ()))]

    def rows(self) -> list[tuple[str, int, Held]]:
        """Everything that waits, in a fixed order: the state."""
        return [(*key, self.topics[key[0]][key[1]]) for key in self.all_keys()]

    def all_keys(self) -> list[Key]:
        return [key for topic in sorted(self.topics) for key in self.keys(topic)]

    # The index. Who left meanwhile is still in it and is passed over by the caller.

    def wait_for_clock(self, key: Key, topic: str, number: int) -> None:
        self._push(self._clocks.setdefault(topic, []), number, key)

    def wait_for_walk(self, key: Key, topic: str) -> None:
        self._walks.setdefault(topic, []).append(key)

    def reached(self, topic: str, number: int) -> list[Key]:
        """Who waited for the clock of a topic to come this far."""
        heap = self._clocks.get(topic)
        found: list[Key] = []
        while heap and heap[0][0] <= number:
            found.append(heappop(heap)[1])
        if heap is not None and not heap:
            del self._clocks[topic]
        return found

    def freed(self, topic: str) -> list[Key]:
        """Everybody who waited for this topic in any way."""
        parked = [key for _, key in self._clocks.pop(topic, [])]
        return sorted(parked + self._walks.pop(topic, []))

    # Tag mode only: who is too late, who comes before, who has waited longest.

    def watch(self, key: Key, held: Held) -> None:
        """Notice when the place of an event goes by."""
        self._push(self._numbers.setdefault(key[0], []), key[1], key)
        for topic, entry in held.stamp:
            self._push(self._entries.setdefault(topic, []), entry, key)
        self._push(self._ages, held.place, key)

    def overtaken(self, topic: str, clock: int, last: int) -> list[Key]:
        """Whose place went by: its own number is reached, or what it comes before was delivered."""
        late = self._up_to(self._numbers, topic, clock)
        return late + self._up_to(self._entries, topic, last - 1)

    def preceding(self, topic: str, number: int) -> list[Key]:
        """The watched events of a topic up to a number; the caller takes them all out."""
        return self._up_to(self._numbers, topic, number)

    def oldest(self, active: set[str]) -> Key:
        """Of the watched events of these topics, the one that came first."""
        while True:
            key = heappop(self._ages)[1]
            if key in self and key[0] in active:
                return key

    def _up_to(self, heaps: dict[str, Heap], topic: str, number: int) -> list[Key]:
        heap = heaps.get(topic)
        found: list[Key] = []
        while heap and heap[0][0] <= number:
            key = heappop(heap)[1]
            if key in self:
                found.append(key)
        return found

    def _push(self, heap: Heap, number: int, key: Key) -> None:
        if len(heap) > 2 * self.size + GARBAGE:
            heap[:] = [entry for entry in heap if entry[1] in self]
            heapify(heap)
        heappush(heap, (number, key))
