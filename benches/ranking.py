"""The topic order that follows the publications, in virtual time: its gain, a change's cost.

Figures are seconds from `publish` to `accepted`, and do not depend on this machine.

- forty topics, 20 events a second, everybody holds everything: the worst order and the best,
  neither changed, and ours from the worst on. Over a WAN, where some links are slow and the order
  decides over which of them an event travels, and with all links alike;
- a thousand topics, held five at a time, on links of 10 ms;
- ten groups of four topics while one stage stands still for a minute: before a change of the order
  begins, and in the middle of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import build
from inorder.sim.workload import Publication, Story, Workload, tell
from inorder.sim.world import World

RATE = 20.0
SEEDS = (1, 2, 3)
WAN_SEEDS = tuple(range(1, 11))
Rows = list[Any]


ALIKE = {"model": "delay", "delay": {"law": "constant", "mean": 0.01}}
WAN = {"model": "wan"}


def market(
    topics: int, events: int, per: int | None, network: dict[str, Any], **order: Any
) -> Scenario:
    """Publishers that pick topics by Zipf's law (0.9), in the order of the topics."""
    return from_table({
        "topics": [f"t{number:04d}" for number in range(1, topics + 1)],
        "duration": events / RATE,
        "settle": 600.0,
        "messages": False,
        "order": {"guarantee": "total", "mode": "tag", **order},
        "network": network,
        "publishers": {"count": 10, "rate": RATE / 10, "arrivals": "poisson",
                       "topics": "zipf", "exponent": 0.9},
        "subscribers": [{"count": 100, "topics": "uniform", "per": per} if per
                        else {"count": 3, "topics": "all"}],
    })  # fmt: skip


def play(
    scenario: Scenario, seed: int, worst: bool = False, act: Callable[[World], None] | None = None
) -> tuple[Rows, dict[str, int]]:
    """The events of a run, in order of publication, and the marks of the machines."""
    memory = Memory()
    story = tell(scenario, seed)
    if worst:
        story = _upside_down(story, scenario.topic_names)
    world = build(scenario, seed, memory, story=story)
    world.application = Workload(world, scenario, seed, story)
    if act:
        act(world)
    world.agenda.run(scenario.duration + scenario.settle)
    world.finish()
    rows = sorted(memory.rows["events"], key=lambda row: row.published_at)
    return rows, world.marks


def _upside_down(story: Story, names: tuple[str, ...]) -> Story:
    """The same publications, but the busiest topic is the lowest."""
    other = dict(zip(names, reversed(names), strict=True))

    def turned(publications: Any) -> Iterator[Publication]:
        for each in publications:
            yield replace(each, topic=other[each.topic])

    return replace(
        story, publications={name: turned(some) for name, some in story.publications.items()}
    )


def waits(rows: Rows) -> list[float]:
    return [row.accepted_at - row.published_at for row in rows]


def spread(values: list[float], digits: int = 2) -> str:
    low, high = min(values), max(values)
    return f"{mean(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def adaptive(
    topics: int, events: int, starts: tuple[int, ...], per: int | None, network: dict[str, Any]
) -> None:
    """The mean wait from some event on, and all changes made."""
    ways: dict[str, dict[str, Any]] = {
        "best order, unchanged": {},
        "ours, from the worst order on": {"swaps": "on", "worst": True},
        "the report's swaps (f), from the worst": {"swaps": "on", "metric": "f", "worst": True},
        "worst order, unchanged": {"worst": True},
    }
    seeds = SEEDS if network is ALIKE else WAN_SEEDS
    if topics > 100:
        # Minutes of work, and the report's swaps come nowhere near.
        del ways["the report's swaps (f), from the worst"]
        seeds = seeds[:1]
    where = "all links alike" if network is ALIKE else "over a WAN"
    table = Table(title=f"{topics} topics, {where}: accepted after, in seconds")
    for heading in ("order", "from event", "mean", "beside the best", "changes"):
        table.add_column(heading, justify="left" if heading == "order" else "right")
    best: dict[int, list[float]] = {}
    for name, way in ways.items():
        order = {key: value for key, value in way.items() if key != "worst"}
        scenario = market(topics, events, per, network, **order)
        runs = [play(scenario, seed, worst="worst" in way) for seed in seeds]
        changes = [float(marks.get("change_made", 0)) for _, marks in runs]
        for start in starts:
            means = [mean(waits(rows[start:])) for rows, _ in runs]
            yardstick = best.setdefault(start, means)
            ratio = [ours / theirs for ours, theirs in zip(means, yardstick, strict=True)]
            table.add_row(name, f"{start:,}", spread(means), spread(ratio), spread(changes, 0))
    Console(width=110).print(table)


# A stage that stands still.

GROUPS = 10
STILL_S = 60.0
AT_S = 20.0


def groups() -> Scenario:
    names = [f"t{number:04d}" for number in range(1, 4 * GROUPS + 1)]
    return from_table({
        "topics": names,
        "duration": 100.0,
        "settle": 600.0,
        "messages": False,
        "order": {"guarantee": "total", "mode": "tag", "swaps": "on", "metric": "f", "beta": 10.0},
        "network": {"model": "wan"},
        "publishers": {"count": 40, "rate": RATE / 40, "arrivals": "poisson", "topics": "own"},
        "subscribers": [
            {"name": f"g{number}s", "count": 2, "topics": names[4 * number : 4 * number + 4]}
            for number in range(GROUPS)
        ],
    })  # fmt: skip


def changed(order: list[str], much: bool) -> list[str]:
    """The two highest of every group (or of the first three only) change places. The lowest of a
    group, whose stage will stand still, stays the lowest: nobody's way leads over it."""
    new = list(order)
    for first in range(0, len(new) if much else 12, 4):
        new[first], new[first + 1] = new[first + 1], new[first]
    return new


def still(when: str, change: bool, much: bool) -> Callable[[World], None]:
    """Stage 4, the lowest of the first group, stands still for a minute: `before` the change is
    asked for, or in its `middle`, when it has been told to freeze."""

    def act(world: World) -> None:
        ranking = world.nodes["ranking"]

        def stop() -> None:
            world.pause("stage4")
            world.agenda.at(world.agenda.now + STILL_S, world.proceed, "stage4")

        def ask() -> None:
            machine: Any = ranking.machine
            world._carry_out(
                ranking, machine.reorder(changed(list(machine.s.order), much), world.agenda.now)
            )

        def watch() -> None:
            machine: Any = ranking.machine
            if machine.s.phase == "freezing":
                stop()
            else:
                world.agenda.at(world.agenda.now + 0.002, watch)

        if change:
            world.agenda.at(AT_S + 1.0, ask)
        if when == "middle" and change:
            world.agenda.at(AT_S + 1.0, watch)
        else:
            world.agenda.at(AT_S, stop)

    return act


def standing() -> None:
    table = Table(
        title=f"Ten groups of four, a stage stands still for {STILL_S:g} s: accepted after"
    )
    for heading in ("change", "mean, group of the stage", "groups changed", "other groups"):
        table.add_column(heading, justify="left" if heading == "change" else "right")
    ways = (
        ("none", "before", False, False),
        ("asked for while it stands still, all groups", "before", True, True),
        ("it stops in the middle, 3 groups", "middle", True, False),
        ("it stops in the middle, all groups", "middle", True, True),
    )
    plain: list[Rows] = []
    for name, when, change, much in ways:
        runs = [_during(play(groups(), seed, act=still(when, change, much))[0]) for seed in SEEDS]
        plain = plain or runs
        table.add_row(name, *(_cell(runs, plain, much, number) for number in range(3)))
    Console(width=110).print(table)
    print("The standing stage's own topic is left out. Changed: their order is another afterwards.")
    print("Times are those of the same topics without a change.")


def _during(rows: Rows) -> Rows:
    return [row for row in rows if AT_S <= row.published_at < AT_S + STILL_S]


def _cell(runs: list[Rows], plain: list[Rows], much: bool, number: int) -> str:
    """The waits of one column, and how many times those of a run without a change they are."""
    values, beside = (
        waits([row for rows in each for row in rows if _column(row, much) == number])
        for each in (runs, plain)
    )
    if not values:
        return ""
    return f"{mean(values):.2f}, {mean(values) / mean(beside):.2f} times, max {max(values):.1f}"


def _column(row: Any, much: bool) -> int:
    topic = int(row.topic[1:]) - 1
    if topic == 3:
        return -1
    if topic < 4:
        return 0
    return 1 if much or topic < 12 else 2


def main() -> None:
    adaptive(40, 1200, (400,), None, ALIKE)
    adaptive(40, 1200, (400,), None, WAN)
    standing()
    adaptive(1000, 7000, (4000, 5000), 5, ALIKE)


if __name__ == "__main__":
    main()
