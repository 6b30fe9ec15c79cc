"""Logs of other systems: three formats, mapped columns, and what they allow to judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inorder.pipeline.audit import audit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# s1 and s2 disagree about m1 and m2; s3 gets m3 twice
ROWS = [
    ("s1", 10, "m1"),
    ("s1", 20, "m2"),
    ("s2", 1, "m2"),
    ("s2", 2, "m1"),
    ("s3", 1, "m3"),
    ("s3", 2, "m3"),
]
MAPPING = {"subscriber": "consumer", "nth": "offset", "event": "message id"}


def write_log(path: Path, rows: list[tuple[str, int, str]], names: list[str]) -> None:
    if path.suffix == ".csv":
        lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    else:
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_foreign_log_is_judged(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.{suffix}"
    write_log(path, ROWS, ["consumer", "offset", "message id"])
    result = audit(spark, str(path), columns=MAPPING)
    total, unique = result.promises["total"], result.promises["unique"]
    assert (result.verdict, result.rows) == ("broken", 6)
    assert (total.violations, unique.violations) == (1, 1)
    assert total.witness == {
        "events": ["m1", "m2"],
        "subscribers": ["s1", "s2"],
        "nths": {"s1": [10, 20], "s2": [2, 1]},
    }
    assert unique.witness == {"event": "m3", "subscriber": "s3", "nths": [1, 2]}
    for name in ("causal", "fifo", "reliable", "filter"):
        assert not result.promises[name].judged
        assert result.promises[name].why


def test_numbers_as_names_and_a_folder_of_files(spark: SparkSession, tmp_path: Path) -> None:
    for part, rows in enumerate((ROWS[:3], ROWS[3:])):
        lines = [
            json.dumps({"subscriber": int(s[1]), "nth": p, "event": int(e[1])}) for s, p, e in rows
        ]
        (tmp_path / f"part{part}.jsonl").write_text("\n".join(lines) + "\n")
    result = audit(spark, str(tmp_path))
    assert result.promises["total"].violations == 1
    assert result.promises["total"].witness is not None
    assert result.promises["total"].witness["subscribers"] == ["1", "2"]


def test_fifo_without_topics_and_times_as_text(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "subscriber,nth,event,publisher,seq,in_order,delivered_at\n"
        "a,1,e2,p,2,true,2024-01-01T00:00:01Z\n"
        "a,2,e1,p,1,true,2024-01-01T00:00:02Z\n"
        "a,3,e3,p,3,false,2024-01-01T00:00:03Z\n"
    )
    found = audit(spark, str(path)).promises
    fifo = found["fifo"]
    assert fifo.violations == 1
    assert fifo.witness == {
        "subscriber": "a",
        "publisher": "p",
        "events": ["e2", "e1"],
        "numbers": [2, 1],
        "nths": [1, 2],
    }
    assert found["per_publisher"].violations == 1


def test_a_promise_asked_for_that_cannot_be_judged(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_log(path, ROWS[:2], ["subscriber", "nth", "event"])
    assert audit(spark, str(path)).verdict == "kept"
    assert audit(spark, str(path), promises=["total"]).verdict == "kept"
    assert audit(spark, str(path), promises=["total", "fifo"]).verdict == "incomplete"
    assert list(audit(spark, str(path), promises=["fifo"]).promises) == ["fifo"]


def write_orders(path: Path, orders: list[np.ndarray]) -> None:
    subscriber = np.repeat(np.arange(len(orders)), [len(order) for order in orders])
    table = {
        "subscriber": [f"s{number:04d}" for number in subscriber.tolist()],
        "nth": np.concatenate([np.arange(1, len(order) + 1) for order in orders]),
        "event": [f"e{number}" for number in np.concatenate(orders).tolist()],
    }
    pq.write_table(pa.table(table), path)


def inversions_by_sorting(first: np.ndarray, second: np.ndarray) -> int:
    """An independent count: merge sort, in plain Python."""
    place = np.empty(len(second), dtype=np.int64)
    place[second] = np.arange(len(second))

    def count(values: list[int]) -> tuple[int, list[int]]:
        if len(values) < 2:
            return 0, values
        middle = len(values) // 2
        left_count, left = count(values[:middle])
        right_count, right = count(values[middle:])
        total, merged, at = left_count + right_count, [], 0
        for value in left:
            while at < len(right) and right[at] < value:
                merged.append(right[at])
                at += 1
            total += at
            merged.append(value)
        return total, merged + right[at:]

    return count(place[first].tolist())[0]


def test_a_wholly_disordered_log_is_counted_exactly(spark: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    orders = [random.permutation(50_000) for _ in range(4)]
    write_orders(tmp_path / "log.parquet", orders)
    result = audit(spark, str(tmp_path / "log.parquet"), promises=["total"])
    expected = sum(
        inversions_by_sorting(orders[a], orders[b]) for a in range(4) for b in range(a + 1, 4)
    )
    total = result.promises["total"]
    assert total.violations == expected
    assert total.counts["disagreeing_subscriber_pairs"] == 6
    assert total.also["acyclic"].violations == 1
    assert total.also["acyclic"].witness is not None
    assert len(total.also["acyclic"].witness["cycle"]) == 2


def test_many_subscribers(spark: SparkSession, tmp_path: Path) -> None:
    """500 subscribers, of whom the last delivers two events the wrong way round."""
    orders = [np.arange(20) for _ in range(499)] + [np.array([1, 0, *range(2, 20)])]
    write_orders(tmp_path / "log.parquet", orders)
    result = audit(spark, str(tmp_path / "log.parquet"), promises=["total", "unique"])
    total = result.promises["total"]
    assert (total.violations, total.counts["subscribers"]) == (499, 500)
    assert total.witness is not None
    assert total.witness["subscribers"] == ["s0000", "s0499"]


def test_many_subscribers_with_orders_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(9)
    orders = [random.permutation(12)[: random.integers(1, 13)] for _ in range(300)]
    write_orders(tmp_path / "log.parquet", orders)
    result = audit(spark, str(tmp_path / "log.parquet"), promises=["total"])
    expected = 0
    for a in range(300):
        for b in range(a + 1, 300):
            common = [event for event in orders[a].tolist() if event in orders[b]]
            places = [orders[b].tolist().index(event) for event in common]
            expected += sum(
                places[i] > places[j] for i in range(len(places)) for j in range(i + 1, len(places))
            )
    assert result.promises["total"].violations == expected
