"""Readers of recorded rows: no network, no answers, stamps as text."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.effect import Deliver, Diffuse, Note
from inorder.core.errors import BadFrame
from inorder.core.event import Event
from inorder.core.machine import make_all
from inorder.protocols.total import Options, Stage, services
from inorder.protocols.total.messages import Create, Events
from inorder.protocols.total.reader import Reader, Rows
from inorder.protocols.total.stamp import consistent, read_text, text_of
from tests.protocols.stamped import stamped

# One stage that is home to all topics, and sequences all of them: somebody may read them later.
ALONE = Options(topics_per_stage=1000, threshold=0, links="trusted")
TOPICS = tuple(f"t{number}" for number in range(4))


def stage() -> Stage:
    [machine] = make_all(services(TOPICS, ALONE)).values()
    assert isinstance(machine, Stage)
    return machine


def create(topic: str, seq: int, count: int = 1, publisher: str = "p") -> Create:
    return Create(topic, tuple(Event(publisher, seq + n, topic) for n in range(count)))


def diffused(effects) -> list[Events]:
    return [effect.message for effect in effects if isinstance(effect, Diffuse)]


def a_log(seed: int, publications: int = 40) -> list[Events]:
    rng = Random(seed)
    manager = stage()
    log: list[Events] = []
    seq = 1
    for _ in range(publications):
        count = rng.randint(1, 4)
        topic = rng.choice(TOPICS)
        log += diffused(manager.receive("p", create(topic, seq, count), 0.0))
        seq += count
    return log


def test_all_topics_are_sequenced_though_nobody_holds_them():
    log = a_log(1)
    singles = [
        (batch.topic, number, batch.stamp)
        for batch in log
        for number in range(batch.first, batch.first + len(batch.events))
    ]
    for x, y in permutations(singles, 2):
        assert consistent(*x, *y)


# Readers.


def arrivals(log: list[Events], rng: Random) -> list[Events]:
    """Any order, some of it twice, batches cut anywhere."""
    pieces: list[Events] = []
    for batch in log:
        cut = rng.randint(0, len(batch.events))
        for low, high in ((0, cut), (cut, len(batch.events))):
            if low < high:
                events = batch.events[low:high]
                first = batch.first + low
                pieces.append(Events(batch.topic, first, batch.epoch, batch.stamp, events))
    rng.shuffle(pieces)
    return pieces + rng.sample(pieces, len(pieces) // 5)


def read(options: Options, pieces: list[Events]) -> tuple[list[Deliver], int]:
    """What a reader makes of them, restored from its snapshot after every piece."""
    reader = Reader("r", options, start={piece.topic: 0 for piece in pieces})
    delivered: list[Deliver] = []
    duplicates = 0
    for piece in pieces:
        effects = reader.receive("stage1", piece, 0.0)
        delivered += [effect for effect in effects if isinstance(effect, Deliver)]
        duplicates += sum(effect == Note("duplicate", effect.detail) for effect in effects
                          if isinstance(effect, Note))  # fmt: skip
        reader = Reader.restore(reader.snapshot())
    delivered += [each for each in reader.finish(0.0) if isinstance(each, Deliver)]
    assert reader.waiting == 0
    return delivered, duplicates


MODES = [
    Options(mode="hold"),
    Options(mode="tag"),
    Options(mode="tag", buffer=5),
    Options(mode="hold", buffer=3),
]


@pytest.mark.parametrize("options", MODES, ids=["hold", "tag", "buffer", "small hold"])
@given(seed=st.integers(0, 10_000))
def test_every_event_leaves_once_and_those_in_order_agree(options, seed):
    rng = Random(seed)
    log = a_log(seed, publications=15)
    everything = sorted(event.id for batch in log for event in batch.events)
    orders = []
    for _ in range(2):
        delivered, _ = read(options, arrivals(log, rng))
        assert sorted(each.event.id for each in delivered) == everything
        orders.append([each.event.id for each in delivered if each.in_order])
    places = [{event: place for place, event in enumerate(order)} for order in orders]
    common = [event for event in orders[0] if event in places[1]]
    assert common == sorted(common, key=places[1].__getitem__)


@given(seed=st.integers(0, 10_000))
def test_without_a_hole_hold_tags_nothing_and_keeps_the_order_of_the_stamps(seed):
    log = a_log(seed, publications=15)
    delivered, _ = read(Options(), arrivals(log, Random(seed)))
    assert all(each.in_order for each in delivered)
    stamps = {
        event.id: read_text(event.topic, text)[1:]
        for batch in log
        for event, text in stamped(batch)
    }
    for later in range(len(delivered)):
        number, others = stamps[delivered[later].event.id]
        mine = delivered[later].event.topic
        for earlier in delivered[:later]:
            other_number, _ = stamps[earlier.event.id]
            topic = earlier.event.topic
            limit = dict(others).get(topic, other_number) if topic != mine else number
            assert other_number <= limit


def test_a_hole_is_passed_over_at_the_end_and_who_fills_it_later_is_tagged():
    one, two, three = (Events("t", n, 0, (), (Event("p", n, "t"),)) for n in (1, 2, 3))
    reader = Reader("r")
    assert [each.event.seq for each in reader.receive("stage1", one, 0.0)] == [1]
    assert reader.receive("stage1", three, 0.0) == []
    assert reader.waiting == 1
    [passed] = [each for each in reader.finish(0.0) if isinstance(each, Deliver)]
    assert (passed.event.seq, passed.in_order) == (3, True)
    [late] = [e for e in reader.receive("stage1", two, 0.0) if isinstance(e, Deliver)]
    assert (late.event.seq, late.in_order) == (2, False)


def test_a_reader_starts_where_it_is_told_or_at_the_first_number():
    nine = Events("t", 9, 0, (), (Event("p", 9, "t"),))
    assert Reader("r").receive("stage1", nine, 0.0) == []
    assert len(Reader("r", start={"t": 8}).receive("stage1", nine, 0.0)) == 1
    first = Reader("r", from_first=True)
    assert len(first.receive("stage1", nine, 0.0)) == 1
    eight = Events("t", 8, 0, (), (Event("p", 8, "t"),))
    [before] = first.receive("stage1", eight, 0.0)
    assert isinstance(before, Deliver)
    assert not before.in_order


# Stamps as text.


@given(
    st.integers(0, 5),
    st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 2**40), min_size=1),
)
def test_a_stamp_survives_its_text(epoch, entries):
    topic = min(entries)
    stamp = tuple(sorted(entries.items()))
    number, others = entries[topic], tuple(entry for entry in stamp if entry[0] != topic)
    assert read_text(topic, text_of(epoch, stamp)) == (epoch, number, others)
    message = Rows().message(Event("p", 1, topic), text_of(epoch, stamp))
    assert stamped(message) == [(Event("p", 1, topic), text_of(epoch, stamp))]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "{", '{"t":0}', '{"t":"1"}', '{"t":1,"u":-1}', '{"u":1}', '{"t":1,"":-2}'],
)
def test_a_broken_stamp_is_a_bad_frame(text):
    with pytest.raises(BadFrame):
        Rows().message(Event("p", 1, "t"), text)


def test_the_judge_would_notice():
    """Negative control: two readers that deliver as it comes disagree."""
    log = a_log(3)
    orders = [
        [e.id for batch in arrivals(log, Random(seed)) for e in batch.events] for seed in (1, 2)
    ]
    places = {event: place for place, event in enumerate(orders[1])}
    assert orders[0] != sorted(orders[0], key=places.__getitem__)
