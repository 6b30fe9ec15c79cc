"""Building worlds: CPU seconds until every machine stands, for 100 and for 1,000 topics.

Every topic has a stage of its own. What all stages need (where topics live, the way up) is built
once; if each stage built its own, ten times the topics would take a hundred times as long.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from statistics import median
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from inorder.sim.scenario import from_table
from inorder.sim.simulate import build

SIZES = (100, 1000)
ROUNDS = 7
WORLDS: dict[str, dict[str, Any]] = {
    "chain": {},
    "dynamic order": {"order": {"swaps": "on"}},
    "SCRIBE, 1,000 nodes": {"network": {"model": "wan", "overlay": "scribe", "nodes": 1000}},
}


class Nowhere:
    """A trace that nobody writes."""

    def write(self, table: str, row: object) -> None:
        raise AssertionError("nothing happens while a world is built")


def seconds(topics: int, round_: int, more: Mapping[str, Any]) -> float:
    """CPU time of one world; other names in every round, so that nothing is remembered."""
    order = {"guarantee": "total", **more.get("order", {})}
    scenario = from_table(
        {
            "duration": 1.0,
            "topics": [f"{round_}/{number}" for number in range(topics)],
            "publishers": {"count": 1},
            "subscribers": [{"count": 10}],
            **more,
            "order": order,
        }
    )
    gc.collect()
    started = process_time()
    build(scenario, round_, Nowhere())
    return process_time() - started


def main() -> None:
    table = Table(
        title="Building a world", caption=f"python -m benches.worlds, medians of {ROUNDS} rounds"
    )
    for heading in ("world", *(f"{size:,} topics [s]" for size in SIZES), "spread [s]", "ratio"):
        table.add_column(heading, justify="left" if heading == "world" else "right")
    for name, more in WORLDS.items():
        times = {size: [seconds(size, n, more) for n in range(ROUNDS)] for size in SIZES}
        few, many = (median(times[size]) for size in SIZES)
        large = times[SIZES[-1]]
        spread = f"{min(large):.3f} to {max(large):.3f}"
        table.add_row(name, f"{few:.4f}", f"{many:.4f}", spread, f"{many / few:.1f}x")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
