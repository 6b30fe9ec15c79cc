"""Bad input ends in one sentence that names the file, the column and the count."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inorder.check.trace import DeliveryRow, TraceWriter
from inorder.core.errors import BadTrace, InorderError, Misuse, UnknownName
from inorder.pipeline.audit import audit
from inorder.pipeline.boundary import translate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEADER = "subscriber,nth,event\n"


def _write(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


def _parquet(**columns: list[object]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        pq.write_table(pa.table(columns), folder / "log.parquet")
        return folder / "log.parquet"

    return write


def _truncated_parquet(folder: Path) -> Path:
    place = folder / "logs"
    place.mkdir()
    table = pa.table({"subscriber": ["a"] * 999, "nth": range(999), "event": ["x"] * 999})
    pq.write_table(table, place / "one.parquet")
    whole = (place / "one.parquet").read_bytes()
    (place / "two.parquet").write_bytes(whole[: len(whole) // 2])
    return place


def _rotten_parquet(folder: Path) -> Path:
    """The footer is whole, the data is not: only Spark meets it."""
    rows = 5000
    table = pa.table(
        {
            "subscriber": ["a"] * rows,
            "nth": range(rows),
            "event": [f"event {number * 7919 % rows}" for number in range(rows)],
        }
    )
    pq.write_table(table, folder / "log.parquet", compression="zstd")
    data = bytearray((folder / "log.parquet").read_bytes())
    for at in range(200, len(data) - 3000, 3):
        data[at] ^= 0x5A
    (folder / "log.parquet").write_bytes(bytes(data))
    return folder / "log.parquet"


def _mixed_parquet(folder: Path) -> Path:
    place = folder / "logs"
    place.mkdir()
    for name, nths in (("one", [1, 2]), ("two", ["1", "2"])):
        table = pa.table({"subscriber": ["a"] * 2, "nth": nths, "event": ["x", "y"]})
        pq.write_table(table, place / f"{name}.parquet")
    return place


def _empty_folder(folder: Path) -> Path:
    (folder / "nothing").mkdir()
    return folder / "nothing"


def _truncated_gzip(name: str, line: Callable[[int], str], header: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        data = gzip.compress((header + "".join(map(line, range(20000)))).encode())
        (folder / name).write_bytes(data[: len(data) // 2])
        return folder / name

    return write


def _two_formats(folder: Path) -> Path:
    place = folder / "logs"
    place.mkdir()
    (place / "a.csv").write_text(HEADER + "a,1,x\n")
    (place / "b.jsonl").write_text('{"subscriber": "a", "nth": 1, "event": "x"}\n')
    return place


def _json_lines(*lines: str) -> Callable[[Path], Path]:
    return _write("log.jsonl", "".join(line + "\n" for line in lines))


GOOD = '{"subscriber": "a", "nth": 1, "event": "x"}'

CASES: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    "no such file": (lambda folder: folder / "nope.csv", ["nope.csv", "does not exist"]),
    "empty folder": (_empty_folder, ["nothing", "empty folder"]),
    "empty file": (_write("log.csv", ""), ["log.csv", "empty", "0 bytes"]),
    "header only": (_write("log.csv", HEADER), ["log.csv", "holds no deliveries"]),
    "unknown suffix": (_write("log.txt", "a"), ["log.txt", ".parquet"]),
    "two formats": (_two_formats, ["csv and json"]),
    "missing column, csv": (
        _write("log.csv", "who,nth,event\na,1,x\n"),
        ["log.csv", "no column 'subscriber'", "who, nth, event"],
    ),
    "missing column, jsonl": (
        _json_lines('{"who": "a", "nth": 1, "event": "x"}'),
        ["log.jsonl", "no column 'subscriber'", "who, nth, event"],
    ),
    "missing column, parquet": (
        _parquet(subscriber=["a"], place=[1], event=["x"]),
        ["log.parquet", "no column 'nth'"],
    ),
    "null, parquet": (
        _parquet(subscriber=["a", None, None], nth=[1, 2, 3], event=["x", "y", "z"]),
        ["log.parquet", "'subscriber' is null in 2 of 3 rows"],
    ),
    "null, csv": (_write("log.csv", HEADER + "a,,x\na,2,y\n"), ["'nth' is null in 1 of 2"]),
    "null, jsonl": (
        _json_lines(GOOD, '{"subscriber": "a", "nth": 2, "event": null}'),
        ["'event' is null in 1 of 2"],
    ),
    "absent in one line": (
        _json_lines(GOOD, '{"subscriber": "a", "nth": 2}'),
        ["'event' is null in 1 of 2"],
    ),
    "duplicate nth": (
        _parquet(subscriber=["a"] * 4, nth=[1, 2, 2, 2], event=["w", "x", "y", "z"]),
        ["'nth' repeats: 2 deliveries", "'a', nth 2"],
    ),
    "nth is no number": (
        _write("log.csv", HEADER + "a,1,x\na,two,y\na,3.5,z\n"),
        ["'nth' holds no whole number in 2 of 3 rows", "3.5"],
    ),
    "nth is a fraction": (
        _parquet(subscriber=["a", "a"], nth=[1.0, 2.5], event=["x", "y"]),
        ["'nth' holds no whole number in 1 of 2 rows"],
    ),
    "mixed types, jsonl": (
        _json_lines(GOOD, GOOD.replace("1", "2"), GOOD.replace("1", '"3"')),
        ["'nth' has mixed types: 2 numbers and 1 strings"],
    ),
    "mixed types, parquet": (_mixed_parquet, ["'nth' has mixed types", "int64 in 1"]),
    "nested event": (
        _parquet(subscriber=["a"], nth=[1], event=[{"id": 1}]),
        ["'event' holds struct"],
    ),
    "truncated parquet": (_truncated_parquet, ["two.parquet", "not a whole Parquet file"]),
    "rotten parquet": (_rotten_parquet, ["log.parquet"]),
    "not parquet": (_write("log.parquet", "hello"), ["log.parquet", "not a whole Parquet"]),
    "truncated jsonl": (_write("log.jsonl", GOOD + "\n" + GOOD[:20]), ["in 1 of 2 lines"]),
    "not json": (_write("log.jsonl", "hello\nworld\n"), ["no JSON object in 2 of 2 lines"]),
    "truncated csv": (_write("log.csv", HEADER + "a,1,x\na,2\n"), ["1 of 2 lines", "3 fields"]),
    "truncated gzip, jsonl": (
        _truncated_gzip("log.jsonl.gz", lambda n: GOOD.replace("1", str(n + 1)) + "\n", ""),
        ["log.jsonl.gz", "cut short"],
    ),
    "truncated gzip, csv": (
        _truncated_gzip("log.csv.gz", lambda n: f"a,{n},{n * n}\n", HEADER),
        ["log.csv.gz", "cut short"],
    ),
    "not gzip": (_write("log.csv.gz", HEADER + "a,1,x\n"), ["log.csv.gz"]),
    "doubled header": (
        _write("log.csv", "subscriber,nth,event,event\na,1,x,x\n"),
        ["log.csv", "event"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_clear_sentence(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], case: str
) -> None:
    write, words = CASES[case]
    path = write(tmp_path)
    with pytest.raises(BadTrace) as caught:
        audit(spark, str(path))
    said = str(caught.value)
    for word in words:
        assert word in said
    assert_one_sentence(said)
    assert "_corrupt" not in said  # a column of the reader's own
    shown = capfd.readouterr()
    assert "\tat " not in shown.out + shown.err
    assert "Exception" not in shown.out + shown.err


def assert_one_sentence(said: str) -> None:
    assert "\n" not in said
    assert "\tat " not in said
    assert "org.apache" not in said
    assert "java." not in said
    assert len(said) < 500


def test_an_unknown_column_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown column 'offset'"):
        audit(spark, str(tmp_path), columns={"offset": "nth"})


def test_an_unknown_promise(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown promise 'order'; known: total, causal"):
        audit(spark, str(tmp_path), promises=["order"])


def test_a_mapped_column_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    path = _write("log.csv", HEADER + "a,1,x\n")(tmp_path)
    with pytest.raises(BadTrace, match=r"no column 'offset' \(asked for as 'nth'\)"):
        audit(spark, str(path), columns={"nth": "offset"})


def test_a_trace_without_deliveries(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text('{"complete": true}')
    with pytest.raises(BadTrace, match="holds no table 'deliveries'"):
        audit(spark, str(tmp_path))


def test_a_torn_last_line_of_an_unfinished_trace_is_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    _json_trace(tmp_path, complete=False)
    with open(tmp_path / "deliveries.jsonl", "a") as file:
        file.write('{"subscriber": "a", "pos')
    result = audit(spark, str(tmp_path))
    assert (result.rows, result.verdict) == (2, "incomplete")


def test_a_torn_last_line_of_a_finished_trace_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    _json_trace(tmp_path, complete=True)
    with open(tmp_path / "deliveries.jsonl", "a") as file:
        file.write('{"subscriber": "a", "pos')
    with pytest.raises(BadTrace, match="in 1 of 3 lines"):
        audit(spark, str(tmp_path))


def _json_trace(folder: Path, complete: bool) -> None:
    writer = TraceWriter(folder, format="jsonl")
    for place in (1, 2):
        event = f"p:{place}"
        writer.write("deliveries", DeliveryRow("a", place, event, "t", "p", place, 0.0, 0.1, 0.1))
    if complete:
        writer.close()
    else:
        writer.flush()


def test_errors_of_spark_are_translated() -> None:
    memory = translate("log", RuntimeError("java.lang.OutOfMemoryError: Java heap space\n\tat x"))
    assert isinstance(memory, Misuse)
    assert "spark.driver.memory" in str(memory)
    odd: InorderError = translate(
        "log", RuntimeError("o.a.s.Foo: org.apache.spark.Bar: odd\n\tat y")
    )
    assert_one_sentence(str(odd))
