"""How fast the audit is, beside a Spark scan of the same columns, and beside the obvious SQL.

    python -m benches.audit --rows 10000000 --subscribers 100

The scan makes every value of the columns and drops it. `SQL groupBy` counts duplicates only, and
`SQL window` counts the falls of each publisher's numbers only: no witness, no pairs of subscribers.
Rows arrive interleaved, as consumers write them. `kept`: everybody delivers in one order. `light`:
one delivery in a thousand changes places with the next. `full`: every subscriber has an order of
its own. Times are medians of interleaved rounds; memory is the peak of JVM and Python together.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PUBLISHERS = 20
ROWS_PER_PART = 1_000_000


def generate(folder: Path, rows: int, subscribers: int, disorder: str) -> None:
    """Write `rows` deliveries of rows / subscribers events each."""
    random = np.random.default_rng(7)
    events = rows // subscribers
    orders = np.empty((subscribers, events), dtype=np.int32)
    for number in range(subscribers):
        orders[number] = np.arange(events)
        if disorder == "full":
            random.shuffle(orders[number])
        elif disorder == "light":
            at = 2 * np.unique(random.integers(0, max(1, events // 2 - 1), max(1, events // 1000)))
            orders[number][at], orders[number][at + 1] = (
                orders[number][at + 1],
                orders[number][at].copy(),
            )
    names = pa.array([f"subscriber-{number:05d}" for number in range(subscribers)])
    ids = pa.array([f"p{each % PUBLISHERS}:{each // PUBLISHERS + 1}" for each in range(events)])
    publishers = pa.array([f"p{each}" for each in range(PUBLISHERS)])
    folder.mkdir(parents=True)
    for part, low in enumerate(range(0, rows, ROWS_PER_PART)):
        row = np.arange(low, min(rows, low + ROWS_PER_PART))
        who, place = row % subscribers, row // subscribers
        event = orders[who, place]
        table = pa.table(
            {
                "subscriber": names.take(pa.array(who)),
                "nth": place + 1,
                "event": ids.take(pa.array(event)),
                "publisher": publishers.take(pa.array(event % PUBLISHERS)),
                "seq": (event // PUBLISHERS + 1).astype(np.int64),
            }
        )
        pq.write_table(table, folder / f"part-{part:05d}.parquet", compression="zstd")


class Memory(threading.Thread):
    """The greatest resident size of this process and all its descendants, sampled.

    Sampling stops the JVM for moments, so it runs in a round of its own that is not timed.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.awake = threading.Event()

    def run(self) -> None:
        while True:
            self.awake.wait()
            self.peak = max(self.peak, sum(map(_resident, _family(os.getpid()))))
            time.sleep(0.1)


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def _resident(process: int) -> int:
    """Shared pages are counted once for each process that forked: use the proportional size."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(spark: Any, folder: Path, rounds: int, memory: Memory) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from inorder.pipeline.audit import audit

    frame = spark.read.parquet(str(folder))
    scanned = frame.select("subscriber", "nth", "event")
    doubles = frame.groupBy("subscriber", "event").count().where("count > 1")
    line = Window.partitionBy("subscriber", "publisher").orderBy("nth")
    before = frame.withColumn("before", F.lag("seq").over(line))
    jobs: dict[str, Callable[[], Any]] = {
        "scan": lambda: scanned.write.format("noop").mode("overwrite").save(),
        "SQL groupBy": lambda: doubles.count(),
        "unique": lambda: audit(spark, str(folder), promises=["unique"]),
        "SQL window": lambda: before.where("before > seq").count(),
        "fifo": lambda: audit(spark, str(folder), promises=["fifo"]),
        "total": lambda: audit(spark, str(folder), promises=["total"]),
        "all": lambda: audit(spark, str(folder)),
    }
    jobs["scan"]()  # warm up both sides
    jobs["unique"]()
    rows = frame.count()
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            times[name].append(timed(job))
    scan = statistics.median(times["scan"])
    memory.awake.set()
    result = audit(spark, str(folder))
    memory.awake.clear()
    print(f"\n{folder.name}: {rows:,} rows, verdict {result.verdict}")
    for name, verdict in result.promises.items():
        if verdict.judged:
            print(f"  {name}: {verdict.violations:,} violations")
    print(f"  {'job':11} {'seconds':>8} {'spread':>14} {'rows/s':>12} {'x scan':>7}")
    for name, found in times.items():
        middle = statistics.median(found)
        spread = f"{min(found):.2f}-{max(found):.2f}"
        print(f"  {name:11} {middle:8.2f} {spread:>14} {rows / middle:12,.0f} {scan / middle:7.2f}")
    print(f"  peak memory so far: {memory.peak / 2**30:.2f} GiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--disorder", default="kept,light,full")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    from inorder.pipeline.session import session

    print("python", *sys.argv)
    memory = Memory()
    folder = Path(tempfile.mkdtemp(prefix="inorder-bench-"))
    try:
        for disorder in options.disorder.split(","):
            generate(folder / disorder, options.rows, options.subscribers, disorder)
        memory.start()
        spark = session(options.master)
        for disorder in options.disorder.split(","):
            measure(spark, folder / disorder, options.rounds, memory)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
