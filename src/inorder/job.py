"""The main job: a described run from publications to a verdict, for `inorder run FILE.toml`.

    [simulate]        a scenario (docs/scenarios.md)
    [[compare]]       optional: the same scenario under other orders, side by side
    [detect]          optional: pattern detectors, and how far they agree
    [run]             seed, where the traces go, where the report goes

Each variant is simulated to a trace on disk, audited on Spark, and summed up in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from inorder.check.detect import Agreement, agreement, findings
from inorder.errors import BadScenario
from inorder.settings import convert
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import Outcome, simulate_to_folder
from inorder.trace import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from inorder.pipeline.audit import AuditResult

Progress = Callable[[str, float], None]


class RunTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    seed: int = 1
    out: str = "out/run"
    report: str = "out/run/report.html"


class DetectTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    detectors: tuple[str, ...]
    attribute: str
    pattern: tuple[bool | int | float | str, ...]


class CompareTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    order: dict[str, Any]


class JobTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    simulate: dict[str, Any]
    compare: tuple[CompareTable, ...] = ()
    detect: DetectTable | None = None
    run: RunTable = RunTable()


class Variant(Struct, frozen=True):
    """What one order made of the scenario."""

    name: str
    folder: Path
    outcome: Outcome
    audit: AuditResult
    agreement: Agreement | None
    tagged: int

    def cells(self) -> tuple[str, ...]:
        """One row of the summary."""
        violations = self.audit.promises["total"].violations
        share = "-" if self.agreement is None else f"{self.agreement.share:.0%}"
        delivered = self.outcome.delivered
        return (
            self.name,
            f"{self.outcome.published:,}",
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
            share = self.tagged / self.outcome.delivered
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
            "published": self.outcome.published,
            "deliveries": self.outcome.delivered,
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


class Job:
    """A validated job file."""

    def __init__(
        self, table: dict[str, Any], seed: int | None = None, out: Path | None = None
    ) -> None:
        self.table: JobTable = convert(table, JobTable, "")
        run = self.table.run
        self.seed = run.seed if seed is None else seed
        self.out = Path(run.out) if out is None else out
        self._report = Path(run.report) if out is None else out / "report.html"
        scenario = self._scenario(self.table.simulate, "simulate")
        self.scenarios: dict[str, Scenario] = {}
        if not self.table.compare:
            self.scenarios[str(scenario.order.get("guarantee", "none"))] = scenario
        for number, other in enumerate(self.table.compare, 1):
            merged = {**self.table.simulate, "order": other.order}
            if other.name in self.scenarios:
                raise BadScenario(f"compare[{number}].name", f"{other.name!r} occurs twice")
            self.scenarios[other.name] = self._scenario(merged, f"compare[{number}]")

    @classmethod
    def load(cls, path: Path, seed: int | None = None, out: Path | None = None) -> Job:
        try:
            return cls(msgspec.toml.decode(path.read_bytes()), seed, out)
        except OSError as error:
            raise BadScenario(str(path), f"cannot be read: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadScenario(str(path), f"is not TOML: {error}") from None

    @property
    def title(self) -> str:
        return next(iter(self.scenarios.values())).title

    def run(self, spark: Callable[[], SparkSession], progress: Progress) -> list[Variant]:
        """Simulate, audit and report every variant."""
        progress("starting Spark", 0.0)
        session = spark()  # first of all: a missing part or Java is said before anything is done
        from inorder.pipeline.audit import audit
        from inorder.pipeline.report import write_report

        variants: list[Variant] = []
        reports = self.reports()
        for report, (name, scenario) in zip(reports, self.scenarios.items(), strict=True):
            folder = self.out / name

            def simulating(share: float, name: str = name) -> None:
                progress(f"{name}: simulating", share)

            outcome = simulate_to_folder(scenario, self.seed, folder, progress=simulating)
            progress(f"{name}: auditing on Spark", 0.0)
            result = audit(session, str(folder))
            progress(f"{name}: writing the report", 0.0)
            write_report(session, str(folder), result, report)
            found, tagged = self._read_back(folder)
            variants.append(Variant(name, folder, outcome, result, found, tagged))
        return variants

    def reports(self) -> list[Path]:
        """One page a variant."""
        if len(self.scenarios) == 1:
            return [self._report]
        return [self._report.with_stem(f"{self._report.stem}-{name}") for name in self.scenarios]

    def sentences(self, variants: list[Variant]) -> list[str]:
        """The summary in words a person understands."""
        return [sentence for variant in variants for sentence in variant.sentences()]

    def as_json(self, variants: list[Variant]) -> str:
        """The summary for machines."""
        return msgspec.json.encode(
            {
                "title": self.title,
                "seed": self.seed,
                "variants": {variant.name: variant.summary() for variant in variants},
                "reports": [str(report) for report in self.reports()],
            }
        ).decode()

    def _read_back(self, folder: Path) -> tuple[Agreement | None, int]:
        """How far the detectors agree, and how many deliveries came too late."""
        detect = self.table.detect
        kinds: dict[str, object] = {}
        seen: dict[str, list[tuple[str, object]]] = {}
        if detect is not None:
            seen = {name: [] for name in detect.detectors}
            for row in read_table(folder, "events"):
                attributes = msgspec.json.decode(row.attributes)
                kinds[row.event] = attributes.get(detect.attribute)
        tagged = 0
        for row in read_table(folder, "deliveries"):
            tagged += not row.in_order
            if row.subscriber in seen:
                seen[row.subscriber].append((row.event, kinds.get(row.event)))
        if detect is None:
            return None, tagged
        return agreement([findings(log, detect.pattern) for log in seen.values()]), tagged

    def _scenario(self, table: dict[str, Any], prefix: str) -> Scenario:
        try:
            return from_table(table)
        except BadScenario as error:
            raise BadScenario(f"{prefix}.{error.key}", error.problem) from None
