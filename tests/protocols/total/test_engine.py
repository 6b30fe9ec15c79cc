"""Delivery by hand: what waits, what is late, what may go."""

from __future__ import annotations

from random import Random

import pytest

from inorder.core.effect import SetTimer
from inorder.core.event import Event
from inorder.protocols.total import Options
from inorder.protocols.total.engine import Engine, EngineState
from tests.protocols.total.drive import delivered, marks, of


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
    e = engine(mode="tag", buffer=0)
    assert arrive(e, "b", 1, a=1) == ["b:1"]
    assert arrive(e, "a", 1, b=0) == ["a:1*"]
    assert arrive(e, "a", 2, b=1) == ["a:2"]


def test_a_tagged_delivery_changes_no_clock():
    e = engine(mode="tag", buffer=0)
    arrive(e, "b", 1, a=3)
    before = (dict(e.s.clock), dict(e.s.last))
    assert arrive(e, "a", 2, b=0) == ["a:2*"]
    assert (e.s.clock, e.s.last) == before


def test_definition_3_would_let_this_older_event_pass():
    """R1: an entry of a third topic is new, the event's own number is not."""
    e = engine("abc", mode="tag", buffer=0)
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


@pytest.mark.parametrize("buffer", [0, 9, None])
def test_no_more_than_the_house_limit_waits_for_a_walk(buffer, monkeypatch):
    """Nobody judges what came for a pending topic, so neither room nor time gets rid of it."""
    monkeypatch.setattr("inorder.protocols.total.engine.HELD_EVENTS_MAX", 3)
    e = engine("a", pending="b", mode="hold" if buffer is None else "tag", buffer=buffer)
    assert [arrive(e, "b", number) for number in (3, 1, 2)] == [[], [], []]
    assert arrive(e, "b", 4) == "no room"
    assert e.held.size == 3
    e.out = []
    e.activate(["b"], (("a", 0), ("b", 1)), 0.0)
    e.awaken(["b"], 0.0)
    assert delivered(e.out) == ["b:2", "b:3"]
    assert arrive(e, "b", 4) == ["b:4"], "asked for again"


def test_what_is_too_much_for_a_walk_does_not_stop_a_topic_that_is_active(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.engine.HELD_EVENTS_MAX", 1)
    e = engine("a", pending="b", mode="tag", buffer=0)
    assert arrive(e, "b", 1) == []
    assert arrive(e, "b", 2) == "no room"
    assert arrive(e, "a", 1) == ["a:1"]


def test_tag_judges_what_came_while_pending_in_stamp_order():
    e = engine("a", pending="bc", mode="tag", buffer=0)
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


def test_an_event_waits_for_what_is_missing_not_for_what_is_there():
    e = engine("abc")
    assert arrive(e, "b", 1, a=0, c=1) == []
    assert arrive(e, "c", 1) == ["c:1", "b:1"]


def test_of_several_that_are_ready_the_smallest_goes_first():
    """However the index grew: here b waits for the walk that is named first."""
    e = engine("ab", pending="cd")
    assert arrive(e, "b", 1, c=0) == []
    assert arrive(e, "a", 1, d=0) == []
    e.out = []
    e.activate(["c", "d"], (("a", 0), ("b", 0), ("c", 0), ("d", 0)), 0.0)
    e.awaken(["c", "d"], 0.0)
    assert delivered(e.out) == ["a:1", "b:1"]


def test_whose_place_went_by_waits_no_longer():
    e = engine(mode="tag", buffer=9)
    assert arrive(e, "b", 5, a=2) == []
    assert arrive(e, "a", 3, b=0) == []
    e.out = []
    e.expire(("a", 3), 0.0)
    assert delivered(e.out) == ["a:3", "b:5*"], "b:5 comes before a:3"


def test_what_nobody_can_get_any_more_is_not_waited_for():
    e = engine("a", mode="tag", buffer=9)
    for number in (3, 5, 9):
        assert arrive(e, "a", number) == []
    for gone, seen in ((1, []), (2, ["a:3"]), (6, ["a:5*"]), (8, ["a:9"])):
        e.out = []
        e.give_up("a", gone, 0.0)
        assert delivered(e.out) == seen


def test_compact_stamps_make_what_is_in_flight_at_a_subscription_late():
    """A compact stamp of the new, higher topic does not say what comes before it."""
    tags = {}
    for stamp in ("compact", "full"):
        e = engine("b", pending="a", mode="tag", stamp=stamp, buffer=0)
        e.activate(["a"], (("a", 0), ("b", 7)), 0.0)
        e.awaken(["a"], 0.0)
        tags[stamp] = arrive(e, "b", 7)
    assert tags == {"compact": ["b:7*"], "full": ["b:7"]}


def test_a_buffer_forces_the_oldest_also_when_many_have_come_and_gone():
    """More events leave than the index of ages keeps dead entries for, so it is swept."""
    e = engine("ab", mode="tag", buffer=40)
    rng = Random(2)
    for number in range(1, 301):
        # b comes too early, waits, and leaves when the a before it comes: dead in the index.
        arrive(e, "b", number, a=number)
        assert arrive(e, "a", number, b=number - 1)[:2] == [f"a:{number}", f"b:{number}"]
    early = [302 + 2 * place for place in range(40)]
    rng.shuffle(early)
    for number in early:
        assert arrive(e, "a", number, b=300) == []
    # To force the oldest delivers what is before it too.
    waiting, place = sorted(early), 0
    while waiting:
        while early[place] not in waiting:
            place += 1
        forced = [n for n in waiting if n <= early[place]]
        e.out = []
        e._force(e.held.oldest(e.s.active), 0.0)
        assert delivered(e.out) == [f"a:{n}" for n in forced]
        waiting = waiting[len(forced) :]


def test_a_topic_dropped_and_held_again_is_forced_without_what_waited_before():
    """The index still knows events that left with the topic."""
    e = engine("ab", mode="tag", buffer=2)
    assert arrive(e, "a", 3, b=0) == []
    assert arrive(e, "a", 5, b=0) == []
    e.drop(["a"], 0.0)
    e.suspend(["a"])
    e.activate(["a"], (("a", 5), ("b", 0)), 0.0)
    e.awaken(["a"], 0.0)
    for number in (8, 7):
        assert arrive(e, "a", number, b=0) == []
    assert arrive(e, "b", 2, a=9) == ["a:7", "a:8"], "the oldest, behind what precedes it"
    assert e.held.size == 1


def test_the_oldest_is_sought_among_topics_held_not_among_those_whose_walk_is_under_way():
    e = engine("ab", mode="tag", buffer=1)
    assert arrive(e, "a", 3, b=5) == []
    e.suspend(["a"])
    assert arrive(e, "b", 5) == []
    assert arrive(e, "b", 7) == ["b:5"], "a:3 is older, but nobody knows yet where a starts"
    e.out = []
    e.activate(["a"], (("a", 1), ("b", 0)), 0.0)
    e.awaken(["a"], 0.0)
    assert delivered(e.out) == ["a:3"], "the oldest again"


def test_no_hash_decides_in_which_order_topics_are_looked_at():
    """Rule 3 of the contract, for every step: twenty topics move, twenty are pending."""

    class Asked(dict):
        def __init__(self, *args):
            super().__init__(*args)
            self.keys_asked = []

        def get(self, key, default=None):
            self.keys_asked.append(key)
            return super().get(key, default)

    topics = [f"t{number:02}" for number in range(40)]
    e = engine(topics[:20], pending=topics[20:], mode="tag", buffer=1)
    assert arrive(e, "t01", 5, **dict.fromkeys(topics[2:20], 4)) == []
    moved = []
    reached = e.held.reached
    e.held.reached = lambda topic, number: moved.append(topic) or reached(topic, number)
    e.held.topics = Asked(e.held.topics)
    assert arrive(e, "t00", 3, t01=5) == ["t01:5"]
    assert moved == topics[1:20]
    pending = [topic for topic in e.held.topics.keys_asked if topic in e.s.pending]
    assert pending == topics[20:] * 2, "to count what waits: before the oldest goes, and after"


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


@pytest.mark.parametrize("buffer", [0, 2, None])
def test_the_same_notifications_give_the_same_tags(buffer):
    """P9."""
    for seed in range(20):
        logs = []
        for _ in range(2):
            rng = Random(seed)
            e = engine("abc", mode="hold" if buffer is None else "tag", buffer=buffer)
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


@pytest.mark.parametrize(
    ("options", "seconds"),
    [({}, 1.0), ({"ttl": 0.3}, 0.3), ({"buffer": 4, "ttl": 2.0}, 2.0), ({"buffer": 4}, None)],
)
def test_an_event_that_waits_in_tag_mode_is_given_its_time(options, seconds):
    e = engine(mode="tag", **options)
    assert arrive(e, "a", 2, b=0) == []
    timers = [(each.name, each.after_s) for each in of(SetTimer, e.out)]
    assert timers == ([] if seconds is None else [("ttl/a/2", seconds)])
