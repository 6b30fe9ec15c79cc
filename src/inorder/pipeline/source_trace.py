"""A trace (trace.py) as a log for Spark, also while it is being written.

Its rows are read in the order written: the number of a row, from 0, is what limits and checkpoints
count. Events keep their stamps, so `order` treats them as the network's subscribers did: `arrival`
is that number, `received_at` when the event was accepted (null if it never was), and `offset` the
place in the event's log, or, where no log had it, among those of its topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from inorder.check.trace import arrow_schema, read_summary, read_table
from inorder.core.errors import BadTrace, Misuse
from inorder.core.limits import SOURCE_EVENTS_AT_ONCE
from inorder.pipeline.source_log import QUARANTINE, Extent
from inorder.pipeline.source_options import Settings, wanted

EVENT_COLUMNS = {
    "topic": "string",
    "offset": "bigint",
    "arrival": "bigint",
    "event": "string",
    "publisher": "string",
    "epoch": "bigint",
    "seq": "bigint",
    "key": "string",
    "headers": "string",
    "published_at": "double",
    "received_at": "double",
    "attributes": "string",
    "stamp": "string",
    "guarantee": "string",
    "log": "string",
    "position": "bigint",
}
_SPARK = {"string": "string", "int64": "bigint", "double": "double", "bool": "boolean"}


class TraceLog:
    """Goes through the table part by part: traces are of one run, and fit on one machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        _, self._matches = wanted(settings)
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

    def extent(self) -> Extent:
        rows = sum(table.num_rows for table in self._tables(["topic"] if self._is_events else None))
        return Extent(self._settings.table, 0, rows)

    def mark(self, offset: int) -> str:
        return ""

    def at(self, time: float) -> int:
        if not self._is_events:
            raise Misuse(f"option startingTimestamp: {self._settings.table} are not read by time")
        rows = 0
        for table in self._tables(["accepted_at"]):
            for row, at in enumerate(table.column("accepted_at").to_pylist(), rows):
                if at is not None and at >= time:
                    return row
            rows += table.num_rows
        return rows

    def reach(self, start: int, stop: int, rows: int) -> int:
        if not self._is_events:
            return min(stop, start + rows)
        before, left = 0, rows
        for table in self._tables(["topic"]):
            for row, topic in enumerate(table.column("topic").to_pylist(), before):
                left -= start <= row < stop and self._matches(topic)
                if not left:
                    return row + 1
            before += table.num_rows
        return stop

    def batches(self, start: int, stop: int) -> Iterator[Any]:
        row = 0
        counts: dict[str, int] = {}
        for table in self._tables(None):
            low, high = max(0, start - row), min(table.num_rows, stop - row)
            if self._is_events:
                table = self._as_events(table, row, counts)
            if low < high:
                part = self._chosen(table.slice(low, high - low))
                yield from part.combine_chunks().to_batches(max_chunksize=SOURCE_EVENTS_AT_ONCE)
            row += table.num_rows
            if row >= stop:
                return
        if self._settings.fail_on_loss:
            raise BadTrace(self._settings.place, f"ends at row {row}, not at {stop}")

    def _as_events(self, table: Any, row: int, counts: dict[str, int]) -> Any:
        """With the columns of events, in their order; `counts` goes on from table to table."""
        import pyarrow as pa
        import pyarrow.compute as pc

        places = []
        for topic in table.column("topic").to_pylist():
            places.append(counts.get(topic, 0))
            counts[topic] = places[-1] + 1
        rows = table.num_rows
        offset = pc.coalesce(table.column("offset"), pa.array(places, pa.int64()))
        table = table.set_column(table.column_names.index("offset"), "offset", offset)
        table = table.append_column("arrival", pa.array(range(row, row + rows), pa.int64()))
        table = table.append_column("received_at", table.column("accepted_at"))
        table = table.append_column("guarantee", pa.array([self._guarantee] * rows, pa.string()))
        return table.select(list(EVENT_COLUMNS))

    def _chosen(self, table: Any) -> Any:
        """The rows of wanted topics."""
        import pyarrow as pa

        if self._is_events:
            topics = table.column("topic").to_pylist()
            table = table.filter(pa.array([self._matches(topic) for topic in topics], pa.bool_()))
        if self._settings.quarantine:
            table = table.append_column(QUARANTINE, pa.nulls(table.num_rows, pa.string()))
        return table

    def _tables(self, columns: list[str] | None) -> Iterator[Any]:
        """The table in pieces, in the order written; a column that older ones lack is null."""
        folder, name = Path(self._settings.place), self._settings.table
        if (folder / name).is_dir() and not (folder / f"{name}.jsonl").exists():
            return _parts(folder / name, name, columns)
        return _pieces(read_table(folder, name), name)

    def close(self) -> None:
        """Nothing stays open."""


def _parts(folder: Path, name: str, columns: list[str] | None) -> Iterator[Any]:
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
        for field in arrow_schema(name) if columns is None else ():
            if field.name not in table.column_names:
                nothing = pa.array(
                    [1 if field.name == "epoch" else None] * table.num_rows, field.type
                )
                table = table.append_column(field.name, nothing)
        yield table


def _pieces(rows: Iterator[Any], name: str) -> Iterator[Any]:
    import pyarrow as pa

    schema = arrow_schema(name)
    while some := list(islice(rows, SOURCE_EVENTS_AT_ONCE)):
        arrays = [
            pa.array([getattr(row, field.name) for row in some], field.type) for field in schema
        ]
        yield pa.Table.from_arrays(arrays, schema=schema)
