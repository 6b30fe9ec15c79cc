"""Reading JSON lines and CSV: once, strictly, and kept on disk for the passes that follow.

Everything is read as text. Types are our business, since Spark's guesses hide what is mixed up.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from inorder.core.errors import BadTrace
from inorder.pipeline.files import Files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CORRUPT = "_corrupt_record"
_NAMES_SHOWN = 20

# Variant types that are the same to a reader of the log.
_FAMILIES = {
    "BIGINT": "numbers",
    "DECIMAL": "numbers",
    "DOUBLE": "numbers",
    "FLOAT": "numbers",
    "STRING": "strings",
    "BOOLEAN": "booleans",
    "OBJECT": "objects",
    "ARRAY": "lists",
}


def read_json(
    spark: SparkSession, files: Files, wanted: dict[str, str], torn_is_fine: bool
) -> DataFrame:
    """JSON lines as columns of text; `wanted` maps our names to theirs, `topics` is a list."""
    from pyspark.sql import functions as F

    lines = spark.read.text(files.places).where(F.trim("value") != "")
    values = lines.select(F.try_parse_json("value").alias("v"))
    found = values.agg(
        F.count("*"),
        F.count_if(~_is_object(F.col("v"))),
        *(F.collect_set(_kind(theirs)) for theirs in wanted.values()),
    ).collect()[0]
    rows, corrupt = found[0], found[1]
    if corrupt and not (torn_is_fine and corrupt == 1 and _ends_torn(files)):
        raise BadTrace(files.path, f"holds no JSON object in {corrupt} of {rows} lines")
    if rows == corrupt:
        raise BadTrace(files.path, "holds no rows")
    kinds = dict(zip(wanted, found[2:], strict=True))
    _refuse_mixed(files, values, kinds, wanted)
    present = [(ours, theirs) for ours, theirs in wanted.items() if kinds[ours]]
    missing = {ours for ours in wanted if not kinds[ours]}
    raw = values.where(_is_object(F.col("v"))).select(
        *(
            F.try_variant_get("v", _path(theirs), _read_as(ours)).alias(theirs)
            for ours, theirs in present
        )
    )
    if missing & {"subscriber", "nth", "event"}:
        raise BadTrace(files.path, _lacking(spark, files, missing, wanted))
    return _kept(raw)


def read_csv(spark: SparkSession, files: Files) -> DataFrame:
    """CSV with a header line as columns of text."""
    from pyspark.sql import functions as F

    reader = spark.read.option("header", True).option("enforceSchema", False)
    names = reader.csv(files.places[0]).columns
    header = [name for name in spark.read.csv(files.places[0]).first() or () if name is not None]
    if doubled := sorted({name for name in header if header.count(name) > 1}):
        raise BadTrace(files.path, f"names column {doubled[0]!r} twice in its header line")
    schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in [*names, CORRUPT])
    raw = reader.option("columnNameOfCorruptRecord", CORRUPT).csv(files.places, schema=schema)
    raw = _kept(raw)
    rows, corrupt = raw.agg(F.count("*"), F.count(CORRUPT)).collect()[0]
    if corrupt:
        told = f"{corrupt} of {rows} lines have not the {len(names)} fields of the header line"
        raise BadTrace(files.path, f"is cut short or damaged: {told}")
    return raw


def _kept(raw: DataFrame) -> DataFrame:
    from pyspark import StorageLevel

    return raw.persist(StorageLevel.DISK_ONLY)


def _path(name: str) -> str:
    return '$["' + name.replace("\\", "\\\\").replace('"', '\\"') + '"]'


def _read_as(ours: str) -> str:
    return "array<string>" if ours == "topics" else "string"


def _is_object(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.startswith(F.schema_of_variant(value), F.lit("OBJECT")), F.lit(False))


def _kind(name: str) -> Column:
    """The first word of a field's type: BIGINT, STRING, VOID for a null, nothing if absent."""
    from pyspark.sql import functions as F

    field = F.try_variant_get("v", _path(name), "variant")
    return F.regexp_extract(F.schema_of_variant(field), "^[A-Z]+", 0)


def _refuse_mixed(
    files: Files, values: DataFrame, kinds: dict[str, list[str]], wanted: dict[str, str]
) -> None:
    from pyspark.sql import functions as F

    for ours, found in kinds.items():
        families = sorted({_FAMILIES.get(kind, kind) for kind in found if kind != "VOID"})
        if len(families) > 1:
            kind = _kind(wanted[ours]).alias("kind")
            counted = values.select(kind).groupBy("kind").agg(F.count("*")).collect()
            rows = dict.fromkeys(families, 0)
            for name, count in counted:
                family = _FAMILIES.get(name, name)
                if family in rows:
                    rows[family] += count
            told = " and ".join(f"{rows[family]} {family}" for family in families)
            raise BadTrace(files.path, f"column {wanted[ours]!r} has mixed types: {told}")


def _lacking(spark: SparkSession, files: Files, missing: set[str], wanted: dict[str, str]) -> str:
    name = min(missing & {"subscriber", "nth", "event"})
    first = json.loads(spark.read.text(files.places).where("trim(value) != ''").first()[0])  # type: ignore[index]
    has = ", ".join([each for each in first if each != CORRUPT][:_NAMES_SHOWN])
    meant = "" if wanted[name] == name else f" (asked for as {name!r})"
    return f"has no column {wanted[name]!r}{meant}; its columns are {has}"


def _ends_torn(files: Files) -> bool:
    """Whether the last line was cut off in mid-write, as a killed writer leaves it."""
    with open(files.names[-1], "rb") as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"
