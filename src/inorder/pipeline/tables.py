"""Opening what is to be judged: a trace folder of ours, or somebody else's delivery log.

Whatever the format, a table comes out with the columns and types of `inorder.check.trace`. A value
that does not fit its column becomes null, and the first judge that meets a null asks
`Table.explain` for the exact sentence: good logs pay nothing for it.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from inorder.check import merge
from inorder.check.ending import WITHIN_S, Ending, clocks_apart, others_publish
from inorder.check.trace import SUMMARY_FILE, TABLES, DeliveryRow, SubscriptionRow, read_summary
from inorder.core.errors import BadTrace, Misuse, UnknownName
from inorder.pipeline.boundary import boundary
from inorder.pipeline.files import Files, find_files, format_of, is_remote
from inorder.pipeline.text import CORRUPT, read_csv, read_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REQUIRED = ("subscriber", "nth", "event")

_SCALARS = ("string", "bigint", "int", "smallint", "tinyint", "double", "float", "boolean")
_SQL = {int: "bigint", float: "double", bool: "boolean", str: "string"}
_WORDS = {int: "whole number", float: "number or time", bool: "true or false", str: "text"}


class Table:
    """One table: `frame` has our types, `raw` our names but what was read."""

    def __init__(
        self, path: str, raw: DataFrame, hints: dict[str, type], rows: int,
        kept: Sequence[DataFrame] = (),
    ) -> None:  # fmt: skip
        # What Spark keeps of text files until the tables are closed.
        self.kept = kept
        self.path = path
        self.raw = raw
        self.rows = rows
        self.columns = frozenset(raw.columns)
        self.hints = hints
        kinds = dict(raw.dtypes)
        for name in raw.columns:
            if hints[name] in _WORDS and not _is_scalar(kinds[name]):
                raise BadTrace(path, f"column {name!r} holds {kinds[name]}, not single values")
        self.frame = raw.select(
            *(_typed(name, kinds[name], hints[name]).alias(name) for name in raw.columns)
        )

    def forget(self) -> None:
        """Nothing is read any more: what Spark kept would answer for a file that has changed."""
        for frame in self.kept:
            frame.unpersist()

    def has(self, *names: str) -> bool:
        return self.columns.issuperset(names)

    def distinct(self, *names: str) -> set[str]:
        """The different values of a column, or of the first of these that is not null."""
        from pyspark.sql import functions as F

        with boundary(self.path):
            found = self.frame.select(F.coalesce(*names)).distinct().collect()
        return {row[0] for row in found if row[0] is not None}

    def greatest(self, names: Sequence[str]) -> list[float]:
        """The greatest value of each of these columns, of those that hold any."""
        from pyspark.sql import functions as F

        if not names:
            return []
        with boundary(self.path):
            found = self.frame.agg(*(F.max(name) for name in names)).collect()[0]
        return [float(value) for value in found if value is not None]

    def explain(self, names: Sequence[str]) -> None:
        """Refuse the table if one of these columns holds nulls or values that do not fit."""
        from pyspark.sql import functions as F

        wanted = [name for name in names if name in self.columns]
        kinds = dict(self.raw.dtypes)
        counts = []
        for name in wanted:
            raw, typed = F.col(name), _typed(name, kinds[name], self.hints[name])
            odd = raw.isNotNull() & typed.isNull()
            counts += [F.count_if(raw.isNull()), F.count_if(odd), F.min(F.when(odd, raw))]
        with boundary(self.path):
            found = self.raw.agg(F.count("*"), *counts).collect()[0]
        for place, name in enumerate(wanted):
            nulls, odd, example = found[1 + 3 * place : 4 + 3 * place]
            if nulls:
                raise BadTrace(self.path, f"column {name!r} is null in {_of(nulls, found[0])}")
            if odd:
                what = _WORDS.get(self.hints[name], "value")
                told = f"column {name!r} holds no {what} in {_of(odd, found[0])}"
                raise BadTrace(self.path, f"{told} (for instance {str(example)[:40]!r})")

    def explain_nths(self) -> None:
        """Refuse the table if a subscriber has two deliveries at one `nth`."""
        from pyspark.sql import functions as F

        with boundary(self.path):
            taken = (self.frame.groupBy("subscriber", "nth").count().where("count > 1")).agg(
                F.sum(F.col("count") - 1), F.min(F.struct("subscriber", "nth"))
            )
            extra, first = taken.collect()[0]
        if extra:
            told = f"column 'nth' repeats: {extra} deliveries stand where their subscriber"
            example = f"subscriber {first[0]!r}, nth {first[1]}"
            raise BadTrace(self.path, f"{told} already has one (for instance {example})")


class Tables:
    """What is to be judged. `complete` is False only for a trace of ours whose end is missing."""

    def __init__(self, path: str, deliveries: Table, foreign: bool) -> None:
        self.path = path
        self.foreign = foreign
        self.deliveries = deliveries
        self.events: Table | None = None
        self.subscriptions: list[SubscriptionRow] | None = None
        self.summary: dict[str, Any] = {}
        self.summaries: list[dict[str, Any]] = [{}]
        self.complete = True
        self.ending: Ending | None = None
        self.within = WITHIN_S
        self.clock_error: float | None = None
        self.elsewhere = False

    def holds_no(self, table: str) -> bool:
        """Whether its writer says that the table is empty: its file has nothing to read then."""
        return bool(_rows_of(self.summary, table) == 0)

    def subscribers(self) -> set[str]:
        """Everybody who delivered something or held anything."""
        named = {row.subscriber for row in self.subscriptions or ()}
        return named | self.deliveries.distinct("subscriber")

    def applications(self) -> set[str]:
        """Everybody who published."""
        if self.events is None or not self.events.has("publisher"):
            return set()
        if self.events.has("application"):
            return self.events.distinct("application", "publisher")
        return self.events.distinct("publisher")

    def latest(self) -> float:
        """When the last thing happened that the tables know of."""
        times = [row.at for row in self.subscriptions or ()]
        for table, names in (
            (self.deliveries, ("delivered_at",)),
            (self.events, ("published_at", "accepted_at")),
        ):
            if table is not None:
                times += table.greatest([name for name in names if table.has(name)])
        return max(times, default=0.0)

    def close(self) -> None:
        """Forget what was kept of text files."""
        for table in (self.deliveries, self.events):
            if table is not None:
                table.forget()


def open_tables(
    spark: SparkSession, path: str | Sequence[str], columns: Mapping[str, str] | None = None
) -> Tables:
    """Open a path, or several traces as one run; `columns` maps our column names of the deliveries
    to theirs."""
    paths = [path] if isinstance(path, str) else list(path)
    merge.once(paths)
    opened = [_open_one(spark, each, columns) for each in paths]
    return opened[0] if len(opened) == 1 else _merged(spark, opened)


def _open_one(spark: SparkSession, path: str, columns: Mapping[str, str] | None) -> Tables:
    columns = dict(columns or {})
    known = list(DeliveryRow.__struct_fields__)
    for name in sorted(columns):
        if name not in known:
            raise UnknownName("column", name, known)
    if is_remote(path) or not _is_trace(Path(path)):
        deliveries = _open(spark, "deliveries", find_files(path), columns)
        if not deliveries.rows:
            raise BadTrace(path, "holds no deliveries")
        return Tables(path, deliveries, foreign=True)
    return _open_trace(spark, Path(path), columns)


def _merged(spark: SparkSession, parts: Sequence[Tables]) -> Tables:
    """The traces of several processes as one run (check/merge.py)."""
    if foreign := [part.path for part in parts if part.foreign]:
        raise Misuse(f"{foreign[0]}: is no trace of ours; of other logs one is judged at a time")
    merge.apart("subscriber", {part.path: part.subscribers() for part in parts})
    merge.apart("application", {part.path: part.applications() for part in parts})
    path = ", ".join(part.path for part in parts)
    tables = Tables(path, _united(path, [part.deliveries for part in parts]), foreign=False)
    events = [part.events for part in parts if part.events is not None]
    if events and all(part.events is not None or part.holds_no("events") for part in parts):
        tables.events = _united(path, events)
    if all(part.subscriptions is not None or part.holds_no("subscriptions") for part in parts):
        tables.subscriptions = [
            row for part in parts for row in merge.with_ends(part.subscriptions or (), part.ending)
        ]
    tables.summaries = [part.summary for part in parts]
    tables.summary = merge.summary_of(tables.summaries)
    tables.complete = all(part.complete for part in parts)
    tables.ending = merge.ending_of([part.ending for part in parts])
    tables.clock_error = clocks_apart(tables.summaries)
    tables.elsewhere = others_publish(tables.summaries)
    return tables


def _united(path: str, parts: Sequence[Table]) -> Table:
    """The rows of all; a column that one of them lacks is null there."""
    raw = parts[0].frame
    for part in parts[1:]:
        raw = raw.unionByName(part.frame, allowMissingColumns=True)
    kept = [frame for part in parts for frame in part.kept]
    return Table(path, raw, parts[0].hints, sum(part.rows for part in parts), kept)


def _is_trace(path: Path) -> bool:
    """A folder with a table of deliveries in it, whoever wrote it."""
    if not path.is_dir():
        return False
    return (path / SUMMARY_FILE).exists() or _place(path, "deliveries") is not None


def _open_trace(spark: SparkSession, folder: Path, columns: dict[str, str]) -> Tables:
    summary = read_summary(folder)
    complete = bool(summary.get("complete", True))
    opened: dict[str, Table] = {}
    for name in ("deliveries", "events", "subscriptions"):
        place = _place(folder, name)
        if place and not (_rows_of(summary, name) == 0 and _is_nothing(place)):
            files = find_files(str(place))
            mapping = columns if name == "deliveries" else {}
            opened[name] = _open(spark, name, files, mapping, torn_is_fine=not complete)
    if _rows_of(summary, "deliveries") == 0 and _is_nothing(_place(folder, "deliveries")):
        opened["deliveries"] = _empty(spark, str(folder), "deliveries")
    if "deliveries" not in opened:
        raise BadTrace(str(folder), "holds no table 'deliveries'")
    tables = Tables(str(folder), opened["deliveries"], foreign=False)
    tables.events = opened.get("events")
    tables.summary = summary
    tables.summaries = [summary]
    tables.complete = complete
    tables.ending = Ending.of(summary, str(folder))
    tables.clock_error = clocks_apart([summary])
    tables.elsewhere = others_publish([summary])
    if "subscriptions" in opened:
        tables.subscriptions = _subscription_rows(opened["subscriptions"])
    return tables


def _rows_of(summary: Mapping[str, Any], table: str) -> Any:
    """How many rows its writer says a table has; None if nobody says."""
    rows = summary.get("rows")
    return rows.get(table) if isinstance(rows, dict) else None


def _is_nothing(place: Path | None) -> bool:
    return place is None or (place.is_file() and not place.stat().st_size)


def _empty(spark: SparkSession, path: str, table: str) -> Table:
    """A table that its writer says is empty: a text file of it has nothing to read."""
    hints = _hints(table)
    columns = ", ".join(f"`{name}` {_SQL.get(hint, 'string')}" for name, hint in hints.items())
    with boundary(path):
        return Table(path, spark.createDataFrame([], columns), hints, 0)


def _place(folder: Path, table: str) -> Path | None:
    """Where a table is, if it has anything in it: `events/`, or one file `events.parquet`, ..."""
    inside = folder / table
    if inside.is_dir() and any(format_of(file.name) for file in inside.rglob("*")):
        return inside
    for place in sorted(folder.glob(f"{table}.*")):
        if format_of(place.name) and (place.stat().st_size or table == "deliveries"):
            return place
    return None


def _open(
    spark: SparkSession,
    table: str,
    files: Files,
    columns: dict[str, str],
    torn_is_fine: bool = False,
) -> Table:
    hints = _hints(table)
    wanted = {name: columns.get(name, name) for name in hints}
    with boundary(files.path):
        if files.format == "json":
            raw = read_json(spark, files, wanted, torn_is_fine)
        elif files.format == "csv":
            raw = read_csv(spark, files)
        else:
            raw = spark.read.parquet(*files.places)
        kept = [raw] if raw.is_cached else []
        raw = _renamed(files, raw, wanted, set(columns), table)
        rows = files.rows if files.rows is not None else raw.count()
        return Table(files.path, raw, hints, rows, kept)


def _renamed(
    files: Files, raw: DataFrame, wanted: dict[str, str], asked: set[str], table: str
) -> DataFrame:
    """Only the columns we know, under our names; complains about those that must be there."""
    from pyspark.sql import functions as F

    required = REQUIRED if table == "deliveries" else tuple(TABLES[table].__struct_fields__[:1])
    for name in sorted({*required, *asked}):
        if wanted[name] not in raw.columns:
            meant = "" if wanted[name] == name else f" (asked for as {name!r})"
            has = ", ".join([each for each in raw.columns if each != CORRUPT][:20])
            raise BadTrace(
                files.path, f"has no column {wanted[name]!r}{meant}; its columns are {has}"
            )
    return raw.select(
        *(
            F.col("`" + theirs.replace("`", "``") + "`").alias(ours)
            for ours, theirs in wanted.items()
            if theirs in raw.columns
        )
    )


def _hints(table: str) -> dict[str, type]:
    """Our columns with their plain types: `int | None` is int."""
    hints = get_type_hints(TABLES[table])
    return {
        name: get_args(hint)[0] if isinstance(hint, types.UnionType) else hint
        for name, hint in hints.items()
    }


def _typed(name: str, kind: str, wanted: type) -> Column:
    """The column as our type; what does not fit is null."""
    from pyspark.sql import functions as F

    column = F.col(name)
    if wanted is str:
        return column.cast("string")
    if wanted is int:
        if kind in ("double", "float") or kind.startswith("decimal"):
            return F.when(column == F.floor(column), column.try_cast("bigint"))
        return column if kind == "bigint" else _trimmed(column, kind).try_cast("bigint")
    if wanted is float:
        if kind == "string":
            time = F.try_to_timestamp(column).cast("double")
            return F.coalesce(F.trim(column).try_cast("double"), time)
        return column if kind == "double" else column.cast("double")
    if wanted is bool:
        return column if kind == "boolean" else _trimmed(column, kind).try_cast("boolean")
    return column


def _trimmed(column: Column, kind: str) -> Column:
    from pyspark.sql import functions as F

    return F.trim(column) if kind == "string" else column


def _is_scalar(kind: str) -> bool:
    return kind in _SCALARS or kind.startswith(("decimal", "date", "timestamp", "void"))


def _subscription_rows(table: Table) -> list[SubscriptionRow]:
    with boundary(table.path):
        found = table.frame.collect()
    table.forget()
    rows = []
    for row in found:
        values = row.asDict()
        if values.get("topics") is None or values.get("at") is None or values.get("op") is None:
            raise BadTrace(table.path, "a subscription lacks its op, topics or time")
        values.setdefault("where", None)
        values["parameters"] = values.get("parameters") or "{}"
        rows.append(SubscriptionRow(**values))
    return rows


def _of(count: int, rows: int) -> str:
    return f"{count} of {rows} rows"
