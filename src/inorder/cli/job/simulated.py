"""A job on a simulated network, from publications to a verdict: `inorder run FILE.toml`.

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

from inorder.cli.job.summary import (
    COMPARED,
    CompareTable,
    DetectTable,
    Variant,
    sentences_of,
    variant_of,
)
from inorder.core.errors import BadScenario
from inorder.core.settings import convert
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import simulate_to_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str, float], None]


class RunTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    seed: int = 1
    out: str = "out/run"
    report: str = "out/run/report.html"


class JobTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    simulate: dict[str, Any]
    compare: tuple[CompareTable, ...] = ()
    detect: DetectTable | None = None
    run: RunTable = RunTable()


class SimulatedJob:
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

            simulate_to_folder(scenario, self.seed, folder, progress=simulating)
            progress(f"{name}: auditing on Spark", 0.0)
            result = audit(session, str(folder), promised=COMPARED)
            progress(f"{name}: writing the report", 0.0)
            write_report(session, str(folder), result, report)
            variants.append(variant_of(session, name, folder, result, self.table.detect))
        return variants

    def reports(self) -> list[Path]:
        """One page a variant."""
        if len(self.scenarios) == 1:
            return [self._report]
        return [self._report.with_stem(f"{self._report.stem}-{name}") for name in self.scenarios]

    def sentences(self, variants: list[Variant]) -> list[str]:
        """The summary in words a person understands."""
        return sentences_of(variants)

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

    def _scenario(self, table: dict[str, Any], prefix: str) -> Scenario:
        try:
            return from_table(table)
        except BadScenario as error:
            raise BadScenario(f"{prefix}.{error.key}", error.problem) from None
