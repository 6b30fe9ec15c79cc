"""One point of a sweep: simulate, count, judge, and leave one row in one file.

This runs in Spark's tasks, and in any process all the same: the row depends on the point alone
(only `seconds` does not). A run that fails leaves a row with its error, so that others go on.
"""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from inorder.check import History, judge
from inorder.check.ending import Ending
from inorder.cli.sweep.grid import VERSION, Point
from inorder.core.errors import Misuse
from inorder.core.limits import SWEEP_JUDGED_DELIVERIES_MAX
from inorder.sim.scenario import from_table
from inorder.sim.simulate import simulate

# A folder with this file is the folder of a sweep, and whoever sees it sees the right folder.
MARK = "sweep.json"


class Tally:
    """Takes rows like a `TraceWriter`; keeps those a judge needs, unless they become too many."""

    def __init__(self, keep: bool) -> None:
        self.delays = array("d")
        self.tagged = 0
        self._ending: Ending | None = None
        self._kept: dict[str, list[Any]] = {}
        if keep:
            self._kept = {"deliveries": [], "events": [], "subscriptions": []}

    def write(self, table: str, row: Any) -> None:
        if table == "deliveries":
            self.delays.append(row.delivered_at - row.published_at)
            self.tagged += not row.in_order
            if len(self.delays) > SWEEP_JUDGED_DELIVERIES_MAX:
                self._kept = {}
        if table in self._kept:
            self._kept[table].append(row)

    def ended(self, ending: Ending) -> None:
        self._ending = ending

    def history(self) -> History | None:
        kept = self._kept
        if not kept:
            return None
        return History(
            kept["deliveries"], kept["events"], kept["subscriptions"],
            ending=self._ending, clock_error=0.0,
        )  # fmt: skip


def row_of(point: Point) -> dict[str, Any]:
    """The row of a point; every column is there, also after a failure."""
    started = perf_counter()
    row: dict[str, Any] = dict.fromkeys(arrow_schema().names)
    grid = msgspec.json.encode(point.values).decode()
    row |= {"digest": point.digest, "grid": grid, "seed": point.seed}
    try:
        row |= _ran(point)
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
    return {**row, "seconds": perf_counter() - started}


def _ran(point: Point) -> dict[str, Any]:
    import numpy as np

    if point.version != VERSION:
        raise Misuse(f"here is inorder {VERSION}, the sweep was asked for by {point.version}")
    # Nobody reads the messages of a point; recording them is a third of the work.
    scenario = replace(from_table(point.scenario), messages=False)
    tally = Tally(point.judge)
    outcome = simulate(scenario, point.seed, tally)
    p50, p99 = (None, None)
    if len(tally.delays):
        p50, p99 = np.quantile(np.frombuffer(tally.delays), [0.5, 0.99]).tolist()
    history = tally.history()
    verdicts = judge(history).values() if history else ()
    too_many = point.judge and history is None
    return {
        "published": outcome.published,
        "missed": outcome.missed,
        "delivered": outcome.delivered,
        "tagged": tally.tagged,
        "late_share": tally.tagged / len(tally.delays) if len(tally.delays) else None,
        "delay_p50": p50,
        "delay_p99": p99,
        "violations": {each.promise: each.violations for each in verdicts if each.judged},
        "unjudged": f"over {SWEEP_JUDGED_DELIVERIES_MAX} deliveries" if too_many else None,
        "counters": outcome.account,
        "marks": outcome.marks,
        "steps": outcome.steps,
        "virtual_s": outcome.virtual_s,
    }


def arrow_schema() -> Any:
    """The columns of a point's file; times are seconds."""
    import pyarrow as pa

    whole, number, text = pa.int64(), pa.float64(), pa.string()
    return pa.schema(
        [("digest", text), ("grid", text), ("seed", whole)]
        + [(name, whole) for name in ("published", "missed", "delivered", "tagged")]
        + [(name, number) for name in ("late_share", "delay_p50", "delay_p99")]
        + [("violations", pa.map_(text, whole)), ("unjudged", text)]
        + [("counters", pa.map_(text, number)), ("marks", pa.map_(text, whole))]
        + [("steps", whole), ("virtual_s", number), ("seconds", number), ("error", text)]
    )


def encode(point: Point) -> bytes:
    """A point as it travels to a task."""
    return msgspec.msgpack.encode(point)


def run_to_file(encoded: bytes, folder: str) -> None:
    """Run a point and put its row into the folder; whole, or not at all."""
    point = msgspec.msgpack.decode(encoded, type=Point)
    place = Path(folder)
    if not (place / MARK).exists():
        raise Misuse(f"an executor does not see {folder}: a sweep needs a folder all hosts share")
    row = row_of(point)
    failed = row["error"] is not None
    _write(row, place / file_name(point.digest, failed))
    if not failed:
        (place / file_name(point.digest, failed=True)).unlink(missing_ok=True)


def file_name(digest: str, failed: bool = False) -> str:
    """A failed point has another name, and is run again by the next call."""
    return f"{'failed' if failed else 'point'}-{digest}.parquet"


def _write(row: dict[str, Any], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    maps = {name: list(value.items()) for name, value in row.items() if isinstance(value, dict)}
    table = pa.Table.from_pylist([{**row, **maps}], schema=arrow_schema())
    # Two attempts at one point may run at once (speculation, a second call): each has its own.
    aside = path.with_name(f".{path.name}.{uuid4().hex}.aside")
    with open(aside, "wb") as file:
        pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
