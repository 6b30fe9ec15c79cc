"""The one schema of what happened: four tables, written by every driver, read by every judge.

| table         | a row is                                                                  |
|---------------|---------------------------------------------------------------------------|
| events        | a publication, written once its fate is known (or the run has ended)      |
| deliveries    | an event handed to an application                                         |
| subscriptions | a change of what a subscriber holds                                       |
| messages      | something the network moved, or lost (`received_at` is null)              |

On disk a trace is a folder. Parquet: `deliveries/part-00000.parquet`, ... each part is one row
group, written aside and renamed, so a killed writer leaves whole parts only. JSONL:
`deliveries.jsonl`; a torn last line is dropped by the reader. `trace.json` says which run it was
and, in its last write, that the trace is complete.

Times are seconds of the driver's clock. `nth` counts a subscriber's deliveries from 1. `after` is
the number of deliveries a subscriber had made when it changed its subscription: it orders the two
even when their times are equal. `seen` does the same for publications: how many deliveries of each
subscription the application had been handed when it published, `{"s1": 4}`, and only of those that
have moved since its event before. `attributes`, `parameters`, `seen`, `stamp` and `headers` are
JSON text.

Where events stand in logs, their rows say where: in which `log` (its identity) at which `offset`,
and at which `position` of the order that all subscribers share. Drivers of networks leave them
null.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args, get_type_hints

import msgspec
from msgspec import Struct

from inorder.check.ending import Ending
from inorder.core.errors import BadTrace, MissingPart, Misuse, UnknownName
from inorder.core.limits import TRACE_ROWS_PER_PART

Format = Literal["parquet", "jsonl"]


class EventRow(Struct, gc=False):
    """`outcome` is what the publisher was told: accepted, refused, or unknown when its life, or the
    run, ended before the answer. Null: it was never told. `accepted_at` is null unless accepted.

    `application` is who published, under whatever name of a publisher; null is the publisher's own.
    `seen` is null when nobody recorded it, and `{}` when nothing had moved. `published_at` is the
    call; an event that had to wait in its publisher came into being at `launched_at`, which is null
    where events are made when they are called for. One that never was has its call for a name, and
    a number above 2**62. `epoch` is the life of the publisher that numbered it.
    """

    event: str
    topic: str
    publisher: str
    seq: int
    published_at: float
    accepted_at: float | None = None
    outcome: str | None = None
    application: str | None = None
    seen: str | None = None
    bytes: int = 0
    attributes: str = "{}"
    stamp: str = "{}"
    launched_at: float | None = None
    epoch: int = 1
    key: str | None = None
    headers: str | None = None
    log: str | None = None
    offset: int | None = None
    position: int | None = None


class DeliveryRow(Struct, gc=False):
    subscriber: str
    nth: int
    event: str
    topic: str
    publisher: str
    seq: int
    published_at: float
    received_at: float
    delivered_at: float
    in_order: bool = True
    epoch: int = 1


class SubscriptionRow(Struct, gc=False):
    """`at` is when a subscribe or set returned, and when an unsubscribe was called."""

    subscriber: str
    op: str
    topics: list[str]
    where: str | None
    parameters: str
    at: float
    after: int | None = None


class MessageRow(Struct, gc=False):
    source: str
    target: str
    kind: str
    bytes: int
    sent_at: float
    received_at: float | None


TABLES: dict[str, type[Struct]] = {
    "events": EventRow,
    "deliveries": DeliveryRow,
    "subscriptions": SubscriptionRow,
    "messages": MessageRow,
}

SUMMARY_FILE = "trace.json"


def arrow_schema(table: str) -> Any:
    """The pyarrow schema of a table, from the annotations of its row."""
    pa = _pyarrow()
    kinds = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        list[str]: pa.list_(pa.string()),
        int | None: pa.int64(),
        float | None: pa.float64(),
        str | None: pa.string(),
    }
    hints = get_type_hints(TABLES[table])
    return pa.schema([(name, kinds[hint]) for name, hint in hints.items()])


class TraceWriter:
    """Streams rows to disk; memory holds at most one part of each table.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with TraceWriter(folder, format="jsonl") as trace:
    ...     trace.write("deliveries", DeliveryRow("s1", 1, "p1:1", "t", "p1", 1, 0.0, 0.1, 0.1))
    >>> [row.event for row in read_table(folder, "deliveries")]
    ['p1:1']
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        format: Format = "parquet",
        about: dict[str, Any] | None = None,
        rows_per_part: int = TRACE_ROWS_PER_PART,
    ) -> None:
        self._folder = Path(folder)
        if format not in get_args(Format):
            raise UnknownName("format of a trace", format, list(get_args(Format)))
        if format == "parquet":
            _pyarrow()
        self._format = format
        self._about = dict(about or {})
        self._rows_per_part = rows_per_part
        self._rows: dict[str, list[Struct]] = {name: [] for name in TABLES}
        self._parts = dict.fromkeys(TABLES, 0)
        self._written = dict.fromkeys(TABLES, 0)
        self._prepare()

    def write(self, table: str, row: Struct) -> None:
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= self._rows_per_part:
            self._flush(table)

    def flush(self) -> None:
        """Put every row so far on disk."""
        for table, rows in self._rows.items():
            if rows:
                self._flush(table)

    def about(self, **facts: Any) -> None:
        """Remember more about the run, for the last write of `trace.json`."""
        self._about.update(facts)

    def ended(self, ending: Ending) -> None:
        """Remember how the run ended, for the last write of `trace.json`."""
        self.about(**ending.to_json())

    def close(self) -> None:
        """Write what is left and say that the trace is complete."""
        self.flush()
        for table in TABLES:
            if not self._parts[table]:
                self._flush(table)
        self._summarise(complete=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.flush()

    def _prepare(self) -> None:
        """Clear an older trace out of the folder; refuse to touch anything else's files."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Misuse(f"{self._folder}: cannot be a folder: {error.strerror}") from None
        ours = {SUMMARY_FILE, *TABLES, *(f"{name}.jsonl" for name in TABLES)}
        if (self._folder / SUMMARY_FILE).exists():
            for name in sorted(ours):
                _remove(self._folder / name)
        elif clash := sorted(ours & {path.name for path in self._folder.iterdir()}):
            raise BadTrace(str(self._folder), f"not an inorder trace, but holds {clash[0]!r}")
        self._summarise(complete=False)

    def _summarise(self, complete: bool) -> None:
        summary = {**self._about, "complete": complete, "rows": self._written}
        text = json.dumps(summary, indent=2, sort_keys=True) + "\n"
        _write_aside(self._folder / SUMMARY_FILE, text.encode())

    def _flush(self, table: str) -> None:
        rows, self._rows[table] = self._rows[table], []
        if self._format == "jsonl":
            encode = msgspec.json.Encoder().encode
            with open(self._folder / f"{table}.jsonl", "ab") as file:
                file.write(b"".join(encode(row) + b"\n" for row in rows))
        else:
            self._write_part(table, rows)
        self._parts[table] += 1
        self._written[table] += len(rows)

    def _write_part(self, table: str, rows: list[Struct]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = arrow_schema(table)
        columns = [
            pa.array([getattr(row, field.name) for row in rows], type=field.type)
            for field in schema
        ]
        part = self._folder / table / f"part-{self._parts[table]:05d}.parquet"
        part.parent.mkdir(exist_ok=True)
        aside = part.with_name(f".{part.name}.aside")
        pq.write_table(pa.Table.from_arrays(columns, schema=schema), aside, compression="zstd")
        os.replace(aside, part)


def read_summary(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `trace.json` says, or nothing when there is none (a foreign log)."""
    path = Path(folder) / SUMMARY_FILE
    try:
        summary = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise BadTrace(str(path), f"is not JSON ({error})") from None
    if not isinstance(summary, dict):
        raise BadTrace(str(path), "is not a JSON object")
    return summary


def read_table(folder: str | os.PathLike[str], table: str) -> Iterator[Any]:
    """The rows of a table, in the order written, up to the last whole line or part."""
    folder = Path(folder)
    if (folder / f"{table}.jsonl").exists():
        return _read_jsonl(folder / f"{table}.jsonl", TABLES[table])
    if (folder / table).is_dir():
        return _read_parts(folder / table, TABLES[table])
    raise BadTrace(str(folder), f"holds no table {table!r}")


def _read_jsonl(path: Path, row_type: type[Struct]) -> Iterator[Any]:
    decode = msgspec.json.Decoder(row_type).decode
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # torn by a crash in mid-write: the trace ends with the line before
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadTrace(str(path), f"line {number}: {error}") from None


def _read_parts(folder: Path, row_type: type[Struct]) -> Iterator[Any]:
    _pyarrow()
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A stream writes each of its batches into a folder of its own.
    parts = sorted(p for p in folder.rglob("part-*.parquet") if "_temporary" not in p.parts)
    for path in parts:
        try:
            rows = pq.read_table(path).to_pylist()
        except (pa.ArrowException, OSError) as error:
            if path == parts[-1]:
                return  # a copy cut short: the trace ends with the part before
            raise BadTrace(str(path), f"is not a whole Parquet file ({error})") from None
        for row in rows:
            try:
                yield msgspec.convert(row, row_type)
            except msgspec.ValidationError as error:
                raise BadTrace(str(path), str(error)) from None


def _write_aside(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.aside")
    aside.write_bytes(data)
    os.replace(aside, path)


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            inner.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingPart("pyarrow", "spark", "or choose the format jsonl") from None
    return pyarrow
