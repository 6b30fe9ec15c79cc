"""The room where events wait: its index gives what looking at everybody would give, in that order.

What left meanwhile stays in the index for a while; the caller passes it over, or the index does.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.event import Event
from inorder.protocols.total import holding
from inorder.protocols.total.holding import Held, Holding, Key

TOPICS = "abc"


def held(place: int = 0, **entries: int) -> Held:
    return Held(0, tuple(sorted(entries.items())), Event("p", 1, "a"), place)


def room(*keys: Key) -> Holding:
    return Holding([(*key, held()) for key in keys])


def index(waiting: Holding) -> int:
    """Entries the index keeps, the dead ones with them."""
    walks = sum(map(len, waiting._walks.values()))
    heaps = (waiting._clocks, waiting._numbers, waiting._entries)
    return walks + len(waiting._ages) + sum(len(heap) for by in heaps for heap in by.values())


class Slow:
    """The twin: lists, and everybody is looked at."""

    def __init__(self) -> None:
        self.here: dict[Key, Held] = {}
        self.clocks: list[tuple[str, int, Key]] = []
        self.walks: list[tuple[str, Key]] = []
        self.numbers: list[tuple[str, int, Key]] = []
        self.entries: list[tuple[str, int, Key]] = []
        self.ages: list[tuple[int, Key]] = []

    def put(self, key: Key, who: Held) -> None:
        self.here[key] = who

    def pop(self, key: Key) -> None:
        """Who leaves is forgotten everywhere."""
        del self.here[key]
        self.clocks = [row for row in self.clocks if row[2] != key]
        self.walks = [row for row in self.walks if row[1] != key]
        self.numbers = [row for row in self.numbers if row[2] != key]
        self.entries = [row for row in self.entries if row[2] != key]
        self.ages = [row for row in self.ages if row[1] != key]

    def watch(self, key: Key, who: Held) -> None:
        self.numbers.append((key[0], key[1], key))
        self.entries += [(topic, entry, key) for topic, entry in who.stamp]
        self.ages.append((who.place, key))

    @staticmethod
    def up_to(rows: list[tuple[str, int, Key]], topic: str, number: int) -> list[Key]:
        """Those that wait for no more than a number; they are in the list no longer."""
        out = sorted((n, key) for t, n, key in rows if t == topic and n <= number)
        rows[:] = [row for row in rows if row[0] != topic or row[1] > number]
        return [key for _, key in out]

    def overtaken(self, topic: str, clock: int, last: int) -> list[Key]:
        late = self.up_to(self.numbers, topic, clock)
        return late + self.up_to(self.entries, topic, last - 1)

    def freed(self, topic: str) -> list[Key]:
        out = [key for t, _, key in self.clocks if t == topic]
        out += [key for t, key in self.walks if t == topic]
        self.clocks = [row for row in self.clocks if row[0] != topic]
        self.walks = [row for row in self.walks if row[0] != topic]
        return sorted(out)

    def oldest(self, active: set[str]) -> Key | None:
        ages = sorted(row for row in self.ages if row[1][0] in active)
        if not ages:
            return None
        # Whoever is older, and no longer of an active topic, is dropped with it.
        self.ages = [row for row in self.ages if row > ages[0]]
        return ages[0][1]


numbers = st.integers(1, 9)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.sampled_from(TOPICS), numbers, st.integers(0, 6), numbers),
        st.tuples(st.just("go"), st.integers(0, 99)),
        st.tuples(st.just("reached"), st.sampled_from(TOPICS), numbers),
        st.tuples(st.just("overtaken"), st.sampled_from(TOPICS), numbers, numbers),
        st.tuples(st.just("preceding"), st.sampled_from(TOPICS), numbers),
        st.tuples(st.just("freed"), st.sampled_from(TOPICS)),
        st.tuples(st.just("oldest"), st.sampled_from(["a", "ab", "abc"])),
    ),
    max_size=80,
)


@given(steps, st.sampled_from([0, 2, 64]))
@settings(max_examples=400, deadline=None)
def test_the_index_gives_what_looking_at_everybody_gives(
    script: list[tuple[Any, ...]], garbage: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holding, "GARBAGE", garbage)
        fast, slow = Holding([]), Slow()
        gone: set[Key] = set()
        for place, (verb, *words) in enumerate(script):
            act(fast, slow, gone, place, verb, words)
            assert fast.size == len(slow.here)
            assert fast.rows() == [(*key, who) for key, who in sorted(slow.here.items(), key=first)]
            assert all(key in fast for key in slow.here)


def first(item: tuple[Key, Held]) -> Key:
    return item[0]


def act(fast: Holding, slow: Slow, gone: set[Key], place: int, verb: str, words: list[Any]) -> None:
    if verb == "come":
        topic, number, kind, level = words
        key = (topic, number)
        if key in fast or key in gone:  # what came once does not come again
            return
        who = held(place // 3, **{other: level for other in TOPICS if other != topic})
        for twin in (fast, slow):
            twin.put(key, who)
        other = TOPICS[kind % 3]
        if kind < 3:
            fast.wait_for_clock(key, other, level)
            slow.clocks.append((other, level, key))
        else:
            fast.wait_for_walk(key, other)
            slow.walks.append((other, key))
        for twin in (fast, slow):
            twin.watch(key, who)
    elif verb == "go":
        if slow.here:
            key = sorted(slow.here)[words[0] % len(slow.here)]
            assert fast.pop(key) is slow.here[key]
            slow.pop(key)
            gone.add(key)
    elif verb == "reached":
        alive = [key for key in fast.reached(*words) if key in fast]
        assert alive == slow.up_to(slow.clocks, *words)
    elif verb == "overtaken":
        assert fast.overtaken(*words) == slow.overtaken(*words)
    elif verb == "preceding":
        assert fast.preceding(*words) == slow.up_to(slow.numbers, *words)
    elif verb == "freed":
        assert [key for key in fast.freed(*words) if key in fast] == slow.freed(*words)
    elif (oldest := slow.oldest({*words[0]})) is not None:
        assert fast.oldest({*words[0]}) == oldest


def test_the_oldest_is_right_after_more_dead_entries_than_are_kept() -> None:
    """The sweep must leave a heap: 200 come in any order of age, most go, then more come."""
    waiting = Holding([])
    rng = Random(3)
    places = rng.sample(range(1, 1001), 200)
    for place in places:
        waiting.put(("a", place), held(place))
        waiting.watch(("a", place), held(place))
    stay = rng.sample(places, 20)
    for place in places:
        if place not in stay:
            waiting.pop(("a", place))
    waiting.put(("a", 2000), held(2000))
    waiting.watch(("a", 2000), held(2000))  # sweeps
    assert index(waiting) < 50
    assert [waiting.oldest({"a"})[1] for _ in stay] == sorted(stay)


def test_the_index_keeps_no_more_than_a_bound_of_dead_entries() -> None:
    """Each event comes, waits, and goes another way than by the index: thousands of them."""
    waiting = room(*(("b", number) for number in range(10)))
    largest = 0
    for number in range(5000):
        key = ("a", number)
        waiting.put(key, held(number, c=number))
        waiting.wait_for_clock(key, "b", 10_000 + number)
        waiting.watch(key, held(number, c=number))
        waiting.pop(key)
        largest = max(largest, index(waiting))
    # Four heaps: of clocks, own numbers, entries and ages.
    assert largest <= 4 * (2 * 11 + holding.GARBAGE + 1)


def test_sweeping_costs_a_few_looks_an_entry_however_many_wait() -> None:
    """A sweep looks at everybody, so it must be paid for by as many new entries."""

    class Counted(Holding):
        looks = 0

        def __contains__(self, key: Key) -> bool:
            self.looks += 1
            return super().__contains__(key)

    def looks(waiters: int) -> float:
        waiting = Counted([])
        for number in range(waiters):
            waiting.put(("a", number), held())
            waiting.wait_for_clock(("a", number), "b", number)
        waiting.looks = 0
        # Dead ones, as many again and as many more.
        for number in range(4 * waiters):
            waiting.put(("c", number), held())
            waiting.wait_for_clock(("c", number), "b", number)
            waiting.pop(("c", number))
        return waiting.looks / (4 * waiters)

    assert looks(300) <= 5.0
    assert looks(3000) <= 5.0


def test_little_garbage_is_left_alone() -> None:
    """Up to 64 dead entries beyond twice what waits; then they are swept out together."""
    waiting = Holding([])
    for number in range(65):
        waiting.put(("a", number), held())
        waiting.wait_for_clock(("a", number), "b", number)
        waiting.pop(("a", number))
    assert index(waiting) == 65
    waiting.put(("a", 99), held())
    waiting.wait_for_clock(("a", 99), "b", 99)
    assert index(waiting) == 66, "one waits: two more dead entries are allowed"
    waiting.pop(("a", 99))
    waiting.put(("a", 100), held())
    waiting.wait_for_clock(("a", 100), "b", 100)
    waiting.put(("a", 101), held())
    waiting.pop(("a", 100))
    waiting.pop(("a", 101))
    waiting.wait_for_clock(("a", 101), "b", 101)
    assert index(waiting) == 1


def test_who_waited_is_told_once_and_the_smallest_first() -> None:
    keys = [("c", 7), ("a", 9), ("b", 2)]
    waiting = room(*keys)
    for key in keys:
        waiting.wait_for_clock(key, "x", 4)
    waiting.wait_for_clock(("c", 7), "x", 6)
    assert waiting.reached("x", 3) == []
    assert waiting.reached("x", 4) == [("a", 9), ("b", 2), ("c", 7)]
    assert waiting.reached("x", 5) == []
    assert waiting.reached("x", 9) == [("c", 7)]
    assert waiting.reached("x", 9) == waiting.reached("nobody waits for it", 9) == []
    assert index(waiting) == 0
    assert not waiting._clocks, "nothing is kept for a topic that nobody waits for"


def test_a_topic_that_ends_frees_all_who_waited_for_its_clock_or_its_walk() -> None:
    waiting = room(("a", 1), ("b", 1), ("c", 1), ("c", 2))
    waiting.wait_for_walk(("c", 2), "x")
    waiting.wait_for_clock(("b", 1), "x", 1)
    waiting.wait_for_walk(("a", 1), "x")
    waiting.wait_for_clock(("c", 1), "y", 1)
    assert waiting.freed("x") == [("a", 1), ("b", 1), ("c", 2)]
    assert waiting.freed("x") == []
    assert index(waiting) == 1


def test_places_that_went_by_are_found_by_their_own_number_and_by_what_they_precede() -> None:
    """b:5 comes before a:3 (it carries a=2): once a:3 is delivered, b:5 is late."""
    waiting = Holding([])
    for topic, number, entries in (("b", 5, {"a": 2}), ("b", 6, {"a": 3}), ("a", 4, {"b": 9})):
        waiting.put((topic, number), held(**entries))
        waiting.watch((topic, number), held(**entries))
    assert waiting.overtaken("a", 3, 3) == [("b", 5)]
    assert waiting.overtaken("a", 4, 3) == [("a", 4)]
    assert waiting.overtaken("a", 4, 4) == [("b", 6)]
    waiting.watch(("b", 6), held(a=3))
    waiting.watch(("a", 4), held(b=9))
    assert waiting.overtaken("a", 4, 4) == [("a", 4), ("b", 6)]


def test_of_hundreds_that_wait_those_up_to_a_number_are_found_by_number() -> None:
    waiting = Holding([])
    for number in Random(5).sample(range(300), 300):
        waiting.put(("a", number), held())
        waiting.watch(("a", number), held())
    for start in range(0, 300, 30):
        wanted = [("a", number) for number in range(start, start + 30)]
        assert waiting.preceding("a", start + 29) == wanted


def test_the_oldest_of_the_topics_asked_for_is_the_one_that_came_first() -> None:
    waiting = Holding([])
    for place, key in enumerate([("x", 1), ("a", 9), ("b", 3), ("a", 1)]):
        waiting.put(key, held(place))
        waiting.watch(key, held(place))
    waiting.pop(("a", 9))
    assert waiting.oldest({"a", "b"}) == ("b", 3)
    assert waiting.oldest({"a", "b"}) == ("a", 1)


def test_rows_are_sorted_and_make_the_same_room_again() -> None:
    keys = [("b", 2), ("a", 10), ("a", 9), ("b", 1)]
    waiting = room(*keys)
    assert [row[:2] for row in waiting.rows()] == sorted(keys)
    assert waiting.keys("a") == [("a", 9), ("a", 10)]
    assert waiting.keys("z") == []
    twin = Holding(waiting.rows())
    assert (twin.rows(), twin.size) == (waiting.rows(), 4)
    assert ("a", 9) in twin
    assert ("a", 8) not in twin
    assert ("z", 9) not in twin
    assert twin.get(("z", 1)) is twin.get(("a", 8)) is None
    for key in keys:
        twin.pop(key)
    assert (twin.rows(), twin.size, twin.topics) == ([], 0, {})


def test_an_event_waits_once() -> None:
    waiting = room(("a", 1))
    with pytest.raises(AssertionError):
        waiting.put(("a", 1), held())
    assert waiting.size == 1
