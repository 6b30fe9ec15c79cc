"""The small data of the HTML report, from Spark; the page is written whole or not at all.

Pictures show the closest disagreements: both subscribers' deliveries around the two events, and
where those were published. A log without times is drawn by `nth`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inorder.core.errors import Misuse
from inorder.pipeline.audit import AuditResult
from inorder.pipeline.boundary import boundary
from inorder.pipeline.page import Histogram, Mark, ReportData, SpaceTime, render
from inorder.pipeline.tables import Table, open_tables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

_BINS = 30
_AROUND = 2  # deliveries shown on either side of a crossing one

_LATENCIES = {
    "network": ("published_at", "received_at"),
    "hold": ("received_at", "delivered_at"),
    "end to end": ("published_at", "delivered_at"),
}


def write_report(
    spark: SparkSession,
    path: str | Sequence[str],
    result: AuditResult,
    out: str | os.PathLike[str],
    columns: Mapping[str, str] | None = None,
) -> None:
    """Write the page; an interruption leaves an older page, or none, but never half a page."""
    target = Path(out)
    tables = open_tables(spark, path, columns)
    try:
        with boundary(result.source):
            text = render(report_data(tables.deliveries, result))
    finally:
        tables.close()
    write_whole(target, text)


def report_data(deliveries: Table, result: AuditResult) -> ReportData:
    """What the page shows."""
    return ReportData(
        title=str(result.about.get("title") or Path(result.source).name),
        source=result.source,
        rows=result.rows,
        verdict=result.verdict,
        promises=result.promises,
        about=result.about,
        promised=result.promised,
        latency=latencies(deliveries),
        pictures=[picture(deliveries, crossing) for crossing in result.crossings],
    )


def write_whole(target: Path, text: str) -> None:
    aside = target.with_name(f".{target.name}.aside")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, target)
    except OSError as error:
        raise Misuse(f"cannot write {target}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def latencies(deliveries: Table) -> dict[str, Histogram]:
    """Exact histograms of the times the columns allow, in two passes for all of them."""
    from pyspark.sql import functions as F

    spans = {
        name: F.col(end) - F.col(begin)
        for name, (begin, end) in _LATENCIES.items()
        if deliveries.has(begin, end)
    }
    if not spans or not deliveries.rows:
        return {}
    limits = [limit for span in spans.values() for limit in (F.min(span), F.max(span))]
    found = deliveries.frame.agg(*limits).collect()[0]
    edges = {
        name: bins(found[2 * place], found[2 * place + 1])
        for place, name in enumerate(spans)
        if found[2 * place] is not None
    }
    counts = [
        column.alias(f"{name}{number}")
        for name in edges
        for number, column in enumerate(_bin_counts(spans[name], edges[name]))
    ]
    if not counts:
        return {}
    row = deliveries.frame.agg(*counts).collect()[0]
    return {
        name: Histogram(each, [row[f"{name}{number}"] for number in range(len(each) - 1)])
        for name, each in edges.items()
    }


def bins(low: float, high: float) -> list[float]:
    """Edges of bins from least to greatest; geometric when they are orders of magnitude apart."""
    if high <= low:
        return [low, low + (abs(low) or 1.0) * 1e-9]
    if low > 0 and high / low > 100:
        edges = np.geomspace(low, high, _BINS + 1)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    edges[0], edges[-1] = low, high
    return [float(edge) for edge in edges]


def _bin_counts(span: Column, edges: list[float]) -> list[Column]:
    """A count for each bin; the last one includes its upper edge."""
    from pyspark.sql import functions as F

    counts = []
    for number, (low, high) in enumerate(pairwise(edges)):
        last = number == len(edges) - 2
        counts.append(F.count_if((span >= low) & ((span <= high) if last else (span < high))))
    return counts


def picture(deliveries: Table, crossing: dict[str, Any]) -> SpaceTime:
    """Both subscribers around two events they delivered in opposite orders."""
    rows = _around(deliveries, crossing)
    first, then = crossing["events"]
    a, b = crossing["subscribers"]
    time = "delivered_at" if deliveries.has("delivered_at") else "nth"
    crossed = {
        (name, event, place)
        for name, places in crossing["nths"].items()
        for event, place in zip(crossing["events"], places, strict=True)
    }
    got = [
        Mark(
            row["event"],
            row["subscriber"],
            float(row[time]),
            bool(row["in_order"]) if "in_order" in row else True,
            (row["subscriber"], row["event"], row["nth"]) in crossed,
        )
        for row in rows
    ]
    published = _publications(deliveries, rows)
    lanes = list(dict.fromkeys([*sorted({mark.lane for mark in published}), a, b]))
    caption = f"{a} delivered {first} before {then}; {b} delivered {then} before {first}"
    return SpaceTime(caption, lanes, published, got)


def _around(deliveries: Table, crossing: dict[str, Any]) -> list[Row]:
    from pyspark.sql import functions as F

    wanted = F.lit(False)
    for name, places in crossing["nths"].items():
        for place in places:
            near = F.col("nth").between(place - _AROUND, place + _AROUND)
            wanted |= (F.col("subscriber") == name) & near
    chosen: DataFrame = deliveries.frame.where(wanted).orderBy("subscriber", "nth")
    return chosen.collect()


def _publications(deliveries: Table, rows: list[Row]) -> list[Mark]:
    """Where and when the events were published, if the log says it."""
    if not deliveries.has("publisher", "published_at", "delivered_at"):
        return []
    known = {row["event"]: row for row in rows}
    return [
        Mark(event, row["publisher"], float(row["published_at"]))
        for event, row in sorted(known.items(), key=lambda item: (item[1]["published_at"], item[0]))
    ]
