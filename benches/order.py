"""How fast `order` and `sequence` are, beside the obvious ways of Spark, on the same rows.

    python -m benches.order [--rows 1000000,10000000] [--batch 100000,1000000] [--rounds 3]

Tables: rows/s to a sink that drops them; the yardstick is a SQL sort of the same rows by subscriber
and arrival, which is what `order` has to do first. Streams: rows/s and seconds of a micro-batch,
beside `foreachBatch` with the same sort. `hold 5 %`: five rows in a hundred arrive up to 30 places
late. Before anything is timed, the order is compared with the true order.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benches.audit import Memory
from benches.measure import Contest

SUBSCRIBERS = 8
PUBLISHERS = 20
TOPICS = ("orders", "payments", "stock")
KEYS = ("subscriber", "arrival", "topic", "offset")
HOLD = {"mode": "hold", "start": dict.fromkeys(TOPICS, 0)}


def generate(folder: Path, rows: int, late: float, parts: int = 4) -> Path:
    """Every subscriber is given every event of three topics; `place` is its place in the order."""
    random = np.random.default_rng(7)
    events = rows // SUBSCRIBERS
    topic = random.integers(0, len(TOPICS), events)
    counts = np.array([np.cumsum(topic == each) for each in range(len(TOPICS))])
    place = np.arange(events)
    delay = np.where(random.random(events) < late, random.integers(1, 30, events), 0)
    arrived = np.argsort(place + delay, kind="stable")
    texts: list[Any] = []
    for each, name in enumerate(TOPICS):
        texts += [f'{"," if each else "{"}"{name}":', pa.array(counts[each]).cast(pa.string())]
    publisher = pc.binary_join_element_wise("p", pa.array(place % PUBLISHERS).cast("string"), "")
    seq = place // PUBLISHERS + 1
    whole = pa.table(
        {
            "topic": pa.array(TOPICS).take(pa.array(topic)),
            "offset": counts[topic, place] - 1,
            "event": pc.binary_join_element_wise(publisher, pa.array(seq).cast("string"), ":"),
            "publisher": publisher,
            "seq": seq,
            "published_at": place * 1e-3,
            "attributes": pa.array(['{"amount":120.0,"kind":"new"}'] * events),
            "stamp": pc.binary_join_element_wise(*texts, "}", ""),
            "header": _headers(place),
            "place": place,
        }
    ).take(pa.array(arrived))
    whole = whole.append_column("arrival", pa.array(place))
    whole = whole.append_column("received_at", pa.array(place * 1e-3 + 0.05))
    folder.mkdir(parents=True)
    for part, some in enumerate(np.array_split(np.repeat(place, SUBSCRIBERS), parts)):
        table = whole.take(pa.array(some))
        who = pa.array((np.arange(len(some)) % SUBSCRIBERS).astype(str))
        table = table.append_column("subscriber", pc.binary_join_element_wise("s", who, ""))
        pq.write_table(table, folder / f"{part:03d}.parquet")
    return folder


def _headers(place: Any) -> Any:
    seq = pa.array(place // PUBLISHERS + 1).cast("string")
    departure = pa.array(place * 1000).cast("string")
    return pc.binary_join_element_wise(
        '{"incarnation":0,"seq":', seq, ',"departure_us":', departure,
        ',"prev_gap_us":20000,"record":""}', "",
    )  # fmt: skip


def drop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def plain(frame: Any) -> Any:
    return frame.repartition("subscriber").sortWithinPartitions(*KEYS)


def by_pandas(frame: Any) -> Any:
    def ranked(rows: Any) -> Any:
        rows = rows.sort_values(list(KEYS[1:]))
        rows["nth"] = range(1, len(rows) + 1)
        return rows

    schema = frame.withColumn("nth", frame["arrival"]).schema
    return frame.groupBy("subscriber").applyInPandas(ranked, schema)


def check(ordered: Any, rows: int) -> None:
    wrong = ordered.where("nth != place + 1 or not in_order").count()
    assert ordered.count() == rows // SUBSCRIBERS * SUBSCRIBERS, "rows are missing"
    assert wrong == 0, f"{wrong} rows are out of order"


def tables(spark: Any, folder: Path, rows: int, rounds: int, command: str) -> None:
    from inorder.pipeline.order_stage import order
    from inorder.pipeline.sequence_stage import sequence

    tidy = spark.read.parquet(str(generate(folder / f"tidy{rows}", rows, 0.0))).drop("header")
    untidy = spark.read.parquet(str(generate(folder / f"untidy{rows}", rows, 0.05))).drop("header")
    headed = spark.read.parquet(str(folder / f"tidy{rows}"))
    headed = headed.drop("stamp").withColumnRenamed("header", "stamp")
    check(order(untidy, **HOLD), rows)
    check(order(tidy, mode="tag"), rows)
    placed = untidy.drop("stamp").withColumnRenamed("place", "position")
    ways: dict[str, Callable[[], Any]] = {
        "SQL sort": lambda: plain(untidy),
        "applyInPandas sort": lambda: by_pandas(untidy),
        "order by position": lambda: order(placed),
        "order none": lambda: order(untidy, "none"),
        "order total tag": lambda: order(tidy, mode="tag"),
        "order total tag, 5 % late": lambda: order(untidy, mode="tag"),
        "order total hold": lambda: order(tidy, **HOLD),
        "order total hold, 5 % late": lambda: order(untidy, **HOLD),
    }
    if rows <= 1_000_000:
        ways["order fifo"] = lambda: order(headed, "fifo")
    contest = Contest(f"order: {rows:,} rows, {spark.sparkContext.master}", "rows", rounds)
    for name, way in ways.items():
        contest.add(name, lambda way=way: drop(way()) or rows)
    contest.run(command)
    bare = tidy.where("subscriber = 's0'").drop("stamp", "offset", "subscriber").cache()
    count = bare.count()
    numbered = "row_number() over (partition by topic order by arrival) as number"
    second = Contest(f"sequence: {count:,} rows, {spark.sparkContext.master}", "rows", rounds)
    second.add("row_number() by topic", lambda: drop(bare.selectExpr("*", numbered)) or count)
    one = "row_number() over (order by arrival) as number"
    second.add("row_number() over all", lambda: drop(bare.selectExpr("*", one)) or count)
    second.add("sequence", lambda: drop(sequence(bare)) or count)
    second.run(command)
    bare.unpersist()


def streams(spark: Any, folder: Path, size: int, batches: int = 4) -> None:
    """Micro-batches of one file each; the first is not counted, it starts everything."""
    from inorder.pipeline.order_stage import order

    place = generate(folder / f"stream{size}", size * batches, 0.05, batches)
    schema = spark.read.parquet(str(place)).schema

    def source() -> Any:
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return stream.parquet(str(place)).drop("header")

    def timed(name: str, writer: Any) -> float:
        checkpoint = folder / f"checkpoint-{name}-{size}"
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        spent = [each["durationMs"]["triggerExecution"] for each in query.recentProgress
                 if each["numInputRows"]]  # fmt: skip
        return statistics.median(spent[1:]) / 1000

    def sort(batch: Any, _: int) -> None:
        drop(plain(batch))

    beside = timed("sort", source().writeStream.foreachBatch(sort))
    ours = timed("order", order(source(), lanes=4, **HOLD).writeStream.format("noop"))
    print(
        f"stream, {size:,} rows a batch: foreachBatch + sort {beside:.2f} s ({size / beside:,.0f} "
        f"rows/s), order hold 5 % late {ours:.2f} s ({size / ours:,.0f} rows/s), "
        f"ratio {beside / ours:.2f}",
        flush=True,
    )


def measure(options: argparse.Namespace) -> None:
    from inorder.pipeline.session import session

    folder = Path(tempfile.mkdtemp(prefix="inorder-bench-"))
    memory = Memory()
    memory.start()
    command = " ".join(["python -m benches.order", *sys.argv[1:]])
    try:
        spark = session(options.master)
        for rows in map(int, options.rows.split(",")):
            tables(spark, folder, rows, options.rounds, command)
        for size in (int(each) for each in options.batch.split(",") if each):
            streams(spark, folder, size)
        memory.awake.set()
        untidy = folder / f"untidy{options.rows.split(',')[-1]}"
        from inorder.pipeline.order_stage import order

        drop(order(spark.read.parquet(str(untidy)), **HOLD))
        print(f"peak memory of JVM and Python: {memory.peak / 2**30:.2f} GiB", flush=True)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", default="1000000")
    parser.add_argument("--batch", default="100000,1000000", help="rows of a micro-batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", help="by default local[2], then local[1] without streams")
    options = parser.parse_args()
    if options.master:
        measure(options)
        return
    again = [sys.executable, "-m", "benches.order", "--rows", options.rows]
    again += ["--rounds", str(options.rounds)]
    subprocess.run([*again, "--batch", options.batch, "--master", "local[2]"], check=True)
    subprocess.run([*again, "--batch", "", "--master", "local[1]"], check=True)


if __name__ == "__main__":
    main()
