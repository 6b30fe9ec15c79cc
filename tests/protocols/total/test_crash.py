"""Crash between any two effects: exhaustively, in a small run (P11, scenarios 19, 23, 24)."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.sim import faults
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import build
from inorder.sim.workload import Workload, tell
from tests.protocols.total.schedules import problems

SWAP_AT = 0.5


def scenario(**order: Any) -> Scenario:
    return from_table(
        {
            "topics": 3,
            "duration": 1.2,
            "settle": 100.0,
            "messages": False,
            "order": {"guarantee": "total", **order},
            "network": {"model": "delay", "delay": {"law": "constant", "mean": 0.05}},
            "publishers": {"count": 2, "rate": 1.5, "topics": "own"},
            "subscribers": [
                {"name": "a", "topics": ["t1", "t2"]},
                {"name": "b", "topics": ["t2", "t3"]},
            ],
            "faults": {"until": 3.0},
        }
    )


def play(chosen: Scenario, crash: tuple[str, int, int] | None) -> tuple[list[str], dict[str, Any]]:
    """Run it; crash a node at its n-th input, behind so many effects."""
    memory = Memory()
    story = tell(chosen, 1)
    world = build(chosen, 1, memory, story=story)
    world.application = Workload(world, chosen, 1, story)
    counts: dict[str, list[int]] = {}
    carry_out = world._carry_out

    def counted(node: Any, effects: Any) -> None:
        inputs = counts.setdefault(node.name, [])
        if crash is not None and crash[:2] == (node.name, len(inputs)):
            node.plan_crash(crash[2], 0.3)
        inputs.append(len(effects))
        carry_out(node, effects)

    world._carry_out = counted  # type: ignore[method-assign]
    if "ranking" in world.nodes:
        world.agenda.at(SWAP_AT, _swap, world)
    faults.schedule(world, (), 3.0)
    world.agenda.run(103.0)
    inputs_until = {name: list(inputs) for name, inputs in counts.items()}
    # Whoever has crashed last is renewed to once more.
    world.agenda.run(120.0)
    world.finish()
    return problems(memory, world, chosen), inputs_until


def _swap(world: Any) -> None:
    node = world.nodes["ranking"]
    if node.alive:
        world._carry_out(node, node.machine.reorder(("t3", "t1", "t2"), world.agenda.now))


@pytest.mark.parametrize(
    "order",
    [{"mode": "hold"}, {"mode": "tag", "buffer": 0}, {"mode": "hold", "swaps": "on"}],
    ids=["hold", "tag", "swap"],
)
def test_a_crash_between_any_two_effects_breaks_nothing(order):
    chosen = scenario(**order)
    wrong, counts = play(chosen, None)
    assert wrong == []
    points = [
        (name, number, effects)
        for name, inputs in sorted(counts.items())
        for number, size in enumerate(inputs)
        for effects in range(size + 1)
    ]
    assert len(points) > 150
    for point in points:
        wrong, _ = play(chosen, point)
        assert wrong == [], point
