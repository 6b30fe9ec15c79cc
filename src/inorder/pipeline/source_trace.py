"""A trace (trace.py) as a log for Spark, also while it is being written.

Its events get the columns every log has: `offset` counts those of a topic, `arrival` is the row in
the table, `received_at` is when the event was accepted (null if it never was). The other tables
have rows, no topics: each of them is read as one topic that has the table's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from inorder.check.trace import arrow_schema, read_summary, read_table
from inorder.core.errors import BadTrace, Misuse
from inorder.core.limits import SOURCE_EVENTS_AT_ONCE
from inorder.pipeline.source_log import EVENT_COLUMNS, QUARANTINE, Extent, Run, Slice
from inorder.pipeline.source_options import Settings

_SPARK = {"string": "string", "int64": "bigint", "double": "double", "bool": "boolean"}


class TraceLog:
    """Goes through the table part by part: traces are of one run, and fit on one machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        folder = Path(settings.place)
        if not folder.is_dir():
            raise Misuse(f"{folder}: there is no such trace")
        order = read_summary(folder).get("order")
        self._guarantee = order.get("guarantee") if isinstance(order, dict) else None
        self._is_events = settings.table == "events"

    def columns(self) -> dict[str, str]:
        if self._is_events:
            return EVENT_COLUMNS
        return {
            field.name: _SPARK.get(str(field.type), "array<string>")
            for field in arrow_schema(self._settings.table)
        }

    def extents(self) -> dict[str, Extent]:
        counts: dict[str, int] = {}
        if not self._is_events:
            counts[self._settings.table] = 0
        for table in self._tables(["topic"] if self._is_events else None):
            for topic, count in self._counts(table):
                counts[topic] = counts.get(topic, 0) + count
        return {topic: Extent(0, count) for topic, count in counts.items()}

    def _counts(self, table: Any) -> list[tuple[str, int]]:
        if not self._is_events:
            return [(self._settings.table, table.num_rows)]
        counted = table.column("topic").value_counts()
        return [(each["values"].as_py(), each["counts"].as_py()) for each in counted]

    def arrived(self, waiting: Sequence[Slice]) -> Iterator[Run]:
        if not self._is_events:
            yield from ((each.topic, each.start, each.end - each.start) for each in waiting)
            return
        counts: dict[str, int] = {}
        for table in self._tables(["topic"]):
            for topic in table.column("topic").to_pylist():
                offset = counts.get(topic, 0)
                yield topic, offset, 1
                counts[topic] = offset + 1

    def batches(self, topic: str, start: int, end: int) -> Iterator[Any]:
        import pyarrow.compute as pc

        offset = row = 0
        for table in self._tables(None):
            arrival = range(row, row + table.num_rows)
            row += table.num_rows
            if self._is_events:
                table = self._as_events(table, arrival).filter(
                    pc.equal(table.column("topic"), topic)
                )
            low, high = max(0, start - offset), min(table.num_rows, end - offset)
            if low < high:
                part = self._numbered(table.slice(low, high - low), offset + low)
                yield from part.combine_chunks().to_batches(max_chunksize=SOURCE_EVENTS_AT_ONCE)
            offset += table.num_rows
            if offset >= end:
                return
        if self._settings.fail_on_loss:
            raise BadTrace(self._settings.place, f"{topic!r} ends at row {offset}, not at {end}")

    def _as_events(self, table: Any, arrival: range) -> Any:
        import pyarrow as pa

        rows = table.num_rows
        table = table.append_column("arrival", pa.array(arrival, pa.int64()))
        table = table.append_column("received_at", table.column("accepted_at"))
        return table.append_column("guarantee", pa.array([self._guarantee] * rows, pa.string()))

    def _numbered(self, table: Any, offset: int) -> Any:
        """With the offsets, and the columns in their order."""
        import pyarrow as pa

        rows = table.num_rows
        if self._is_events:
            numbers = pa.array(range(offset, offset + rows), pa.int64())
            table = table.append_column("offset", numbers).select(list(EVENT_COLUMNS))
        if self._settings.quarantine:
            table = table.append_column(QUARANTINE, pa.nulls(rows, pa.string()))
        return table

    def _tables(self, columns: list[str] | None) -> Iterator[Any]:
        """The table in pieces, in the order written."""
        folder, name = Path(self._settings.place), self._settings.table
        if (folder / name).is_dir() and not (folder / f"{name}.jsonl").exists():
            return _parts(folder / name, columns)
        return _pieces(read_table(folder, name), name)

    def close(self) -> None:
        """Nothing stays open."""


def _parts(folder: Path, columns: list[str] | None) -> Iterator[Any]:
    """Parquet parts; a last one that was cut short is not there yet (as in trace.py)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = sorted(p for p in folder.rglob("part-*.parquet") if "_temporary" not in p.parts)
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                table = file.read(columns)
        except (pa.ArrowException, OSError) as error:
            if path == paths[-1]:
                return
            raise BadTrace(str(path), f"is not a whole Parquet file ({error})") from None
        yield table


def _pieces(rows: Iterator[Any], name: str) -> Iterator[Any]:
    import pyarrow as pa

    schema = arrow_schema(name)
    while some := list(islice(rows, SOURCE_EVENTS_AT_ONCE)):
        arrays = [
            pa.array([getattr(row, field.name) for row in some], field.type) for field in schema
        ]
        yield pa.Table.from_arrays(arrays, schema=schema)
