"""How fast Spark reads and writes the embedded broker's file, beside a Parquet scan of its rows.

    python benches/source.py --rows 2000000

Rows of about 100 bytes as the log keeps them. `single` is a message per event (no guarantee),
`batched` are messages of 64 events (total order). Times are medians of interleaved rounds, and
every ratio is to the Parquet scan of the same round. Both sides make every column: a scan that may
leave columns out does less, and a Python source is not told which ones are wanted.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inorder.bus.store.rows import Append, Turn
from inorder.bus.store.sqlite.file import File
from inorder.core import wire
from inorder.core.event import Event
from inorder.guarantee.registry import guarantee
from inorder.pipeline.source import DefaultSource
from inorder.protocols.total.messages import Events

TOPICS = ("orders", "payments")
PER_MESSAGE = 64
PER_TURN = 50_000
# Spark's Kafka source beside a Parquet scan, 2M rows of 100 B, measured elsewhere on 2 cores.
KAFKA = {"batch": 0.19, "one trigger": 0.19, "ten triggers": 0.11}


def event(topic: str, number: int) -> Event:
    value = {"account": f"a{number % 1000:06d}", "amount": number * 0.25, "note": "x" * 20}
    return Event(f"p{number % 20}", number + 1, topic, value, 1.7e9 + number * 0.001)


def generate(path: Path, rows: int, kind: str) -> None:
    name = "none" if kind == "single" else "total"
    size = 1 if kind == "single" else PER_MESSAGE
    restamped = guarantee(name).log.restamped
    file = File(path, durable=False)
    appends: list[Append] = []
    for topic in TOPICS:
        file.declare(topic, name)
    share = rows // len(TOPICS)
    for low in range(0, share, size):
        for topic in TOPICS:
            events = [event(topic, number) for number in range(low, min(low + size, share))]
            if size == 1:
                message = restamped(events[0], "{}")
            else:
                others = tuple((other, low) for other in TOPICS if other != topic)
                message = Events(topic, low + 1, 0, others, tuple(events))
            appends.append(Append(topic, wire.encode(message), len(events)))
        if len(appends) * size >= PER_TURN:
            file.write(Turn(appends=appends))
            appends = []
    file.write(Turn(appends=appends))
    file.close()


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
        frame = scan.select("topic", "publisher", "seq", "published_at", "attributes")
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
            generate(folder / f"{kind}.db", options.rows, kind)
        for master in options.masters.split(","):
            spark = session(master)
            for kind in options.kinds.split(","):
                measure(spark, folder, kind, options.rows, options.rounds, master)
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
