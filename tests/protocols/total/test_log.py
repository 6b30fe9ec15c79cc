"""Total order over a log: topics that appear as they are named, and readers without a network."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from inorder.core.effect import Deliver, Diffuse, Note, Persist
from inorder.core.errors import BadFrame, BadMessage, BadScenario
from inorder.core.event import Event
from inorder.core.machine import make_all
from inorder.core.pack import pack
from inorder.protocols.session.messages import Frame
from inorder.protocols.total import Options, Stage, on_log, services
from inorder.protocols.total.directory import OPEN_STAGE
from inorder.protocols.total.manager import Manager
from inorder.protocols.total.messages import Create, Events, Walk
from inorder.protocols.total.reader import Reader, restamped, stamped
from inorder.protocols.total.stamp import consistent, read_text, text_of, texts_of, with_own
from tests.protocols.total.drive import FIRST

TRUSTED = replace(on_log(Options()), links="trusted")


def stage(options: Options = TRUSTED) -> Stage:
    [(name, machine)] = make_all(services((), options)).items()
    assert name == OPEN_STAGE
    assert isinstance(machine, Stage)
    return machine


def create(topic: str, seq: int, count: int = 1, publisher: str = "p") -> Create:
    return Create(topic, tuple(Event(publisher, seq + n, topic) for n in range(count)))


def diffused(effects) -> list[Events]:
    return [effect.message for effect in effects if isinstance(effect, Diffuse)]


def a_log(seed: int, topics: int = 4, publications: int = 40) -> list[Events]:
    rng = Random(seed)
    manager = stage()
    log: list[Events] = []
    seq = 1
    for _ in range(publications):
        count = rng.randint(1, 4)
        topic = f"t{rng.randrange(topics)}"
        log += diffused(manager.receive("p", create(topic, seq, count), 0.0))
        seq += count
    return log


def test_a_topic_appears_when_it_is_first_named():
    manager = stage()
    [first] = diffused(manager.receive("p", create("orders", 1), 0.0))
    [second] = diffused(manager.receive("p", create("payments", 2), 0.0))
    [third] = diffused(manager.receive("p", create("orders", 3), 0.0))
    assert (first.first, first.stamp) == (1, ())
    assert (second.first, second.stamp) == (1, (("orders", 1),))
    assert (third.first, third.stamp) == (2, (("payments", 1),))


def test_all_topics_are_sequenced_though_nobody_holds_them():
    log = a_log(1)
    singles = [
        (batch.topic, number, batch.stamp)
        for batch in log
        for number in range(batch.first, batch.first + len(batch.events))
    ]
    for x, y in permutations(singles, 2):
        assert consistent(*x, *y)


def test_a_stage_that_is_replayed_admits_the_same_topics():
    options = on_log(Options())
    manager = stage(options)
    records = []
    for number, topic in enumerate(["a", "b", "a", "c"], 1):
        frame = Frame(FIRST, 0, number, 0, create(topic, number))
        effects = manager.receive("p", frame, 0.0)
        records += [effect.record for effect in effects if isinstance(effect, Persist)]
    again = stage(options)
    for record in records:
        again.replay(record)
    assert pack(again.s.managers) == pack(manager.s.managers)
    assert again.s.order == manager.s.order == ("a", "b", "c")
    assert Stage.restore(manager.snapshot()).snapshot() == manager.snapshot()


def lived(seed: int) -> tuple[dict[str, list[tuple[str, int]]], list[Events]]:
    """What managers of a stage of all topics know of others after a random life (no entry is as
    good as nought), and what it has shown."""
    rng = Random(seed)
    manager = stage()
    shown: list[Events] = []
    seq = 1
    for number in range(60):
        some = tuple(sorted({f"t{rng.randrange(9)}" for _ in range(rng.randint(1, 4))}))
        if rng.random() < 0.2:
            held = tuple(topic for topic in some if rng.random() < 0.7)
            name = f"s{rng.randrange(3)}"
            shown += diffused(manager.receive(name, Walk(name, number + 1, held, some), 0.0))
        else:
            count = rng.randint(1, 3)
            shown += diffused(manager.receive("p", create(some[0], seq, count), 0.0))
            seq += count
    known = {
        topic: sorted((name, number) for name, number in each.lower.items() if number)
        for topic, each in manager.s.managers.items()
    }
    return known, shown


@pytest.mark.parametrize("seed", range(20))
def test_what_a_stage_of_all_topics_does_not_look_at_is_no_news(monkeypatch, seed):
    known = lived(seed)
    fill = Manager.fill
    monkeypatch.setattr(
        Manager, "fill", lambda self, entries, rank, news: fill(self, entries, rank, None)
    )
    assert lived(seed) == known
    monkeypatch.setattr(
        Manager, "fill", lambda self, entries, rank, news: fill(self, entries, rank, 0)
    )
    assert lived(seed) != known


@pytest.mark.parametrize("topic", ["", "t" * 256])
def test_a_name_that_cannot_be_a_topic_is_refused_and_changes_nothing(topic):
    manager = stage()
    before = manager.snapshot()
    with pytest.raises(BadMessage):
        manager.receive("p", create(topic, 1), 0.0)
    with pytest.raises(BadMessage):
        manager.receive("s", Walk("s", 1, (topic,), (topic,)), 0.0)
    assert manager.snapshot() == before


def test_options_that_a_log_cannot_have_are_refused():
    with pytest.raises(BadScenario):
        on_log(Options(mode="tag", stamp="compact"))
    with pytest.raises(BadScenario):
        on_log(Options(links="trusted"))
    with pytest.raises(BadScenario):
        Options(topics_per_stage=0, path="forest")


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
        effects = reader.receive(OPEN_STAGE, piece, 0.0)
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
    assert [each.event.seq for each in reader.receive(OPEN_STAGE, one, 0.0)] == [1]
    assert reader.receive(OPEN_STAGE, three, 0.0) == []
    assert reader.waiting == 1
    [passed] = [each for each in reader.finish(0.0) if isinstance(each, Deliver)]
    assert (passed.event.seq, passed.in_order) == (3, True)
    [late] = [e for e in reader.receive(OPEN_STAGE, two, 0.0) if isinstance(e, Deliver)]
    assert (late.event.seq, late.in_order) == (2, False)


def test_a_reader_starts_where_it_is_told_or_at_the_first_number():
    nine = Events("t", 9, 0, (), (Event("p", 9, "t"),))
    assert Reader("r").receive(OPEN_STAGE, nine, 0.0) == []
    assert len(Reader("r", start={"t": 8}).receive(OPEN_STAGE, nine, 0.0)) == 1
    first = Reader("r", from_first=True)
    assert len(first.receive(OPEN_STAGE, nine, 0.0)) == 1
    eight = Events("t", 8, 0, (), (Event("p", 8, "t"),))
    [before] = first.receive(OPEN_STAGE, eight, 0.0)
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
    message = restamped(Event("p", 1, topic), text_of(epoch, stamp))
    assert stamped(message) == [(Event("p", 1, topic), text_of(epoch, stamp))]


@given(
    st.integers(0, 2),
    st.dictionaries(st.text(min_size=1, max_size=4), st.integers(0, 99)),
    st.text(min_size=1, max_size=4),
)
def test_the_texts_of_a_batch_are_those_of_its_events(epoch, entries, topic):
    others = tuple(sorted((name, n) for name, n in entries.items() if name != topic))
    each = [text_of(epoch, with_own(others, topic, number)) for number in (7, 8, 9)]
    assert texts_of(epoch, others, topic, 7, 3) == each


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "{", '{"t":0}', '{"t":"1"}', '{"t":1,"u":-1}', '{"u":1}', '{"t":1,"":-2}'],
)
def test_a_broken_stamp_is_a_bad_frame(text):
    with pytest.raises(BadFrame):
        restamped(Event("p", 1, "t"), text)


def test_the_judge_would_notice():
    """Negative control: two readers that deliver as it comes disagree."""
    log = a_log(3)
    orders = [
        [e.id for batch in arrivals(log, Random(seed)) for e in batch.events] for seed in (1, 2)
    ]
    places = {event: place for place, event in enumerate(orders[1])}
    assert orders[0] != sorted(orders[0], key=places.__getitem__)
