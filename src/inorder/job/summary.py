"""What a job shows at its end: one line for each variant, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from inorder.check.detect import Agreement, agreement, findings
from inorder.trace import read_table

if TYPE_CHECKING:
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
    # Whether two subscribers may have the same events at all: else nobody can disagree.
    compared: bool = True

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


def read_back(folder: Path, detect: DetectTable | None) -> tuple[Agreement | None, int]:
    """How far the detectors agree, and how many deliveries came too late."""
    kinds: dict[str, object] = {}
    seen: dict[str, list[tuple[int, str]]] = {}
    if detect is not None:
        seen = {name: [] for name in detect.detectors}
        for row in read_table(folder, "events"):
            kinds[row.event] = msgspec.json.decode(row.attributes).get(detect.attribute)
    tagged = 0
    for row in read_table(folder, "deliveries"):
        tagged += not row.in_order
        if row.subscriber in seen:
            seen[row.subscriber].append((row.position, row.event))
    if detect is None:
        return None, tagged
    logs = [[(event, kinds.get(event)) for _, event in sorted(log)] for log in seen.values()]
    return agreement([findings(log, detect.pattern) for log in logs]), tagged


def sentences_of(variants: Sequence[Variant]) -> list[str]:
    """The summary in words a person understands."""
    return [sentence for variant in variants for sentence in variant.sentences()]
