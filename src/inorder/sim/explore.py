"""Many seeds of one scenario, each judged; what breaks is shrunk to its smallest story.

A *schedule* is one run: everything random in it comes from its seed, so the seed is the whole
reproduction. Scenarios for exploration use the biased network (sim/models.py) and drawn faults.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from inorder.check import BROKE, Verdict, judge
from inorder.guarantee.traced import FILTER
from inorder.sim.faults import describe
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario
from inorder.sim.shrink import fixed, shrink
from inorder.sim.simulate import simulate
from inorder.sim.workload import Story, tell

# The "promises" a run breaks when a machine dies of one of our own bugs, or never comes to rest.
MACHINE = "machine"
QUIET = "quiet"

FAILED = {MACHINE: "a machine failed", QUIET: "the world never comes to rest"}


class Failure(Struct, frozen=True):
    """A seed that broke promises, and the text that explains it."""

    seed: int
    broken: tuple[str, ...]
    story: str


class Explored(Struct, frozen=True):
    schedules: int
    failures: tuple[Failure, ...]
    marks: dict[str, int]
    # What the machines of all schedules counted, summed.
    account: dict[str, float] = {}


def explore(
    scenario: Scenario,
    seeds: Iterable[int],
    promises: Sequence[str] | None = None,
    *,
    failures_max: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Explored:
    """Run the seeds until so many of them have failed."""
    promises = promised(scenario) if promises is None else promises
    failures: list[Failure] = []
    marks: dict[str, int] = {}
    account: dict[str, float] = {}
    schedules = 0
    for seed in seeds:
        broken = run(scenario, seed, promises, marks=marks, account=account)[1]
        schedules += 1
        if broken:
            failures.append(_explain(scenario, seed, promises, broken))
            if len(failures) >= failures_max:
                break
        if progress:
            progress(schedules)
    return Explored(schedules, tuple(failures), marks, account)


def promised(scenario: Scenario) -> tuple[str, ...]:
    """What the scenario's guarantee claims to keep."""
    promises = scenario.guarantee.promises(scenario.options, scenario.kind)
    return (*promises, FILTER) if scenario.filtered else promises


def run(
    scenario: Scenario,
    seed: int,
    promises: Sequence[str],
    *,
    story: Story | None = None,
    marks: dict[str, int] | None = None,
    account: dict[str, float] | None = None,
) -> tuple[Memory, dict[str, Verdict]]:
    """One schedule and the promises it broke."""
    memory = Memory()
    try:
        outcome = simulate(scenario, seed, memory, story=story)
    except Exception as error:  # any bug of ours is a finding, not the end of the exploration
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        return memory, {MACHINE: Verdict(MACHINE, True, False, 1, why=why)}
    if marks is not None:
        for mark, count in outcome.marks.items():
            marks[mark] = marks.get(mark, 0) + count
    if account is not None:
        for name, figure in outcome.account.items():
            account[name] = account.get(name, 0.0) + figure
    verdicts = judge(memory.history(), promises)
    broken = {name: verdict for name, verdict in verdicts.items() if verdict.broken}
    if memory.ending is not None and not memory.ending.quiet:
        why = f"still to happen after {memory.ending.ended_at:g} s: " + ", ".join(
            memory.ending.under_way
        )
        broken[QUIET] = Verdict(QUIET, True, False, len(memory.ending.under_way), why=why)
    return memory, broken


def _explain(
    scenario: Scenario, seed: int, promises: Sequence[str], broken: dict[str, Verdict]
) -> Failure:
    names = tuple(broken)

    def fails(story: Story) -> bool:
        _, still = run(scenario, seed, promises, story=story)
        return names[0] in still

    story = fixed(tell(scenario, seed))
    run(scenario, seed, promises, story=story)  # fills the story's delays
    smallest, runs = shrink(story, fails)
    memory, still = run(scenario, seed, promises, story=smallest)
    verdict = still[names[0]]
    lines = [f"seed {seed}: {BROKE.get(names[0], FAILED.get(names[0], names[0]))}"]
    if verdict.why:
        lines.append(verdict.why)
    if verdict.witness:
        lines.append("witness: " + ", ".join(f"{k} {v}" for k, v in verdict.witness.items()))
    lines.append(f"the smallest story found in {runs} runs (luck {smallest.luck}):")
    lines += [f"  fault {describe(fault)}" for fault in smallest.faults]
    lines += memory.timeline()
    return Failure(seed, names, "\n".join(lines))
