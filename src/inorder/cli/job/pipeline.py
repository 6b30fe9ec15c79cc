"""A job of the pipeline: read a broker, match, put in order, write, audit, report.

    [source]          where events come from (url, subscribe, startingOffsets, ...)
    [publishers]      optional: real processes that publish there first
    [[subscribers]]   optional: real processes that record what the broker hands them
    [[subscriptions]] what Spark matches, per subscriber; without any, all events for one subscriber
    [order]           the guarantee under which Spark delivers
    [simulate]        optional: the same story on a simulated network, which keeps nothing
    [[compare]]       what Spark makes of what its subscribers were handed, under several orders
    [sink] [detect] [run]

The rows of a log have positions, so nothing waits and nothing comes too late: options of [order]
are for traces of networks, whose rows have stamps.

With publishers the job begins anew each time: the source is its own. Without, it is resumable: what
was delivered stays delivered, and the next run goes on where the checkpoint stands.
"""

from __future__ import annotations

import glob
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inorder.cli.job.live import Load
from inorder.cli.job.stages import (
    EVERYTHING,
    SUBSCRIPTIONS,
    Simulated,
    Stream,
    events_waiting,
    first_position,
    handed_over,
    last_position,
    live_subscriptions,
    read_log,
    remove,
    subscription_rows,
    wait_for,
    write_trace,
)
from inorder.cli.job.summary import COMPARED, Variant, sentences_of, variant_of
from inorder.cli.job.tables import (
    Member,
    PipelineTable,
    check_publishers,
    check_run,
    check_sink,
    members,
    named,
    order_of,
)
from inorder.core.errors import BadScenario, Misuse
from inorder.core.settings import convert
from inorder.guarantee.registry import Guarantee
from inorder.pipeline.boundary import boundary
from inorder.pipeline.source_options import read_options
from inorder.sim.scenario import Scenario, from_table
from inorder.sim.simulate import simulate_to_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str, float], None]

_SCHEMES = ("sqlite:///", "trace:///")

# What the job makes in its folder, and begins anew when it brings its own publishers.
_OWN = (
    "arrivals", "checkpoint", "counts", "first-position.json", "identity.json",
    "subscription-table", "quarantine", "pipeline", "live", "simulated", "none",
)  # fmt: skip

# On the simulated network events get stamps, and subscribers are handed everything as it comes.
_AS_IT_COMES = {"guarantee": "total", "mode": "tag", "buffer": 0}


class PipelineJob:
    """A validated job file."""

    def __init__(
        self, table: dict[str, Any], seed: int | None = None, out: Path | None = None
    ) -> None:
        self.table: PipelineTable = convert(table, PipelineTable, "")
        t = self.table
        self.seed = t.run.seed if seed is None else seed
        self.out = Path(t.run.out) if out is None else out
        own_report = t.run.report is None or out is not None
        self._report = self.out / "report.html" if own_report else Path(str(t.run.report))
        self.url = _absolute(t.source.url.replace("{out}", str(self.out)))
        topics = t.source.subscribe
        self._live = members(t.subscribers, topics, str(self.seed), "subscribers")
        self._matched = members(t.subscriptions, topics, str(self.seed), "subscriptions")
        self._guarantee, self._order = order_of(t.order, "order")
        self._compared: dict[str, tuple[Guarantee, dict[str, Any]]] = {}
        for number, each in enumerate(t.compare, 1):
            if each.name in ("live", "simulated", "none", "pipeline", *self._compared):
                raise BadScenario(f"compare[{number}].name", f"{each.name!r} is taken")
            self._compared[each.name] = order_of(each.order, f"compare[{number}].order")
        self._scenario = None if t.simulate is None else _scenario(t.simulate)
        self._check()
        self._quarantined = 0

    def _check(self) -> None:
        t = self.table
        check_run(t.run)
        check_sink(t.sink)
        if not self.url.startswith(_SCHEMES):
            raise BadScenario(
                "source.url", f"{self.url!r} is not sqlite:///FILE or trace:///FOLDER"
            )
        with named("source"):
            read_options({**t.source.options(), "url": self.url})
        if not t.source.subscribe and t.source.subscribePattern is None:
            raise BadScenario("source.subscribe", "name the topics, or give a subscribePattern")
        if t.publishers is not None:
            check_publishers(t.publishers)
            if not t.source.subscribe:
                raise BadScenario("source.subscribe", "publishers need topics by name")
            if not self.url.startswith("sqlite:///"):
                raise BadScenario("source.url", "publishers need sqlite:///FILE.db")
        elif t.subscribers:
            raise BadScenario("subscribers", "live subscribers need [publishers] to listen to")
        if t.compare and t.simulate is None:
            raise BadScenario("compare", "compares orders on a simulated network: add [simulate]")
        if self._order and not self.url.startswith("trace:///"):
            told = "the rows of a log have positions, so nothing waits; this is for traces"
            raise BadScenario(f"order.{min(self._order)}", told)
        if t.detect is not None:
            names = [member.name for member in self._live]
            if missing := [name for name in t.detect.detectors if name not in names]:
                raise BadScenario("detect.detectors", f"{missing[0]!r} is no live subscriber")

    @property
    def title(self) -> str:
        return self.table.title or f"{self.url} through Spark"

    def run(self, spark: Callable[[], SparkSession], progress: Progress) -> list[Variant]:
        """Publish and listen if the job says so, then match, order, write, audit, report."""
        if self.out.exists() and not self.out.is_dir():
            raise BadScenario("run.out", f"{self.out} is no folder")
        with ThreadPoolExecutor(1) as beside:
            load = self._start_load(beside, progress)
            if load is None:
                progress("starting Spark", 0.0)
            session = spark()
            if load is not None:
                outcomes = load.result()
                if not outcomes["stored"]:
                    raise Misuse(f"the publishers published nothing: {outcomes}")
        with boundary(self.url):
            return self._on_spark(session, progress)

    def _on_spark(self, session: SparkSession, progress: Progress) -> list[Variant]:
        options = {**self.table.source.options(), "url": self.url}
        first = first_position(options, self.out)
        options["startingOffsets"] = str(first)
        variants = [self._heard(session, options, progress)] if self._live else []
        if self._scenario is not None:
            variants += self._compare(session, self._scenario, progress)
        return [*variants, self._stream(session, options, first, progress)]

    def _start_load(
        self, beside: ThreadPoolExecutor, progress: Progress
    ) -> Future[dict[str, int]] | None:
        """Begin with an empty broker, and have it filled while Spark starts."""
        publishers = self.table.publishers
        if publishers is None:
            return None
        self.out.mkdir(parents=True, exist_ok=True)
        file = Path(self.url.removeprefix("sqlite:///").partition("?")[0])
        for part in sorted(file.parent.glob(f"{glob.escape(file.name)}*")):
            remove(part)
        for name in (*_OWN, *self._compared):
            remove(self.out / name)
        load = Load(
            self.url, self.table.source.subscribe, publishers, self._live, self.out / "arrivals",
            str(self.seed),
        )  # fmt: skip
        return beside.submit(load.run, lambda share: progress("publishing", share))

    def _heard(self, session: SparkSession, options: dict[str, str], progress: Progress) -> Variant:
        """What live subscribers were handed."""
        folder = self.out / "live"
        given = self.out / "arrivals"
        write_trace(
            folder, handed_over(session, given), read_log(session, options),
            live_subscriptions(session, given), {"title": f"{self.title}: live"},
        )  # fmt: skip
        return self._judged(session, "live", folder, progress)

    def _compare(
        self, session: SparkSession, scenario: Scenario, progress: Progress
    ) -> list[Variant]:
        """What subscribers of a simulated network were handed: as it came, and in each order."""
        from pyspark.sql import functions as F

        from inorder.pipeline.order_stage import order

        folder = self.out / "simulated"
        simulate_to_folder(
            scenario, self.seed, folder, progress=lambda share: progress("simulating", share)
        )
        network = Simulated(session, folder)
        seen = network.arrivals.persist()
        as_it_came = seen.withColumn("nth", F.col("arrived")).withColumn("in_order", F.lit(True))
        rows: dict[str, DataFrame] = {"none": as_it_came}
        starts = network.starts()
        for name, (ordered, chosen) in self._compared.items():
            rows[name] = order(
                seen, ordered.name, arrival="arrived", lanes=self.table.run.lanes, start=starts,
                **chosen,
            )  # fmt: skip
        variants: list[Variant] = []
        for name, deliveries in rows.items():
            progress(f"{name}: ordering on Spark", 0.0)
            title = {"title": f"{scenario.title or self.title}: {name}"}
            write_trace(self.out / name, deliveries, network.events, network.subscriptions, title)
            variants.append(self._judged(session, name, self.out / name, progress))
        seen.unpersist()
        return variants

    def _stream(
        self, session: SparkSession, options: dict[str, str], first: int, progress: Progress
    ) -> Variant:
        """The pipeline itself: what Spark matched, in the order it gave."""
        t = self.table
        stream = Stream(
            options, self._matched, self._guarantee, self._order, t.sink, t.run, self.out
        )
        step = "pipeline: matching and ordering"
        progress(step, 0.0)
        done = last_position(self.out)
        expected = events_waiting(options, first if done is None else done)
        wait_for(stream.start(session), expected, lambda share: progress(step, share))
        # Judged is what was read, however much has come meanwhile.
        done = last_position(self.out)
        end = str(first if done is None else done)
        events = read_log(session, {**options, "endingOffsets": end})
        self._quarantined = _count_lines(stream.quarantine)
        asked = self._matched
        if not asked:
            topics = sorted(row.topic for row in events.select("topic").distinct().collect())
            asked = [Member(EVERYTHING, topics, None, {})]
        wanted = session.createDataFrame(subscription_rows(asked), SUBSCRIPTIONS)
        about = {"title": f"{self.title}: {self._guarantee.name} in Spark"}
        write_trace(stream.folder, None, events, wanted, about)
        return self._judged(session, "pipeline", stream.folder, progress)

    def _judged(
        self, session: SparkSession, name: str, folder: Path, progress: Progress
    ) -> Variant:
        from inorder.pipeline.audit import audit
        from inorder.pipeline.report import write_report

        progress(f"{name}: auditing on Spark", 0.0)
        result = audit(session, str(folder), promised=COMPARED)
        progress(f"{name}: writing the report", 0.0)
        write_report(session, str(folder), result, self._page(name))
        detect = self.table.detect if name != "pipeline" else None
        return variant_of(session, name, folder, result, detect)

    def _page(self, name: str) -> Path:
        return self._report.with_stem(f"{self._report.stem}-{name}")

    def reports(self) -> list[Path]:
        """One page a variant."""
        names = ["live"] if self._live else []
        if self._scenario is not None:
            names += ["none", *self._compared]
        return [self._page(name) for name in (*names, "pipeline")]

    def sentences(self, variants: list[Variant]) -> list[str]:
        lines = sentences_of(variants)
        if self._matched:
            count = variants[-1].delivered
            lines.append(
                f"pipeline: Spark matched {count:,} deliveries for {len(self._matched)} "
                f"subscriptions and delivered them under {self._guarantee.name!r}."
            )
        if self._quarantined:
            lines.append(f"{self._quarantined:,} rows could not be used: {self.out}/quarantine")
        return lines

    def as_json(self, variants: list[Variant]) -> str:
        """The summary for machines."""
        return msgspec.json.encode(
            {
                "title": self.title,
                "seed": self.seed,
                "quarantined": self._quarantined,
                "variants": {variant.name: variant.summary() for variant in variants},
                "reports": [str(report) for report in self.reports()],
            }
        ).decode()


def _scenario(table: dict[str, Any]) -> Scenario:
    if "order" in table:
        raise BadScenario("simulate.order", "the orders to compare are those under [[compare]]")
    try:
        return from_table({**table, "order": _AS_IT_COMES})
    except BadScenario as error:
        raise BadScenario(f"simulate.{error.key}", error.problem) from None


def _absolute(url: str) -> str:
    """Spark's workers have a working folder of their own."""
    for scheme in _SCHEMES:
        if url.startswith(scheme):
            return f"{scheme}{Path(url.removeprefix(scheme)).absolute()}"
    return url


def _count_lines(folder: Path) -> int:
    files = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    return sum(file.read_bytes().count(b"\n") for file in files)
