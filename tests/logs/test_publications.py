"""Publications under way: nothing stored twice, out of order, or with a wrong fate.

The broker is played by a test: it stores all, a prefix or nothing, answers, refuses, or says
nothing, and what it was given without an answer may land later.
"""

from __future__ import annotations

from itertools import chain

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.core.errors import TooLarge
from inorder.core.limits import APPEND_BYTES_MAX, WAITING_PUBLICATIONS_MAX
from inorder.logs.broker import Author, Run, Stored
from inorder.logs.publications import (
    Append,
    Fate,
    Look,
    Publication,
    Publications,
    Renew,
    without,
)

ME = Author("me", 1)


def array(*values: object) -> bytes:
    return msgspec.msgpack.encode(list(values))


def publication(call: int, *values: object, until: float = 100.0, topic: str = "t") -> Publication:
    return Publication(call, topic, len(values), array(*values), 0.5, until)


def machine(refuses_repeats: bool = True) -> Publications:
    return Publications(ME, refuses_repeats, 10)


def test_what_is_published_while_an_append_is_under_way_goes_with_the_next():
    m = machine()
    [first] = m.publish(publication(1, "a"))
    assert first == Append(ME, [Run("t", "me", 1, 1, 1, array("a"), 0.5)])
    assert m.publish(publication(2, "b", "c")) == []
    assert m.publish(publication(3, "d", topic="u")) == []
    assert m.waiting == 4
    fate, second = m.stored(Stored(range(10, 11)))
    assert fate == Fate(1, 0, 1, "stored", ME, 1, range(10, 11))
    assert [(r.topic, r.sequence, r.count) for r in second.runs] == [("t", 2, 2), ("u", 4, 1)]
    assert m.stored(Stored([11, 14, 15])) == [
        Fate(2, 0, 2, "stored", ME, 2, [11, 14]), Fate(3, 0, 1, "stored", ME, 4, [15]),
    ]  # fmt: skip
    assert m.waiting == 0
    assert m.next_end() is None


def test_of_a_stored_prefix_the_rest_is_refused():
    m = machine()
    m.publish(publication(1, "a", "b"))
    m.publish(publication(2, "c", "d"))
    m.publish(publication(3, "e"))
    m.stored(Stored([10, 11]))
    assert m.stored(Stored([12], "full")) == [
        Fate(2, 0, 1, "stored", ME, 3, [12]),
        Fate(2, 1, 1, "refused", ME, 4, (), "full"),
        Fate(3, 0, 1, "refused", ME, 5, (), "full"),
    ]


def test_a_refusal_refuses_what_was_sent_and_nothing_else():
    m = machine()
    m.publish(publication(1, "a"))
    m.publish(publication(2, "b"))
    fate, following = m.refused("no room")
    assert fate == Fate(1, 0, 1, "refused", ME, 1, (), "no room")
    # A number that was refused is not given again.
    assert following.runs[0].sequence == 2


def test_nothing_is_sent_behind_an_append_without_an_answer():
    m = machine()
    m.publish(publication(1, "a", "b"))
    assert m.unsure() == [Look(ME, 10)]
    assert m.publish(publication(2, "c")) == []
    stands = Run("t", "me", 1, 1, 1, array("a"), offset=12)
    fate, again = m.found([stands], 13)
    assert fate == Fate(1, 0, 1, "stored", ME, 1, [12])
    assert again == Append(ME, [Run("t", "me", 1, 2, 1, array("b"), 0.5)])
    fate, following = m.stored(Stored([13]))
    assert fate == Fate(1, 1, 1, "stored", ME, 2, [13])
    assert following.runs[0].sequence == 3


def test_a_repeat_that_is_refused_was_stored_by_the_first_try():
    m = machine()
    m.publish(publication(1, "a"))
    m.unsure()
    [again] = m.found([], 10)
    assert isinstance(again, Append)
    assert m.refused("sequence 1 is not above 1") == [Look(ME, 10)]
    assert m.found([Run("t", "me", 1, 1, 1, array("a"), offset=10)], 11) == [
        Fate(1, 0, 1, "stored", ME, 1, [10])
    ]


def test_a_repeat_that_is_refused_and_nowhere_is_unknown():
    """The first try may still come."""
    m = machine()
    m.publish(publication(1, "a"))
    m.unsure()
    m.found([], 10)
    m.refused("no room")
    [fate] = m.found([], 10)
    assert (fate.outcome, fate.reason) == ("unknown", "the broker refused what was sent again")


def test_where_repeats_are_not_refused_a_new_epoch_sends_again():
    m = machine(refuses_repeats=False)
    m.publish(publication(1, "a", "b"))
    m.publish(publication(2, "c"))
    assert m.unsure() == [Renew()]
    later = Author("me", 2)
    assert m.renewed(later, 11) == [Look(ME, 10)]
    fate, again = m.found([Run("t", "me", 1, 1, 1, array("a"), offset=10)], 12)
    assert fate == Fate(1, 0, 1, "stored", ME, 1, [10])
    assert again == Append(later, [Run("t", "me", 2, 1, 1, array("b"), 0.5)])
    fate, following = m.stored(Stored([12]))
    assert fate == Fate(1, 1, 1, "stored", later, 1, [12])
    assert following.runs[0].sequence == 2


def test_a_publication_ends_at_its_time_and_nothing_is_sent_twice():
    m = machine()
    m.publish(publication(1, "a", until=5.0))
    m.publish(publication(2, "b", until=6.0))
    m.publish(publication(3, "c", until=7.0))
    assert m.next_end() == 5.0
    assert m.expire(6.0) == [
        Fate(1, 0, 1, "unknown", ME, 1, (), "no answer in time"),
        Fate(2, 0, 1, "refused", ME, 0, (), "not sent in time"),
    ]
    assert m.expire(6.0) == []
    assert m.next_end() == 7.0
    # The answer comes after all: its fate has been told, and the third goes.
    [following] = m.stored(Stored([10]))
    assert following.runs[0].values == array("c")


def test_what_is_unknown_is_not_sent_again_when_the_log_shows_that_it_is_not_there():
    m = machine()
    m.publish(publication(1, "a", until=5.0))
    m.unsure()
    m.expire(5.0)
    m.publish(publication(2, "b", until=9.0))
    [following] = m.found([], 10)
    assert [run.values for run in following.runs] == [array("b")]


def test_an_answer_counts_for_its_own_publications_though_one_was_told_unknown():
    m = machine()
    m.publish(publication(1, "x"))
    m.publish(publication(2, "a", "b", until=5.0))
    m.publish(publication(3, "c", until=50.0))
    m.stored(Stored([10]))
    m.expire(5.0)
    assert m.stored(Stored([11, 12, 13])) == [Fate(3, 0, 1, "stored", ME, 4, [13])]


def test_the_end_of_a_life_refuses_what_was_not_sent():
    m = machine()
    m.publish(publication(1, "a"))
    m.publish(publication(2, "b"))
    assert [(f.call, f.outcome) for f in m.ended("replaced")] == [(1, "refused"), (2, "refused")]
    m = machine()
    m.publish(publication(1, "a"))
    m.publish(publication(2, "b"))
    m.unsure()
    assert [(f.call, f.outcome) for f in m.ended("lost")] == [(1, "unknown"), (2, "refused")]
    assert m.waiting == 0


def test_too_much_under_way_is_refused_and_changes_nothing():
    m = machine()
    m.publish(Publication(1, "t", WAITING_PUBLICATIONS_MAX, b"", 0.0, 1.0))
    with pytest.raises(TooLarge):
        m.publish(publication(2, "a"))
    assert m.waiting == WAITING_PUBLICATIONS_MAX
    assert m.next_end() == 1.0


def test_an_append_is_bounded_and_a_larger_publication_goes_alone():
    m = machine()
    big = b"x" * APPEND_BYTES_MAX
    m.publish(publication(1, "a"))
    m.publish(Publication(2, "t", 1, big, 0.0, 9.0))
    m.publish(Publication(3, "t", 1, b"y", 0.0, 9.0))
    *_, append = m.stored(Stored([10]))
    assert [run.values for run in append.runs] == [big]


@given(st.lists(st.integers(-9, 9) | st.text() | st.none(), max_size=20), st.integers(0, 20))
def test_an_array_without_its_first_elements(values, skip):
    left = msgspec.msgpack.decode(without(msgspec.msgpack.encode(values), skip))
    assert left == values[skip:]


class Played:
    """A broker and a publisher, driven by choices; `defect` takes a rule away."""

    def __init__(self, choices: st.DataObject, refuses_repeats: bool, defect: str = "") -> None:
        self.choose = lambda strategy: choices.draw(strategy)
        self.refuses_repeats = refuses_repeats
        self.defect = defect
        self.machine = Publications(ME, refuses_repeats, 0)
        # The log: (epoch, sequence, value); None is the beginning of a life.
        self.log: list[tuple[int, int, object]] = []
        self.late: list[Append] = []
        self.sent: dict[int, list[object]] = {}
        self.fates: dict[int, list[tuple[str, object]]] = {}
        self.now = 0.0

    def publish(self, call: int, count: int) -> None:
        values = [f"{call}.{index}" for index in range(count)]
        self.sent[call] = values
        self.fates[call] = []
        until = self.now + self.choose(st.sampled_from([1.0, 100.0]))
        self.do(self.machine.publish(publication(call, *values, until=until)))

    def do(self, effects: list) -> None:
        for effect in effects:
            if isinstance(effect, Fate):
                places = effect.offsets or [None] * effect.count
                self.fates[effect.call] += [(effect.outcome, place) for place in places]
            else:
                self.todo = effect

    todo: object = None

    def step(self) -> bool:
        if self.late and self.choose(st.booleans()):
            self.store(self.late.pop(0))
            return True
        effect, self.todo = self.todo, None
        if effect is None:
            return False
        self.now += 0.3
        self.do(self.machine.expire(self.now))
        if isinstance(effect, Append):
            self.append(effect)
        elif isinstance(effect, Look):
            self.do(self.machine.found(self.look(effect), len(self.log)))
        elif isinstance(effect, Renew):
            epoch = self.machine.author.epoch + 1
            self.log.append((epoch, 0, None))
            self.do(self.machine.renewed(Author("me", epoch), len(self.log) - 1))
        return True

    def append(self, append: Append) -> None:
        fate = self.choose(st.sampled_from(["all", "all", "some", "refuse", "lose", "late", "cut"]))
        if fate == "refuse":
            self.do(self.machine.refused("no"))
        elif fate == "late":
            self.late.append(append)
            self.unsure()
        elif fate == "lose":
            self.unsure()
        else:
            count = sum(run.count for run in append.runs)
            kept = self.choose(st.integers(0, count)) if fate == "some" else count
            offsets = self.store(append, kept)
            if fate == "cut":
                self.unsure()
            elif offsets is None:
                self.do(self.machine.refused("repeat"))
            else:
                self.do(self.machine.stored(Stored(offsets, "" if kept == count else "no room")))

    def unsure(self) -> None:
        if self.defect == "goes on":
            self.do(self.machine.refused("who knows"))
        else:
            self.do(self.machine.unsure())

    def store(self, append: Append, kept: int | None = None) -> list[int] | None:
        """Rows in the log; None if the broker refuses them as repeats."""
        events = [
            (run.epoch, run.sequence + index, value)
            for run in append.runs
            for index, value in enumerate(msgspec.msgpack.decode(run.values))
        ][:kept]
        last = max(((epoch, seq) for epoch, seq, _ in self.log), default=(0, 0))
        if self.refuses_repeats and events and events[0][:2] <= last:
            return None
        self.log += events
        return [*range(len(self.log) - len(events), len(self.log))]

    def look(self, look: Look) -> list[Run]:
        ends = [
            offset for offset, (epoch, _, value) in enumerate(self.log)
            if value is None and epoch > look.author.epoch
        ]  # fmt: skip
        return [
            Run("t", "me", epoch, seq, 1, b"", offset=offset)
            for offset, (epoch, seq, value) in enumerate(self.log[: min(ends, default=None)])
            if offset >= look.offset and epoch == look.author.epoch and value is not None
        ]

    def read(self) -> list[tuple[int, object]]:
        """What readers hand over: nothing of an earlier life behind a later one's beginning, and no
        sequence that is not above the last of its author."""
        last = (1, 0)
        kept = []
        for offset, (epoch, seq, value) in enumerate(self.log):
            if (epoch, seq) > last:
                last = (epoch, seq)
                if value is not None:
                    kept.append((offset, value))
            elif value is None and epoch > last[0]:
                last = (epoch, 0)
        return kept

    def check(self) -> None:
        delivered = self.read()
        values = [value for _, value in delivered]
        assert len(values) == len({*values}), f"twice: {values}"
        places = {value: offset for offset, value in delivered}
        for call, sent in self.sent.items():
            assert len(self.fates[call]) == len(sent), (call, self.fates[call])
            for value, (outcome, place) in zip(sent, self.fates[call], strict=True):
                if outcome == "stored":
                    assert places.get(value) == place, (value, place, self.log)
                elif outcome == "refused":
                    assert value not in places, f"{value} was refused"
        order = {value: number for number, value in enumerate(chain(*self.sent.values()))}
        assert values == sorted(values, key=order.__getitem__), f"out of order: {values}"


def play(data: st.DataObject, refuses_repeats: bool, defect: str = "") -> None:
    played = Played(data, refuses_repeats, defect)
    for call in range(1, data.draw(st.integers(1, 6)) + 1):
        played.publish(call, data.draw(st.integers(1, 3)))
        for _ in range(data.draw(st.integers(0, 3))):
            played.step()
    for _ in range(300):
        if not played.step():
            break
    played.now += 1000.0
    played.do(played.machine.ended("closed"))
    played.check()


@pytest.mark.parametrize("refuses_repeats", [True, False])
def test_whatever_the_broker_does_the_fates_are_true(refuses_repeats):
    @settings(max_examples=300)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        play(data, refuses_repeats)

    run()


def test_control_sending_on_behind_an_unknown_append_is_seen():
    @settings(max_examples=2000, database=None)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        play(data, False, "goes on")

    with pytest.raises(AssertionError):
        run()
