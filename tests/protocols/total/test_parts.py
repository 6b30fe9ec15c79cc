"""The small parts: groups, paths, options, stamps, metrics."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from inorder.core.errors import BadScenario, Misuse, TooLarge
from inorder.core.limits import HELD_EVENTS_MAX
from inorder.protocols.total import Directory, Options, promises, services
from inorder.protocols.total.groups import Group
from inorder.protocols.total.metric import f
from inorder.protocols.total.path import Path, forest, path_of
from inorder.protocols.total.reader import Rows, for_reader
from inorder.protocols.total.stamp import consistent, precedes, raise_to
from inorder.protocols.total.version import life_of, version_of

# Groups.


def test_one_common_subscriber_is_enough_to_sequence_two_topics():
    group = Group("t", 1, {})
    group.register("a", 1, ("t", "u"))
    assert group.others == ("u",)
    assert Group("t", 2, dict(group.subs)).others == ()


def test_an_older_registration_never_replaces_a_newer_one():
    group = Group("t", 1, {})
    assert group.register("a", 2, ("t", "u"))
    assert not group.register("a", 1, ())
    assert group.others == ("u",)


def test_a_tombstone_keeps_the_version():
    group = Group("t", 1, {})
    group.register("a", 1, ("t", "u"))
    group.register("a", 3, ())
    assert group.holders == []
    assert not group.register("a", 2, ("t", "u"))
    assert group.others == ()


def test_counting_pairs_agrees_with_counting_again():
    rng = Random(1)
    group = Group("t0", 1, {})
    for version in range(1, 300):
        topics = tuple(sorted({"t0", *(f"t{rng.randrange(1, 6)}" for _ in range(3))}))
        group.register(rng.choice("abcd"), version, topics if rng.random() < 0.7 else ())
        anew = {t for each in group.subs.values() for t in each.topics} - {"t0"}
        assert group.others == tuple(sorted(anew))


def test_versions_of_a_new_life_are_newer():
    assert version_of(2, 1) > version_of(1, 2**31)
    assert life_of(version_of(9, 4)) == 9


# Paths.


def walk_up(path, at, target):
    way = [at]
    while at != target:
        at = path.next(at, target)
        way.append(at)
    return way


def test_the_chain_passes_every_home_and_skips_what_it_can_inside_one():
    order = ["a", "b", "c", "d", "e"]
    path = Path("chain", order, Directory(order, 2))
    assert walk_up(path, "e", "a") == ["e", "d", "b", "a"]
    assert walk_up(path, "d", "c") == ["d", "c"]


def test_the_chain_leaves_out_no_run_of_homes_whatever_the_order():
    """Two messages that meet go on over the same links, also when a home is passed twice."""
    rng = Random(3)
    topics = [f"t{n}" for n in range(7)]
    for _ in range(100):
        directory = Directory(topics, rng.randint(1, 3))
        order = rng.sample(topics, len(topics))
        path = Path("chain", order, directory)
        homes = [directory.home(topic) for topic in order]
        run = {t: sum(homes[m] != homes[m - 1] for m in range(1, n + 1))
               for n, t in enumerate(order)}  # fmt: skip
        low, high = sorted(rng.sample(range(7), 2), reverse=True)
        runs = [run[topic] for topic in walk_up(path, order[low], order[high])]
        assert all(before - after in (0, 1) for before, after in pairwise(runs))


def test_a_forest_puts_every_set_on_one_line_and_parents_above():
    rng = Random(4)
    topics = [f"t{n}" for n in range(8)]
    directory = Directory(topics)
    for _ in range(100):
        sets = [rng.sample(topics, rng.randint(1, 4)) for _ in range(rng.randint(1, 5))]
        parents = forest(topics, sets)
        path = Path("forest", topics, directory, parents)
        assert all(path.covers(each) for each in sets)
        assert all(path.rank[parent] < path.rank[topic] for topic, parent in parents.items())


def test_an_empty_forest_covers_single_topics_only():
    path = Path("forest", ["a", "b"], Directory(["a", "b"]))
    assert path.covers(["a"])
    assert not path.covers(["a", "b"])


def test_the_first_order_with_parents_is_not_the_first_path():
    """A forest may be installed without a change of the order."""
    directory = Directory(["a", "b", "c"])
    first = path_of("forest", directory.topics, directory)
    later = path_of("forest", directory.topics, directory, (("c", "a"),))
    assert (first.parents, later.parents) == ({}, {"c": "a"})
    assert path_of("forest", directory.topics, directory) is first
    assert path_of("forest", ("b", "a", "c"), directory).order == ("b", "a", "c")


# Stamps.


def test_a_clock_never_goes_back():
    clock = {"a": 5}
    raise_to(clock, [("a", 3), ("b", 0)])
    assert clock == {"a": 5, "b": 0}


def test_stamps_that_wait_for_each_other_are_inconsistent():
    assert not consistent("a", 1, (("b", 1),), "b", 1, (("a", 1),))
    assert not consistent("a", 1, (("b", 0),), "b", 1, (("a", 0),))
    assert consistent("a", 1, (("b", 0),), "b", 1, (("a", 1),))


def test_compact_stamps_order_events_too():
    """The higher event says nothing of the lower, but the lower says which comes first."""
    assert precedes("low", 1, (("high", 0),), "high", 1, ())
    assert not precedes("low", 1, (("high", 1),), "high", 1, ())


# Options.


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("order.stamp", {"mode": "hold", "stamp": "compact"}),
        ("order.path", {"mode": "hold", "path": "sg"}),
        ("order.ttl", {"mode": "hold", "ttl": 1.0}),
        ("order.buffer", {"mode": "hold", "buffer": 0}),
        ("order.stamp", {"mode": "tag", "buffer": 5, "stamp": "compact"}),
        ("order.path", {"mode": "tag", "buffer": 5, "path": "sg"}),
        ("order.ttl", {"mode": "tag", "buffer": 0, "ttl": 1.0}),
        ("order.ttl", {"mode": "tag", "stamp": "compact", "ttl": 1.0}),
        ("order.ttl", {"mode": "tag", "path": "sg", "ttl": 1.0}),
        ("order.window", {"window": 0}),
        ("order.topics_per_stage", {"topics_per_stage": 0}),
        ("order.resend", {"resend": 0.0}),
    ],
)
def test_options_that_do_not_go_together_name_the_key(key, options):
    with pytest.raises(BadScenario) as refused:
        Options(**options)
    assert refused.value.key == key


@pytest.mark.parametrize(
    ("options", "room", "patience"),
    [
        ({"mode": "tag"}, 30, 1.0),
        ({"mode": "tag", "path": "forest"}, 30, 1.0),
        ({"mode": "tag", "ttl": 0.2}, 30, 0.2),
        ({"mode": "tag", "buffer": 0}, 0, None),
        ({"mode": "tag", "buffer": 7}, 7, None),
        ({"mode": "tag", "buffer": 7, "ttl": 0.2}, 7, 0.2),
        ({"mode": "tag", "stamp": "compact"}, 0, None),
        ({"mode": "tag", "path": "sg"}, 0, None),
        ({"mode": "tag", "stamp": "compact", "path": "sg"}, 0, None),
        ({"mode": "hold"}, HELD_EVENTS_MAX, None),
        ({"mode": "hold", "buffer": 7}, 7, None),
    ],
)
def test_tag_waits_a_little_unless_told_otherwise_where_it_knows_what_is_missing(
    options, room, patience
):
    chosen = Options(**options)
    assert (chosen.room, chosen.patience, chosen.buffered) == (room, patience, room > 0)


def test_a_reader_of_rows_does_not_wait_unless_told_to():
    """A number that a filter kept back looks like one that is missing."""
    assert not for_reader(Options(mode="tag")).buffered
    assert for_reader(Options(mode="tag", buffer=3)) == Options(mode="tag", buffer=3)
    assert for_reader(Options(mode="tag", ttl=0.1)).room == 30
    held = for_reader(Options())
    assert (held.mode, held.room, held.patience) == ("tag", HELD_EVENTS_MAX, None)
    waits = Rows().waits_for_all
    assert not waits(Options(mode="tag"))
    assert waits(Options(mode="tag", ttl=0.1))
    assert waits(Options())


def test_the_papers_threshold_promises_no_total_order():
    assert "total" in promises(Options())
    assert promises(Options(threshold=2)) == ("causal", "fifo", "unique")
    assert promises(Options(threshold=2, mode="tag")) == ("causal", "fifo", "unique", "reliable")


def test_a_static_order_needs_no_ranking():
    assert sorted(services(["a", "b"], Options())) == ["stage1", "stage2"]
    assert "ranking" in services(["a"], Options(swaps="on"))
    assert "ranking" in services(["a"], Options(path="forest"))


def test_more_topics_than_a_stamp_may_carry_are_refused(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.STAMP_ENTRIES_MAX", 2)
    services(["a", "b"], Options())
    with pytest.raises(TooLarge):
        services(["a", "b", "c"], Options())


def test_a_topic_named_twice_is_refused():
    with pytest.raises(Misuse):
        Directory(["a", "a"])


def test_f_saturates_as_the_errata_computed():
    """E6: beyond 44 events no topic can exceed this one by 0.2."""
    assert f(44, 0.1) + 0.2 > 1.0 > f(43, 0.1) + 0.2
