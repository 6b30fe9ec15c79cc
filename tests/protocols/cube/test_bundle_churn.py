"""Bundling while peers come and go: nothing is lost, nothing stands still, causal order is kept.

The plans are those of world.py, and denser ones in which more is held.
"""

from __future__ import annotations

from random import Random

import pytest

from inorder.protocols.cube.holds import Holds
from inorder.protocols.cube.outlook import Outlook
from inorder.sim.pool import Op
from tests.protocols.cube.bundling import Bundled, run
from tests.protocols.cube.judge import Broken
from tests.protocols.cube.world import MOODS, Plan, draw

MODES = {
    "causal": {"aggregate": "causal"},
    "timer": {"aggregate": "timer"},
    "hybrid": {"aggregate": "hybrid"},
    "tau 0": {"aggregate": "hybrid", "tau": 0.0},
    "piggyback": {"aggregate": "hybrid", "piggyback": True},
    "small packets": {"aggregate": "hybrid", "mtu": 300},
    "adaptive": {"aggregate": "hybrid", "adapt": True},
    "single tree": {"aggregate": "causal", "trees": "single"},
    "single tree, hybrid": {"aggregate": "hybrid", "trees": "single"},
}


def dense(seed):
    """Many members who say much, of whom some leave and come again."""
    rng = Random(f"{seed}/dense")
    count = rng.choice((4, 7, 8, 8, 11, 16))
    members = [number for number in range(count) if rng.random() < 0.8]
    programs = {}
    for number in rng.sample(range(count), min(count, 6)):
        inside, ops = number in members, []
        for _ in range(rng.randint(2, 6)):
            verb = "publish" if inside else "subscribe"
            if inside and rng.random() < 0.2:
                verb = "unsubscribe"
            inside = inside != (verb != "publish")
            ops.append(Op(verb, ("t",), wait=rng.random() < 0.2))
        programs[number] = tuple(ops)
    doubled = rng.choice((0, 0, 1))
    return Plan(
        seed, count, rng.randint(2, 4), "causal", tuple(members), programs, rng.choice(MOODS),
        doubled,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_churn_under_a_judge(mode):
    for seed in range(60):
        run(draw(seed), **MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_dense_churn_under_a_judge(mode):
    held = 0.0
    for seed in range(60):
        bundled = run(dense(seed), **MODES[mode])
        accounts = [bundled.bundler(name).account() for name in bundled.machines]
        held += sum(account.get("held", 0.0) for account in accounts)
    assert held > 10 or mode == "timer"


def test_without_an_order_nothing_is_held():
    """Messages that know no causes are handed over as they come: to hold them would only delay."""
    for seed in range(40):
        bundled = run(draw(seed, guarantee="none"), aggregate="causal")
        assert not any(bundled.bundler(name).account()["held"] for name in bundled.machines)


# Controls: a rule is dropped, and some schedule breaks a promise.


def breaks(*whats, schedules=400, **chosen):
    """Whether the first dense schedule that breaks anything breaks one of these properties."""
    for seed in range(schedules):
        broken = _broken(seed, chosen)
        if broken:
            return broken in whats
    return False


def _broken(seed, chosen):
    try:
        run(dense(seed), **chosen)
    except Broken as error:
        return error.what
    return ""


def test_who_forgets_what_it_holds_when_it_leaves_blocks_others(monkeypatch):
    monkeypatch.setattr(Holds, "_view_has_changed", lambda self: False)
    assert breaks("L1", "L2", "L3", aggregate="causal")


def test_who_holds_for_what_it_does_not_expect_blocks_others(monkeypatch):
    """A relay, or a member that joined later, waits for what is never addressed to it."""

    def unwise(self, topic, name, place):
        origin, number = place
        have = topic.have[origin] if origin < len(topic.have) else 0
        return number > (0 if have >= 2**62 else have) or number < topic.start[origin]

    monkeypatch.setattr(Outlook, "_expects", unwise)
    assert breaks("L1", "L2", "L3", aggregate="causal")


def test_who_holds_without_being_in_blocks_others(monkeypatch):
    def view(self, name):
        topic = self._topic_of(name)
        return topic.members if topic is not None else None

    monkeypatch.setattr(Outlook, "view", view)
    assert breaks("L1", "L2", "L3", "machine", aggregate="causal")


def test_who_drops_what_comes_while_it_is_held_loses_it(monkeypatch):
    """The judge of the rig sees a lost copy."""
    take_out = Holds._take_out

    def forgetful(self, hold):
        pub = take_out(self, hold)
        for other in [each for each in self._held if each[0] == hold[0]][:1]:
            take_out(self, other)
        return pub

    monkeypatch.setattr(Holds, "_take_out", forgetful)
    assert breaks("L1", "L2", "L3", aggregate="causal")


def test_a_timer_that_is_never_set_blocks():
    class Deaf(Bundled):
        def _act(self, node, effect):
            if type(effect).__name__ != "SetTimer":
                super()._act(node, effect)

    with pytest.raises(Broken):
        Deaf(dense(1), aggregate="timer").run()
