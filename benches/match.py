"""Matching in Spark against the obvious way in SQL, on one core and on two.

Trading is `firm = :f AND price <= :x` (35 %; 33 % `>=`, 32 % `=`) with 1,000 firms; in SQL the
limits are ranges, joined on topic and firm (a broadcast hash join). Traffic is a window of 1 x 1 in
a field of 100 x 100; there is only the topic to join on, or nothing (a broadcast nested loop), and
Spark compares every event with every window, so it gets fewer events. Attributes are JSON text for
all, events are cached, and rows go nowhere (`noop`). All ways must find the same pairs before the
clock starts. The join needs a table made for these very predicates; `match` takes any.

Beside them a job that hands events to Python and takes them back, which is what Spark costs. Rates
are of a warm worker; what building the index adds to the first job is said beside.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from rich.console import Console
from tests.content import populations

from benches.measure import Contest

COMMAND = "python -m benches.match"
ROUNDS = 3
MASTERS = ("local[1]", "local[2]")
# Workload, subscriptions, events, events for the nested loop.
SIZES = (
    ("trading", 10_000, 100_000, 100_000),
    ("trading", 100_000, 40_000, 40_000),
    ("traffic", 10_000, 100_000, 2_000),
)


class Workload:
    """Subscriptions as changes and as a table of ranges, and events."""

    def __init__(self, spark: Any, name: str, count: int, size: int) -> None:
        rng = random.Random(1)
        self.name, self.count, self.size = name, count, size
        self.trading = name == "trading"
        self.changes: list[dict[str, Any]] = []
        ranges: list[tuple[Any, ...]] = []
        for number in range(count):
            where, values, limits = self._subscription(rng)
            change = {"subscriber": f"s{number}", "topics": ["t"], "where": where}
            self.changes.append({**change, "parameters": values})
            ranges.append((f"s{number}", "t", *limits))
        draw = populations.quote if self.trading else populations.position
        texts = [json.dumps(draw(rng)) for _ in range(size)]
        names = [f"p:{number}" for number in range(size)]
        rows = pa.table({"event": names, "topic": ["t"] * size, "attributes": texts})
        self.events = spark.createDataFrame(rows).repartition(2).cache()
        self.events.count()
        shape = "firm string, lo double, hi double"
        if not self.trading:
            shape = "a double, b double, c double, d double"
        schema = f"subscriber string, its string, {shape}"
        self.ranges = spark.createDataFrame(ranges, schema).cache()
        self.ranges.count()

    def _subscription(self, rng: random.Random) -> tuple[str, dict[str, Any], tuple[Any, ...]]:
        if not self.trading:
            _, (a, b, c, d) = populations.traffic(rng)
            return populations.TRAFFIC.source, {"a": a, "b": b, "c": c, "d": d}, (a, b, c, d)
        skeleton, (firm, x) = populations.trading(rng)
        op = skeleton.ranges[0].op if skeleton.ranges else "="
        low = x if op in (">=", "=") else float("-inf")
        high = x if op in ("<=", "=") else float("inf")
        return populations.TRADING[op].source, {"f": firm, "x": x}, (firm, low, high)

    def joined(self, events: Any, on_topic: bool = True) -> Any:
        """The obvious way; there is but one topic, so the join may do without it."""
        from pyspark.sql import functions as F

        shape = "firm string, price double" if self.trading else "lat double, lon double"
        read = events.withColumn("v", F.from_json("attributes", shape))
        if self.trading:
            condition = "v.firm = firm AND v.price BETWEEN lo AND hi"
        else:
            condition = "v.lat BETWEEN a AND b AND v.lon BETWEEN c AND d"
        if on_topic:
            condition += " AND topic = its"
        pairs = read.join(F.broadcast(self.ranges), F.expr(condition))
        return pairs.select("event", "topic", "attributes", "subscriber")


def spent(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def digest(frame: Any) -> tuple[int, int]:
    from pyspark.sql import functions as F

    row = frame.select(F.count("*"), F.bit_xor(F.xxhash64("event", "subscriber"))).first()
    return row[0], row[1]


def returned(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def peaks(batches: Iterator[Any]) -> Iterator[Any]:
    """The worker's largest resident size so far."""
    for _ in batches:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    yield pa.RecordBatch.from_arrays([pa.array([peak], pa.int64())], ["mb"])


def jvm_peak() -> int:
    from pyspark import SparkContext

    pid = SparkContext._jvm.java.lang.ProcessHandle.current().pid()
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) // 1024 if found else 0


def contest(spark: Any, master: str, name: str, count: int, size: int, few: int) -> None:
    from inorder.pipeline.match_stage import match

    work = Workload(spark, name, count, size)
    started = perf_counter()
    ours = match(work.events, work.changes)
    planned = perf_counter() - started
    spent(ours)
    first = perf_counter() - started - planned
    fewer = work.events if few == size else work.events.limit(few).cache()
    found = digest(ours if few == size else match(fewer, work.changes))
    assert found == digest(work.joined(fewer)), "both ways find the same"
    title = f"{name}, {count:,}, {master}: {found[0] / few:.1f} matches an event"
    ways = Contest(title, "events", ROUNDS)
    ways.add("SQL range join", lambda: (spent(work.joined(fewer)), few)[1])
    if not work.trading:
        nested = work.joined(fewer, on_topic=False)
        assert found == digest(nested), "this way too"
        ways.add("SQL nested loop", lambda: (spent(nested), few)[1])
    ways.add("match", lambda: (spent(ours), size)[1])
    ways.add("to Python and back, no more", lambda: (spent(same), size)[1])
    same = work.events.mapInArrow(returned, work.events.schema)
    rates = ways.run(COMMAND)
    largest = max(row.mb for row in work.events.mapInArrow(peaks, "mb long").collect())
    Console(width=100).print(
        f"{rates['match'] * found[0] / few / 1e6:.2f} million pairs a second; plan {planned:.1f} s,"
        f" first job {first:.1f} s; peaks: worker {largest} MB, JVM {jvm_peak()} MB\n"
    )
    spark.catalog.clearCache()


def run(master: str) -> None:
    from inorder.pipeline.session import session

    spark = session(master)
    for name, count, size, few in SIZES:
        contest(spark, master, name, count, size, few)
    spark.stop()


def main() -> None:
    """A process for each master: a JVM has one."""
    for master in MASTERS:
        subprocess.run([sys.executable, "-m", "benches.match", master], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        main()
