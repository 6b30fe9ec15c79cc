"""How fast Spark reads and writes the embedded broker's file, beside a Parquet scan of its rows.

    python benches/source.py --rows 2000000

Rows of about 100 bytes as the log keeps them. In `single` two topics take turns event by event, in
`batched` there are 64 events of one topic side by side. Times are medians of interleaved rounds,
and every ratio is to the Parquet scan of the same round. Both sides make every column: a scan that
may leave columns out does less, and a Python source is not told which ones are wanted.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from inorder.brokers import broker_at
from inorder.logs.broker import Author, Run
from inorder.logs.topics import EVERYTHING
from inorder.pipeline.source import DefaultSource

TOPICS = ("orders", "payments")
# Events side by side of one publisher and topic, and those of one transaction.
PER_RUN = {"single": 1, "batched": 64}
PER_APPEND = 10_000
# Spark's Kafka source beside a Parquet scan, 2M rows of 100 B, measured elsewhere on 2 cores.
KAFKA = {"batch": 0.19, "one trigger": 0.19, "ten triggers": 0.11}

_encode = msgspec.msgpack.Encoder().encode


def value(number: int) -> dict[str, Any]:
    return {"account": f"a{number % 1000:06d}", "amount": number * 0.25, "note": "x" * 20}


async def generate(path: Path, rows: int, kind: str) -> None:
    """`single`: topics take turns, event by event. `batched`: runs of 64."""
    size = PER_RUN[kind]
    broker = broker_at(f"sqlite:///{path}?durable=no", 60.0)
    await broker.open()
    [log] = await broker.logs(EVERYTHING)
    author = Author("p")
    runs: list[Run] = []
    for low in range(0, rows, size):
        values = [value(number) for number in range(low, min(rows, low + size))]
        topic = TOPICS[low // size % len(TOPICS)]
        runs.append(Run(topic, "p", 1, low + 1, len(values), _encode(values), 1.7e9 + low * 0.001))
        if len(runs) * size >= PER_APPEND:
            await broker.append(log, author, runs)
            runs = []
    if runs:
        await broker.append(log, author, runs)
    await broker.close()


def jobs(spark: Any, folder: Path, kind: str, rows: int) -> dict[str, Callable[[], Any]]:
    url = f"sqlite:///{folder / kind}.db"
    name = DefaultSource.name()
    batch = spark.read.format(name).option("url", url).load()
    parquet = str(folder / f"{kind}.parquet")
    if not Path(parquet).exists():
        batch.write.parquet(parquet)
    scan = spark.read.parquet(parquet)

    def save(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def stream(triggers: int) -> None:
        events = spark.readStream.format(name).option("url", url)
        events = events.option("startingOffsets", "earliest")
        events = events.option("maxOffsetsPerTrigger", -(-rows // triggers)).load()
        query = events.writeStream.format("noop").trigger(availableNow=True)
        place = tempfile.mkdtemp(dir=folder)
        query.option("checkpointLocation", place).start().awaitTermination()

    def write() -> None:
        target = Path(tempfile.mkdtemp(dir=folder)) / "sink.db"
        frame = scan.select("topic", "published_at", "attributes")
        frame = frame.write.format(name).mode("append").option("url", f"sqlite:///{target}")
        frame.save()
        shutil.rmtree(target.parent)

    found: dict[str, Callable[[], Any]] = {
        "parquet": lambda: save(scan),
        "batch": lambda: save(batch),
        "one trigger": lambda: stream(1),
        "ten triggers": lambda: stream(10),
    }
    if kind == "single":
        found["sink"] = write
    return found


def measure(spark: Any, folder: Path, kind: str, rows: int, rounds: int, master: str) -> None:
    ways = jobs(spark, folder, kind, rows)
    for name in ("parquet", "batch"):
        ways[name]()  # warm up both sides
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, job in ways.items():
            begin = time.perf_counter()
            job()
            times[name].append(time.perf_counter() - begin)
    print(f"\n{master}, {kind}: {rows:,} rows, {rounds} interleaved rounds")
    print(
        f"  {'job':13} {'seconds':>8} {'spread':>15} {'rows/s':>12} {'x scan':>7}  Kafka (quoted)"
    )
    for name, found in times.items():
        middle = statistics.median(found)
        ratios = [scan / own for scan, own in zip(times["parquet"], found, strict=True)]
        spread = f"{min(found):.2f}-{max(found):.2f}"
        quoted = f"{KAFKA[name]:.2f}" if name in KAFKA else ""
        told = f"{rows / middle:12,.0f} {statistics.median(ratios):7.2f}  {quoted}"
        print(f"  {name:13} {middle:8.2f} {spread:>15} {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--masters", default="local[1],local[2]")
    parser.add_argument("--kinds", default="single,batched")
    options = parser.parse_args()
    from inorder.pipeline.session import session

    print("python", *sys.argv)
    print("Kafka's ratios are quoted from another measurement, not measured here")
    folder = Path(tempfile.mkdtemp(prefix="inorder-bench-"))
    try:
        for kind in options.kinds.split(","):
            asyncio.run(generate(folder / f"{kind}.db", options.rows, kind))
        for master in options.masters.split(","):
            spark = session(master)
            for kind in options.kinds.split(","):
                measure(spark, folder, kind, options.rows, options.rounds, master)
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
