"""Sessions and leases in virtual time: what reordering, loss and silence cost. No figure depends on
the speed of this machine.

One stage, 20,000 Poisson events of 4 publishers at 50 a second each, both directions lossy: how
long until 99 % are accepted, beside the same links without the fault, and how many frames were sent
again. Then the share of control messages (renewals and their answers, heartbeats, repairs) among
all, at 1,000 and 3,000 holders.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from inorder.protocols.total.messages import Gone, Heartbeat, Renew, Renewed, Repair
from inorder.sim.memory import Memory
from inorder.sim.scenario import from_table
from inorder.sim.simulate import build
from inorder.sim.workload import Workload, tell
from inorder.sim.world import World

EVENTS = 20_000
SEEDS = (1, 2, 3)
LINKS: dict[str, dict[str, Any]] = {
    "20 ms": {"law": "constant", "mean": 0.02},
    "50 +- 5 ms": {"law": "normal", "mean": 0.05, "std": 0.005},
}
CONTROL = (Renew, Renewed, Heartbeat, Repair, Gone)


class Ran(Struct):
    """What one run took: seconds until 99 % were accepted, and shares of the frames."""

    accept_s: float
    again: float
    early: float


def run(delay: dict[str, Any], seed: int, *, fifo: bool = True, loss: float = 0.0) -> Ran:
    rate, publishers = 50.0, 4
    duration = EVENTS / (rate * publishers)
    weather = {"kind": "weather", "at": 0.0, "until": duration + 60.0, "loss": loss}
    memory, world = _play(
        {
            "duration": duration, "settle": 60.0, "topics": 1,
            "network": {"model": "delay", "delay": delay, "fifo": fifo},
            "publishers": {"count": publishers, "rate": rate, "arrivals": "poisson"},
            "subscribers": [{"count": 1}],
            "faults": {"until": duration + 60.0, "list": [weather] if loss else []},
        },
        seed,
        duration + 120.0,
    )  # fmt: skip
    taken = sorted(row.accepted_at - row.published_at for row in memory.rows["events"])
    counts: dict[str, int] = {}
    for node in world.nodes.values():
        for name, count in node.machine.links.counts.items():  # type: ignore[attr-defined]
            counts[name] = counts.get(name, 0) + count
    frames = counts["frames"]
    return Ran(
        taken[len(taken) * 99 // 100],
        counts["frames_again"] / frames,
        counts["frames_early"] / frames,
    )


def _play(table: dict[str, Any], seed: int, end: float) -> tuple[Memory, World]:
    scenario = from_table({"order": {"guarantee": "total"}, "messages": False, **table})
    memory = Memory()
    story = tell(scenario, seed)
    world = build(scenario, seed, memory, story=story)
    world.application = Workload(world, scenario, seed, story)
    if story.faults:
        from inorder.sim import faults

        faults.schedule(world, story.faults, scenario.faults_until)
    world.agenda.run(end)
    world.finish()
    return memory, world


def links() -> None:
    table = Table(
        title="Accepted over bad links", caption=f"python -m benches.session, seeds {SEEDS}"
    )
    for heading in ("links", "fault", "99 % within [s]", "beside none", "sent again", "early"):
        table.add_column(heading, justify="left" if heading in ("links", "fault") else "right")
    for name, delay in LINKS.items():
        plain = [run(delay, seed) for seed in SEEDS]
        faults: dict[str, dict[str, Any]] = {"none": {}, "reordering": {"fifo": False}}
        faults |= {
            f"{share:.0%} lost": {"loss": share, "fifo": False} for share in (0.01, 0.05, 0.1)
        }
        for fault, how in faults.items():
            ran = [run(delay, seed, **how) for seed in SEEDS]
            ratios = [one.accept_s / base.accept_s for one, base in zip(ran, plain, strict=True)]
            table.add_row(
                name, fault, _span([one.accept_s for one in ran], ".3f"), _span(ratios, ".2f"),
                _span([100 * one.again for one in ran], ".2f") + " %",
                _span([100 * one.early for one in ran], ".1f") + " %",
            )  # fmt: skip
    Console(width=110).print(table)


def control() -> None:
    """Messages of two minutes, counted where they leave; a diffusion counts once a holder."""
    table = Table(title="Control messages", caption="python -m benches.session")
    for heading in ("holders of 10 topics", "events/s a topic", "messages", "control"):
        table.add_column(heading, justify="right")
    for holders in (1000, 3000):
        for rate in (1.0, 4.0):
            total, some = share(holders, rate)
            table.add_row(f"{holders:,}", f"{rate:g}", f"{total:,}", f"{some / total:.3f}")
    Console(width=110).print(table)


def share(holders: int, rate: float, topics: int = 10) -> tuple[int, int]:
    scenario = from_table(
        {
            "duration": 120.0, "settle": 0.0, "topics": topics, "messages": False,
            "order": {"guarantee": "total"}, "network": {"model": "delay", "fifo": True},
            "publishers": {"count": topics, "rate": rate, "topics": "own", "arrivals": "poisson"},
            "subscribers": [{"count": holders, "topics": "uniform", "per": 1}],
        }
    )  # fmt: skip
    story = tell(scenario, 1)
    world = build(scenario, 1, Memory(), story=story)
    world.application = Workload(world, scenario, 1, story)
    counts = [0, 0]
    hand_over = world.network._hand_over

    def counted(source: str, target: str, message: Any, *rest: Any) -> None:
        counts[0] += 1
        counts[1] += isinstance(message, CONTROL)
        hand_over(source, target, message, *rest)

    world.network._hand_over = counted
    world.agenda.run(120.0)
    world.finish()
    return counts[0], counts[1]


def _span(values: list[float], form: str) -> str:
    low, high = min(values), max(values)
    return f"{low:{form}}" if f"{low:{form}}" == f"{high:{form}}" else f"{low:{form}}-{high:{form}}"


def main() -> None:
    links()
    control()


if __name__ == "__main__":
    main()
