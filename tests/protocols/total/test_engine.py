"""Delivery by hand: what waits, what is late, what may go."""

from __future__ import annotations

from random import Random

import pytest

from inorder.core.event import Event
from inorder.protocols.total import Options
from inorder.protocols.total.engine import Engine, EngineState
from tests.protocols.total.drive import delivered, marks


def engine(held="ab", pending="", **options):
    state = EngineState(active=set(held), pending=set(pending))
    state.start = dict.fromkeys(held, 0)
    state.clock = dict.fromkeys(held, 0)
    return Engine(state, Options(**options))


def arrive(machine, topic, number, epoch=0, now=0.0, **entries):
    machine.out = []
    event = Event(topic, number, topic)
    stamp = tuple(sorted(entries.items()))
    taken = machine.arrive((topic, number), epoch, stamp, event, now)
    return delivered(machine.out) if taken else "no room"


def test_tag_delivers_at_once_and_tags_what_is_late():
    e = engine(mode="tag")
    assert arrive(e, "b", 1, a=1) == ["b:1"]
    assert arrive(e, "a", 1, b=0) == ["a:1*"]
    assert arrive(e, "a", 2, b=1) == ["a:2"]


def test_a_tagged_delivery_changes_no_clock():
    e = engine(mode="tag")
    arrive(e, "b", 1, a=3)
    before = (dict(e.s.clock), dict(e.s.last))
    assert arrive(e, "a", 2, b=0) == ["a:2*"]
    assert (e.s.clock, e.s.last) == before


def test_definition_3_would_let_this_older_event_pass():
    """R1: an entry of a third topic is new, the event's own number is not."""
    e = engine("abc", mode="tag")
    assert arrive(e, "c", 1, b=1) == ["c:1"]
    assert arrive(e, "b", 1, a=1, c=0) == ["b:1*"]


def test_hold_waits_for_what_comes_first():
    e = engine()
    assert arrive(e, "b", 1, a=1) == []
    assert arrive(e, "a", 2, b=1) == []
    assert arrive(e, "a", 1, b=0) == ["a:1", "b:1", "a:2"]
    assert e.held.size == 0


def test_entries_of_topics_not_held_are_ignored():
    e = engine("a")
    assert arrive(e, "a", 1, z=99) == ["a:1"]
    assert e.s.clock["z"] == 99, "but remembered"


def test_a_stale_entry_is_a_weaker_bound_not_a_block():
    """S6: less than the clock is enough."""
    e = engine()
    arrive(e, "b", 1)
    assert arrive(e, "a", 1, b=0) == ["a:1"]


def test_a_pending_topic_blocks_until_its_walk_is_done():
    e = engine("a", pending="b")
    assert arrive(e, "a", 1, b=1) == []
    assert arrive(e, "b", 1, a=0) == []
    assert arrive(e, "b", 2, a=1) == []
    e.out = []
    e.activate(["b"], (("a", 0), ("b", 1)), 0.0)
    e.awaken(["b"], 0.0)
    assert delivered(e.out) == ["a:1", "b:2"], "b:1 is before the start"


def test_tag_judges_what_came_while_pending_in_stamp_order():
    e = engine("a", pending="bc", mode="tag")
    arrive(e, "c", 1, a=0, b=1)
    arrive(e, "b", 1, a=0, c=0)
    e.out = []
    e.activate(["b", "c"], (("a", 0), ("b", 0), ("c", 0)), 0.0)
    e.awaken(["b", "c"], 0.0)
    assert delivered(e.out) == ["b:1", "c:1"]


def test_leaving_frees_who_waited_for_the_topic():
    """Scenario 15."""
    e = engine()
    assert arrive(e, "b", 1, a=1) == []
    assert arrive(e, "a", 2) == []
    e.out = []
    e.drop(["a"], 0.0)
    assert delivered(e.out) == ["b:1"]
    assert e.held.size == 0


def test_the_clock_of_a_topic_left_is_kept():
    """R3, scenario 12."""
    e = engine(mode="tag", stamp="compact", path="sg")
    assert arrive(e, "a", 1) == ["a:1"]
    e.drop(["a"], 0.0)
    assert arrive(e, "b", 1, a=0) == ["b:1*"]


def test_a_buffer_waits_for_its_time_and_then_forces_what_precedes_first():
    e = engine("abc", mode="tag", buffer=9, ttl=1.0)
    assert arrive(e, "a", 2, b=2) == []
    assert arrive(e, "b", 2, a=0) == []
    e.out = []
    e.expire(("a", 2), 1.0)
    assert delivered(e.out) == ["b:2", "a:2"]
    assert arrive(e, "b", 1, a=0) == ["b:1*"]
    assert arrive(e, "a", 1, b=1) == ["a:1*"]
    assert arrive(e, "a", 3, b=2) == ["a:3"]


def test_a_buffer_over_its_room_forces_the_oldest():
    e = engine(mode="tag", buffer=2)
    arrive(e, "b", 5)
    arrive(e, "b", 3)
    assert arrive(e, "a", 4) == ["b:3", "b:5"]
    assert "buffer_full" in marks(e.out)


def test_a_full_hold_takes_only_what_is_ready():
    e = engine(buffer=1)
    assert arrive(e, "a", 3) == []
    assert arrive(e, "a", 2) == "no room"
    assert arrive(e, "a", 1) == ["a:1"]
    assert arrive(e, "a", 2) == ["a:2", "a:3"]


def test_compact_stamps_of_an_older_epoch_are_late():
    """E5."""
    e = engine(mode="tag", stamp="compact", path="sg")
    assert arrive(e, "b", 1, epoch=1) == ["b:1"]
    assert arrive(e, "a", 1, epoch=0) == ["a:1*"]


def test_a_restored_engine_goes_on_alike():
    e = engine("abc")
    for topic, number, entries in (("b", 1, {"a": 2}), ("c", 2, {"b": 1}), ("a", 2, {})):
        arrive(e, topic, number, **entries)
    e.store()
    twin = Engine(e.s, Options())
    assert arrive(twin, "a", 1) == ["a:1", "a:2", "b:1"]
    assert arrive(twin, "c", 1) == ["c:1", "c:2"]


@pytest.mark.parametrize("seed", range(30))
def test_hold_delivers_any_arrival_order_of_a_log_in_one_order(seed):
    """Two independent answers: the order the stamps were made in, and what the engine does."""
    rng = Random(seed)
    topics = "abc"
    counts = dict.fromkeys(topics, 0)
    log = []
    for _ in range(30):
        topic = rng.choice(topics)
        counts[topic] += 1
        entries = {t: n for t, n in counts.items() if t != topic}
        log.append((topic, counts[topic], entries))
    e = engine(topics)
    got = []
    for topic, number, entries in rng.sample(log, len(log)):
        got += arrive(e, topic, number, **entries)
    assert got == [f"{topic}:{number}" for topic, number, _ in log]


def test_the_cost_of_an_event_does_not_grow_with_what_waits():
    """The parking index: a hundred times as many held events, looked at as seldom."""

    def looks(held):
        e = engine("ab")
        for number in range(2, held + 2):
            arrive(e, "a", number, b=0)
        counted = 0
        ready = e._ready

        def counting(*args):
            nonlocal counted
            counted += 1
            return ready(*args)

        e._ready = counting
        for number in range(1, 201):
            arrive(e, "b", number, a=0)
        return counted

    assert looks(50) == looks(5000) <= 400


@pytest.mark.parametrize("options", [{"mode": "tag"}, {"mode": "tag", "buffer": 2}, {}])
def test_the_same_notifications_give_the_same_tags(options):
    """P9."""
    for seed in range(20):
        logs = []
        for _ in range(2):
            rng = Random(seed)
            e = engine("abc", **options)
            log = []
            seen: set[tuple[str, int]] = set()
            for _ in range(40):
                key = (rng.choice("abc"), rng.randint(1, 8))
                entries = {t: rng.randint(0, 8) for t in "abc" if t != key[0]}
                if key not in seen:
                    seen.add(key)
                    log.append(arrive(e, *key, **entries))
            logs.append(log)
        assert logs[0] == logs[1]
