"""Peers that crash: schedules judged (mourner.py), every cut of a small run, rules taken away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, product

import pytest
from msgspec import structs

from inorder.core.effect import Effect
from inorder.guarantee.peer import Peered
from tests.protocols.cube import crash_rules
from tests.protocols.cube.crashing import Node, Storm, Told, kind_of
from tests.protocols.cube.plans import Cut, Do, Pause, Plan, Strike, clocks, draw, neighbours
from tests.protocols.cube.storm import broken, run, shrunk, story


def judged(plan: Plan) -> Storm:
    try:
        return run(plan)
    except Exception:
        print(plan, *story(shrunk(plan)), sep="\n")
        raise


def test_what_one_living_member_has_all_living_members_have():
    """Up to 16 peers that join, leave, publish and answer while others crash in the middle of an
    input, stand still, are cut off, answer late, and come back or do not."""
    marks: Counter[str] = Counter()
    lives = refused = 0
    for seed in range(150):
        storm = judged(draw(seed))
        marks.update(storm.marks)
        lives += sum(node.machine.life > 1 for node in storm.nodes.values() if node.alive)
        refused += storm.judge.refused
    # That much has happened: what the issue of crashes asks for, and cuts in all kinds of waves.
    assert marks["resplit"] >= 100
    assert marks["rebroadcast"] >= 30
    assert marks["flush_again"] >= 30
    assert marks["discarded"] >= 30
    assert marks["suspect wrongly"] >= 0.1 * marks["suspect"]
    for kind in ("Sub", "Act", "Uns", "Pub", "Ack", "Flush"):
        assert marks[f"cut {kind}"] >= 5, kind
    assert marks["withdraw"] > 100
    assert marks["declare"] > 100
    assert marks["minority"] > 10
    assert lives > 100
    assert refused > 0


def test_so_do_members_that_never_change_with_clocks():
    """Chapter 4 of the thesis: everybody is a member from the start, publications are bundled by
    their clocks; a peer that comes back joins again."""
    marks: Counter[str] = Counter()
    for seed in range(25):
        marks.update(judged(clocks(draw(seed))).marks)
    assert min(marks[mark] for mark in ("resplit", "rebroadcast", "flush_again")) >= 30
    assert marks["discarded"] >= 10


def test_so_do_peers_that_talk_to_their_neighbours_only():
    marks: Counter[str] = Counter()
    for seed in range(40):
        storm = judged(neighbours(draw(seed)))
        marks.update(storm.marks)
    assert marks["marked"] >= 100
    assert min(marks[mark] for mark in ("resplit", "flush_again")) >= 30


def test_clocks_and_whole_stamps_keep_the_order_while_members_come_and_go():
    for seed in range(8):
        judged(structs.replace(draw(seed), order={"stamps": "clock"}))
        judged(structs.replace(draw(seed), order={"stamps": "whole"}))


def test_a_seed_is_the_whole_reproduction_of_a_storm():
    for seed in (3, 17):
        assert story(draw(seed)) == story(draw(seed))
    assert story(draw(3)) != story(draw(4))


# Every cut of a small run.

# Four peers: 0 and 1 publish and answer, 2 joins, 3 leaves.
SMALL = Plan(
    5, 4, 2, (0, 1, 3),
    (Do(0.6, 0, "publish"), Do(0.62, 2, "toggle"), Do(0.64, 1, "publish"),
     Do(0.9, 0, "publish"), Do(0.91, 3, "toggle"), Do(0.93, 2, "publish")),
    reply=0.2,
)  # fmt: skip


class Listed(Storm):
    """Remembers the inputs of the calls' time whose effects a crash can cut."""

    def __init__(self, plan: Plan) -> None:
        self.cuts: list[tuple[int, int, int, str]] = []
        super().__init__(plan)

    def _carry(self, node: Node, effects: list[Effect]) -> None:
        kinds = {*map(kind_of, effects)} - {""}
        if 0.5 < self.now < 1.6 and kinds:
            number = self.peers.ids[node.name]
            self.cuts.append((number, node.inputs + 1, len(effects), " ".join(sorted(kinds))))
        super()._carry(node, effects)


def cuts() -> list[tuple[Strike, str]]:
    listed = Listed(SMALL)
    listed.run()
    return [
        (Strike(node, number, behind, None), kinds)
        for node, number, count, kinds in listed.cuts
        for behind in range(count + 1)
    ]


@pytest.mark.parametrize(
    ("back", "lost_s"), [(None, 0.0), (None, 1.0), (0.4, 0.0), (6.0, 1.0)],
    ids=["dead", "dead, with what it sent", "back at once", "back late, with what it sent"],
)  # fmt: skip
def test_every_place_of_every_input_can_be_the_last(back, lost_s):
    """Whoever dies, in whichever wave, behind whichever effect: leaf, inner node, child of the
    root, source; with and without what was under way."""
    tried: Counter[str] = Counter()
    for strike, kinds in cuts():
        fault = structs.replace(strike, back=back, lost_s=lost_s)
        judged(structs.replace(SMALL, faults=(fault,)))
        tried.update(kinds.split())
    assert min(tried[kind] for kind in ("Sub", "Act", "Uns", "Pub", "Ack")) >= 5, tried


def test_two_deaths_on_one_path():
    """Every pair of the peers that carry peer 0's publication to 7, each behind some effects."""
    plan = Plan(1, 8, 2, tuple(range(8)), (Do(0.6, 0, "publish"),))
    resplits = 0
    for pair in combinations((0, 4, 6, 7), 2):
        for parts in product((0.0, 0.4, 0.9), repeat=2):
            deaths = tuple(
                Cut(0.6, node, "Pub" if node != 7 else "Ack", part, None, 0.2)
                for node, part in zip(pair, parts, strict=True)
            )
            resplits += judged(structs.replace(plan, faults=deaths)).marks["resplit"]
    assert resplits >= 20


# Agreement of those that join late: docs/causal.md, third argument.

# 6 publishes, and 0 is not reached; 7 rests on that and publishes; 1 joins in between. 6 and 7 die.
LATE = Plan(
    1, 8, 2, (0, 6, 7), (Do(1.0, 6, "publish"), Do(1.1, 1, "toggle"), Do(2.0, 7, "publish")),
    (Cut(2.4, 6, "", 0.0, None), Cut(2.4, 7, "", 0.0, None)), mute=((6, 0),),
)  # fmt: skip


def test_who_joins_late_agrees_on_what_rests_on_a_lost_event(monkeypatch):
    storm = judged(LATE)
    assert storm.marks["discarded"] == 1
    assert not storm.judge.fates["p07:1"].delivered.keys() & {"p00", "p01"}
    crash_rules.answers_at_once(monkeypatch)
    assert broken(LATE) == "agreement"


def test_a_second_question_is_answered_although_its_member_goes_on_publishing():
    """Only publications of before the question are waited for."""
    calls = tuple(Do(1.0 + 0.05 * n, 0, "publish") for n in range(80))
    plan = Plan(1, 4, 4, (0, 1, 2), (*calls, Do(1.5, 3, "toggle")), mood="even")
    storm = Storm(structs.replace(plan, calls=tuple(sorted(plan.calls, key=lambda do: do.at))))
    while not storm.judge.of("p03", "t").told:
        storm.step()
    assert storm.now < 3.0
    while storm.now < 4.9:
        storm.step()
    assert len(storm.judge.launches) > 40


# Suspicions.

SLOW = Plan(
    2, 8, 2, tuple(range(8)), tuple(Do(0.5 + n, n, "publish") for n in range(6)),
    tuple(Pause(0.7 + n, (3 * n) % 8, 1.8 + n) for n in range(5)),
)  # fmt: skip


def test_peers_that_are_only_slow_are_suspected_and_not_declared(monkeypatch):
    storm = judged(SLOW)
    assert storm.marks["suspect"] == storm.marks["suspect wrongly"] > 10
    assert storm.marks["withdraw"] == storm.marks["suspect"]
    assert storm.marks["declare"] == storm.marks["life"] == 0
    crash_rules.suspicions_stay(monkeypatch)
    made = Storm(SLOW)
    made.run()
    assert made.marks["declare"] > 0
    assert made.marks["life"] > 0


# Each rule taken away; within how many seeds the judge complains.

RULES: dict[str, int] = {
    "nobody_takes_over": 5, "waits_for_the_dead": 5, "new_trees_go_through_the_dead": 10,
    "one_task_a_message": 5, "asks_nobody": 5, "old_words_count": 5, "nothing_remains": 5,
    "nobody_sends_the_rest": 20, "lost_before_the_rest_has_come": 20,
    "launches_while_flushing": 60, "stable_at_the_launch": 40, "keeps_nothing": 10,
    "a_minority_goes_on": 60, "listens_to_the_dead": 60, "dead_is_dead": 5,
    "does_not_join_again": 5, "tells_no_gap": 5, "forgets_its_life": 40,
    "forgets_its_numbers": 5, "forgets_to_change": 5, "joins_on": 20, "stays_in_views": 5,
    "accepts_what_died_half_way": 20, "refuses_what_died_half_way": 5, "past_of_a_former_life": 5,
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_schedules_with_crashes_break_without_the_rule(rule, monkeypatch):
    getattr(crash_rules, rule)(monkeypatch)
    assert any(broken(draw(seed)) for seed in range(RULES[rule])), "no schedule needs the rule"


# Of peers that talk to their neighbours: seeds of which one breaks.
WAYS = {"comes_back_to_nobody": range(20), "unmarked": (38,), "the_rest_of_any_flush": (172,)}


@pytest.mark.parametrize("rule", WAYS)
def test_ways_around_the_dead_break_without_the_rule(rule, monkeypatch):
    getattr(crash_rules, rule)(monkeypatch)
    assert any(broken(neighbours(draw(seed))) for seed in WAYS[rule]), "no schedule needs the rule"


# 0 publishes for 12. Both ways of two edges lead through the dead, 4 and 8, who are only suspected
# yet: there is 1, 5, 13, 12.
AROUND = Plan(
    1, 16, 2, (0, 12), (Do(2.0, 0, "publish"),),
    (Cut(0.4, 4, "", 0.0, None), Cut(0.4, 8, "", 0.0, None)), watch="neighbours",
)  # fmt: skip


def until(plan: Plan, end: float) -> Storm:
    storm = Storm(plan)
    while storm.now < end:
        storm.step()
    return storm


def test_a_way_around_two_dead_neighbours_is_found_at_once():
    storm = until(AROUND, 3.0)
    assert storm.marks["declare"] == 0
    assert storm.judge.fates["p00:1"].delivered.keys() == {"p00", "p12"}
    assert storm.marks["marked"] == 3
    judged(AROUND)


def test_every_rule_that_can_be_taken_away_is():
    named = {
        name for name, rule in vars(crash_rules).items()
        if callable(rule) and not name.startswith("_") and rule.__module__ == crash_rules.__name__
    }  # fmt: skip
    assert named == {*RULES, *WAYS, "answers_at_once", "suspicions_stay"}


# The whole state.


class Restored(Told):
    """Before each input the peer is built again from its snapshot."""

    def _again(self) -> None:
        before = self.snapshot()
        other = Peered.restore(before)
        assert other.snapshot() == before
        gave, order = self.gave, self.order
        self.__dict__.clear()
        self.__init__(other.name, other.peers, other.options, order)  # type: ignore[misc]
        self.set_inner(other.inner)
        self.become(other.packed())
        self.gave = gave


def restored(verb: str) -> Callable[..., list[Effect]]:
    def again(self: Restored, *given: object) -> list[Effect]:
        self._again()
        effects: list[Effect] = getattr(Told, verb)(self, *given)
        return effects

    return again


for each in ("receive", "fire", "publish", "subscribe", "unsubscribe"):
    setattr(Restored, each, restored(each))


class Again(Storm):
    peered = Restored


@pytest.mark.parametrize("watch", ["cube", "neighbours"])
def test_a_peer_restored_before_every_input_does_the_same_where_peers_crash(watch):
    for seed in (6, 30):
        plan = structs.replace(draw(seed, count=5), watch=watch, mood="even", loss=0.0)
        lines = []
        for kind in (Storm, Again):
            storm = kind(plan)
            storm.told = True
            storm.run()
            lines.append(storm.lines)
        assert lines[0] == lines[1], f"seed {seed}"
