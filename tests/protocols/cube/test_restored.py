"""Snapshots: a peer restored before every input does the same; equal states have equal bytes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec import structs

from inorder.guarantee.peer import Peered
from inorder.protocols.cube.messages import MEMBER
from inorder.sim.pool import Op
from tests.protocols.cube.tiny import CASES, Tiny, pool
from tests.protocols.cube.world import Cube, Drawn, Plan, draw


class Restored(Drawn):
    """Before each input the peer is built again from its snapshot."""

    def _again(self, node: str) -> None:
        before = self.machines[node].snapshot()
        self.machines[node] = Peered.restore(before)
        assert self.machines[node].snapshot() == before

    def _do(self, node: str, op: Op) -> list[Any]:
        self._again(node)
        return super()._do(node, op)

    def step(self) -> None:
        for node in self.machines:
            self._again(node)
        super().step()


def told(kind: type[Drawn], plan: Plan) -> list[str]:
    drawn = kind(plan)
    drawn.told = True
    drawn.run()
    return drawn.lines


@pytest.mark.parametrize("guarantee", ["none", "causal"])
def test_a_peer_restored_before_every_input_does_the_same(guarantee):
    for seed in range(60):
        plan = draw(seed, counts=(1, 2, 4, 5, 8), guarantee=guarantee)
        assert told(Restored, plan) == told(Drawn, plan), f"seed {seed}"


@pytest.mark.parametrize("stamps", ["whole"])
def test_so_does_one_with_other_stamps(stamps):
    for seed in range(20):
        plan = structs.replace(draw(seed, counts=(4, 5, 8)), order={"stamps": stamps})
        assert told(Restored, plan) == told(Drawn, plan), f"seed {seed}"


def test_a_snapshot_holds_waves_calls_early_publications_and_holes():
    """That the runs above have been through all of these states."""
    seen: set[str] = set()
    for seed in range(60):
        drawn = Drawn(draw(seed, counts=(8, 12)))
        while drawn.flight:
            drawn.step()
            for machine in drawn.machines.values():
                assert isinstance(machine, Peered)
                state = machine.packed()
                seen |= {"waves"} if state.trees.waves else set()
                for topic in state.topics.values():
                    seen |= {name for name in ("calls", "early", "ahead") if getattr(topic, name)}
                    seen.add(topic.phase)
    assert seen == {"waves", "calls", "early", "ahead", "out", "join", "act", "in", "leave"}


def test_states_that_differ_only_in_the_order_of_events_that_commute_are_equal():
    """Two acknowledgements of one wave, in both orders."""
    made = [pool(CASES["P1"]) for _ in range(2)]
    snapshots = []
    for tiny, order in zip(made, ("bc", "cb"), strict=True):
        tiny.eager = False
        take(tiny, "do", "a")
        for node in "bc":
            take(tiny, "receive", node, "a")
        for node in order:
            take(tiny, "receive", "a", node)
        snapshots.append([machine.snapshot() for machine in tiny.machines.values()])
    assert snapshots[0] == snapshots[1]
    assert made[0].key() == made[1].key()


def test_states_that_differ_have_different_snapshots():
    made = pool(CASES["P1"])
    made.eager = False
    seen = {made.key()}
    for kind, node, source in (
        ("do", "a", ""), ("receive", "b", "a"), ("receive", "a", "b"), ("receive", "c", "a"),
    ):  # fmt: skip
        before = made.machines[node].snapshot()
        take(made, kind, node, source)
        assert made.machines[node].snapshot() != before
        assert made.key() not in seen
        seen.add(made.key())


def take(made: Tiny, kind: str, node: str, source: str = "") -> None:
    [step] = [
        step
        for step in made.steps()
        if (step.kind, step.node) == (kind, node) and source in ("", step.source)
    ]
    made.take(step)


# Preset memberships.


def joined(count: int, members: list[int], guarantee: str, seed: int) -> Cube:
    """A cube whose members have joined one after the other, in this order."""
    plan = Plan(seed, count, 1, guarantee, mood="even")
    drawn = Drawn(plan)
    for number in members:
        drawn._carry(plan.names[number], drawn._do(plan.names[number], Op("subscribe", ("t",))))
        while drawn.flight:
            drawn.step()
    drawn.finish()
    return drawn


def known(cube: Cube) -> list[list[object]]:
    """What the peers know of the topic: their snapshots but for what is on their disks."""
    found = []
    for machine in cube.machines.values():
        assert isinstance(machine, Peered)
        state = machine.packed()
        topics = {
            name: structs.replace(topic, reserved=0)
            for name, topic in state.topics.items()
            if topic.phase != "out"
        }
        found.append([state.name, topics, state.calls, state.trees, machine.inner.snapshot()])
    return found


@pytest.mark.parametrize("guarantee", ["none", "causal"])
@pytest.mark.parametrize("count", [1, 5, 64])
def test_preset_members_are_what_members_are_that_have_joined(count, guarantee):
    names = Plan(0, count, 1).names
    members = sorted(Random(f"{count}").sample(range(count), (count + 1) // 2))
    late = joined(count, members, guarantee, seed=1)
    preset = Cube(names, ["t"], 1, guarantee, [names[number] for number in members])
    assert known(preset) == known(late)
    assert preset.judge.members("t") == late.judge.members("t")


def test_the_order_of_joining_leaves_no_trace():
    members = list(range(0, 16, 2))
    back = [*reversed(members)]
    assert known(joined(16, members, "causal", 1)) == known(joined(16, back, "causal", 2))


@pytest.mark.parametrize("guarantee", ["none", "causal"])
def test_preset_members_go_on_as_those_that_have_joined(guarantee):
    """The same calls and the same schedule: the same deliveries, messages and answers."""
    for seed in range(40):
        calls = {0: (Op("publish", ("t",)),) * 3, 3: (Op("publish", ("t",)),) * 2,
                 5: (Op("unsubscribe", ("t",)), Op("subscribe", ("t",)), Op("publish", ("t",))),
                 7: (Op("subscribe", ("t",)),)}  # fmt: skip
        plan = Plan(seed, 8, 2, guarantee, members=(0, 3, 5, 6), programs=calls, mood="links")
        preset = Drawn(plan)
        late = Drawn(structs.replace(plan, members=(), programs={}))
        for number in plan.members:
            name = plan.names[number]
            late._carry(name, late._do(name, Op("subscribe", ("t",))))
            while late.flight:
                late.step()
        fresh = Drawn(structs.replace(plan, members=()))
        late.rng, late.flight, late._slow = fresh.rng, fresh.flight, {}
        late._later, late.programs = fresh._later, fresh.programs
        for drawn in (preset, late):
            drawn.told = True
            drawn.lines.clear()
            drawn.run()
        assert late.lines == preset.lines, f"seed {seed}"


def test_a_preset_peer_can_be_restored_before_its_application_subscribes():
    """What presetting does in one go, a restored peer does one origin at a time."""
    names = Plan(0, 8, 1).names
    made = [Cube(names, ["t"]) for _ in range(2)]
    for cube, again in zip(made, (False, True), strict=True):
        from inorder.sim import cube as presetting

        presetting.preset(cube.machines.values(), ["t"], names[:5])
        for name in names[:5]:
            if again:
                cube.machines[name] = Peered.restore(cube.machines[name].snapshot())
            cube.perform(name, Op("subscribe", ("t",)))
    assert known(made[0]) == known(made[1])
    assert made[0].judge.members("t") == made[1].judge.members("t") == {*names[:5]}
    assert all(peer._topics["t"].role == MEMBER for peer in map(made[1].peer, names[:5]))
