"""What a job shows at its end: one line for each variant, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from inorder.check.detect import Agreement, agreement, findings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from inorder.pipeline.audit import AuditResult


class DetectTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[detect]`: pattern detectors among the subscribers."""

    detectors: tuple[str, ...]
    attribute: str
    pattern: tuple[bool | int | float | str, ...]


class CompareTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[compare]]`: the same events under another order."""

    name: str
    order: dict[str, Any]


class Variant(Struct, frozen=True):
    """What one order made of the scenario."""

    name: str
    folder: Path
    published: int
    delivered: int
    tagged: int
    audit: AuditResult
    agreement: Agreement | None

    def cells(self) -> tuple[str, ...]:
        """One row of the summary."""
        violations = self.audit.promises["total"].violations
        share = "-" if self.agreement is None else f"{self.agreement.share:.0%}"
        delivered = self.delivered
        return (
            self.name,
            f"{self.published:,}",
            f"{delivered:,}",
            f"{violations:,}",
            f"{self.tagged / delivered:.1%}" if delivered else "-",
            share,
        )

    def sentences(self) -> list[str]:
        """What happened, in words a person understands."""
        total = self.audit.promises["total"]
        if not total.kept:
            lines = [
                f"{self.name}: {total.violations:,} times two subscribers delivered the same two "
                "events in opposite orders."
            ]
        elif self.tagged:
            share = self.tagged / self.delivered
            lines = [
                f"{self.name}: no two subscribers ever disagreed, at the price of "
                f"{share:.0%} of the deliveries tagged as too late."
            ]
        else:
            lines = [f"{self.name}: no two subscribers ever disagreed about the order."]
        found = self.agreement
        if found is not None and found.by_any:
            lines.append(
                f"{self.name}: of {found.by_any} patterns found by any detector, "
                f"{found.by_all} ({found.share:.0%}) were found by all."
            )
        return lines

    def summary(self) -> dict[str, Any]:
        agreed = self.agreement
        return {
            "published": self.published,
            "deliveries": self.delivered,
            "tagged": self.tagged,
            "verdict": self.audit.verdict,
            "violations": {
                name: verdict.violations
                for name, verdict in self.audit.promises.items()
                if verdict.judged
            },
            "patterns_by_any": agreed and agreed.by_any,
            "patterns_by_all": agreed and agreed.by_all,
        }


# Variants are compared by the same promises, whatever the guarantee of each of them promises.
COMPARED = ("total", "causal", "fifo", "unique", "reliable", "filter")


def variant_of(
    spark: SparkSession, name: str, folder: Path, result: AuditResult, detect: DetectTable | None
) -> Variant:
    """The figures of a trace that was audited; only what detectors got is looked at here."""
    deliveries = _table(spark, folder, "deliveries")
    events = _table(spark, folder, "events")
    tagged = deliveries.where("NOT in_order").count()
    found = None if detect is None else _agreement(deliveries, events, detect)
    return Variant(name, folder, events.count(), result.rows, tagged, result, found)


def _table(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    reader = spark.read.option("recursiveFileLookup", "true")
    return reader.parquet(str((folder / name).absolute()))


def _agreement(deliveries: DataFrame, events: DataFrame, detect: DetectTable) -> Agreement:
    """How far the detectors agree on what they found."""
    theirs = deliveries.where(deliveries.subscriber.isin(list(detect.detectors)))
    told = theirs.select("subscriber", "nth", "event").join(
        events.select("event", "attributes"), "event"
    )
    logs: dict[str, list[tuple[str, object]]] = {name: [] for name in detect.detectors}
    for row in told.sort("subscriber", "nth").toLocalIterator():
        kind = msgspec.json.decode(row.attributes).get(detect.attribute)
        logs[row.subscriber].append((row.event, kind))
    return agreement([findings(log, detect.pattern) for log in logs.values()])


def sentences_of(variants: Sequence[Variant]) -> list[str]:
    """The summary in words a person understands."""
    return [sentence for variant in variants for sentence in variant.sentences()]
