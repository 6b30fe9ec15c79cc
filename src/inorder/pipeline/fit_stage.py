"""Delays of a trace on Spark: one row per publisher-subscriber pair, with its law and its dial.

A delay is `received_at - published_at`: what the network took. The two clocks need not agree, as
only the spread decides how long to wait.

Rule 1: every pair has a row. What cannot be measured or fitted is told in `problem`, in words.
Rule 2: at most FIT_SAMPLES_MAX delays of a pair reach Python; of more, a sample chosen by a hash of
        the row, before anything is shuffled. One pair with half of the log is no trouble.
Rule 3: samples are taken in the order of their departure, so a row depends on the log alone, not
        on how Spark cut it into pieces. It says what `fifo.delays.describe` says of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

from inorder.check.trace import DeliveryRow
from inorder.core.errors import Misuse
from inorder.core.limits import FIT_SAMPLES_MAX
from inorder.pipeline.session import cores
from inorder.pipeline.tables import Table, open_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession


# What comes back from the tasks (fit_pair.py), in Spark's words.
FITTED = (
    "publisher string, subscriber string, used bigint, mean double, sd double, p50 double, "
    "p90 double, p99 double, law string, shift double, shape double, means array<double>, "
    "ks double, p_value double, log_likelihood double, late double, wait double, "
    "dial array<struct<late: double, wait: double, from_law: boolean>>, trouble string"
)

PAIR = ("publisher", "subscriber")

# A fit takes up to a second, so the pairs are spread over many small tasks.
TASKS_PER_CORE = 16

# A hash keeps a little less than the limit allows: four standard deviations of that count.
KEPT_SHARE = 0.97
_HASHES = 2**32


def fit(
    spark: SparkSession,
    source: str | DataFrame,
    *,
    late: float = 0.01,
    phases: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> DataFrame:
    """The delays of every pair in a trace, a foreign log or a DataFrame of deliveries.

    `phases` are those of the hypoexponential law (fifo/fitness.py); 1 is many times faster.
    """
    from pyspark.sql import functions as F

    if not 0.0 < late <= 0.5:
        raise Misuse(f"late is {late}, it must be above 0 and at most 0.5")
    deliveries, has = _deliveries(spark, source, columns)
    lacking = [name for name in ("publisher", "published_at", "received_at") if name not in has]
    if lacking:
        return _without_times(deliveries, lacking)
    delay = F.col("received_at") - F.col("published_at")
    finite = F.coalesce(F.abs(delay) < F.lit(float("inf")), F.lit(False))
    rows = deliveries.withColumn("delay", F.when(finite & ~F.isnan(delay), delay))
    totals = rows.groupBy(*PAIR).agg(
        F.count("delay").alias("samples"),
        F.count_if(F.col("delay").isNull()).alias("unusable"),
        F.count_if(F.col("delay") < 0.0).alias("negative"),
        F.min("delay").alias("min"),
        F.max("delay").alias("max"),
    )
    sampled = _sampled(rows.where(F.col("delay").isNotNull()), totals, has)
    tasks = TASKS_PER_CORE * cores(spark)
    spread = sampled.select(*PAIR, "published_at", "delay").repartition(tasks, *PAIR)
    fitted = spread.groupBy(*PAIR).applyInArrow(_fitter(late, phases), FITTED)
    return _joined(totals, fitted)


def _deliveries(
    spark: SparkSession, source: str | DataFrame, columns: Mapping[str, str] | None
) -> tuple[DataFrame, frozenset[str]]:
    """The deliveries with our types, whoever wrote them."""
    if isinstance(source, str):
        table = open_tables(spark, source, columns).deliveries
    else:
        names = {ours: (columns or {}).get(ours, ours) for ours in DeliveryRow.__struct_fields__}
        for ours, theirs in names.items():
            if theirs not in source.columns and (ours == "subscriber" or ours != theirs):
                raise Misuse(f"the deliveries have no column {theirs!r}")
        known = [source[f"`{b}`"].alias(a) for a, b in names.items() if b in source.columns]
        table = Table("deliveries", source.select(*known), get_type_hints(DeliveryRow), 0)
    return table.frame, table.columns


def _without_times(deliveries: DataFrame, lacking: list[str]) -> DataFrame:
    """A log without the columns: the pairs it names, each with the reason."""
    from pyspark.sql import functions as F

    if "publisher" in lacking:
        deliveries = deliveries.withColumn("publisher", F.lit(None).cast("string"))
    words = " and ".join(repr(name) for name in lacking)
    totals = deliveries.groupBy(*PAIR).agg(
        F.lit(0).cast("bigint").alias("samples"),
        F.count("*").alias("unusable"),
        F.lit(0).cast("bigint").alias("negative"),
        F.lit(None).cast("double").alias("min"),
        F.lit(None).cast("double").alias("max"),
    )
    nothing = deliveries.sparkSession.createDataFrame([], FITTED)
    why = f"the log has no column {words}: its delays cannot be known"
    return _joined(totals, nothing).withColumn("problem", F.lit(why))


def _sampled(rows: DataFrame, totals: DataFrame, has: frozenset[str]) -> DataFrame:
    """Few enough rows of every pair. Only pairs with too many are looked up, and these are few:
    their table is sent to every task, and what is not kept never leaves its own."""
    from pyspark.sql import functions as F

    heavy = totals.where(F.col("samples") > FIT_SAMPLES_MAX).select(
        F.col("publisher").alias("heavy_publisher"),
        F.col("subscriber").alias("heavy_subscriber"),
        (F.lit(_HASHES * KEPT_SHARE * FIT_SAMPLES_MAX) / F.col("samples")).alias("kept"),
    )
    told = [name for name in ("event", "nth", "published_at", "received_at") if name in has]
    # Shifted: the lowest bits of one hash also choose the partitions of others.
    number = F.shiftrightunsigned(F.xxhash64(F.lit("fit"), *told), 32)
    same = F.col("publisher").eqNullSafe(F.col("heavy_publisher")) & F.col("subscriber").eqNullSafe(
        F.col("heavy_subscriber")
    )
    joined = rows.join(F.broadcast(heavy), same, "left")
    return joined.where(F.col("kept").isNull() | (number < F.col("kept")))


def _joined(totals: DataFrame, fitted: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    renamed = fitted.withColumnsRenamed({name: f"fitted_{name}" for name in PAIR})
    same = [F.col(name).eqNullSafe(F.col(f"fitted_{name}")) for name in PAIR]
    joined = totals.join(renamed, same[0] & same[1], "left")
    return joined.select(
        *PAIR, "samples", F.coalesce("used", F.lit(0)).alias("used"), "unusable", "negative",
        "min", "mean", "sd", "p50", "p90", "p99", "max", "law", "shift", "shape", "means", "ks",
        "p_value", "log_likelihood", "late", "wait", "dial", _problem().alias("problem"),
    )  # fmt: skip


def _problem() -> Column:
    """All that is odd about a pair, in one text, or null."""
    from pyspark.sql import functions as F

    rows = F.col("samples") + F.col("unusable")
    told = F.concat_ws(
        "; ",
        F.when(F.col("samples") == 0, F.lit("no delivery has usable times")),
        F.when(
            (F.col("unusable") > 0) & (F.col("samples") > 0),
            F.concat(F.col("unusable"), F.lit(" of "), rows, F.lit(" have no usable times")),
        ),
        F.when(
            F.col("negative") > 0,
            F.concat(
                F.col("negative"), F.lit(" of "), F.col("samples"),
                F.lit(" delays are below zero: the clocks disagree, waits are right all the same"),
            ),
        ),
        F.col("trouble"),
    )  # fmt: skip
    return F.when(told != "", told)


def _fitter(late: float, phases: int | None) -> Callable[[Any, Any], Any]:
    """What runs in the tasks: a group of Arrow rows in, one row out."""

    def fit_group(key: Any, table: Any) -> Any:
        import pyarrow as pa

        from inorder.pipeline.fit_pair import arrow_schema, fit_pair

        departed, delays = (table.column(name).to_numpy() for name in ("published_at", "delay"))
        names = dict(zip(PAIR, (part.as_py() for part in key), strict=True))
        row = {**names, **fit_pair(departed, delays, late, phases)}
        return pa.Table.from_pylist([row], schema=arrow_schema())

    return fit_group
