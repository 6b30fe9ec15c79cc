"""Judging a trace or a foreign delivery log on Spark: the promises of `check`, at any length.

Every promise is judged by its own file. What a log's columns do not allow is said, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from inorder.check.accepted import NOT_COMPLETE
from inorder.check.decision import EXIT_CODES, decide
from inorder.check.ending import lasts_until, window
from inorder.check.extent import extent
from inorder.check.holding import holdings_of
from inorder.check.position import NO_POSITIONS
from inorder.check.verdict import Verdict, not_judged
from inorder.core.errors import UnknownName
from inorder.guarantee.traced import promises_of_all
from inorder.pipeline import (
    accepted,
    bounds,
    causal,
    fifo,
    integrity,
    position,
    published,
    realtime,
    reliable,
)  # fmt: skip
from inorder.pipeline import filter as filter_
from inorder.pipeline.coded import Log, Recode
from inorder.pipeline.matching import Matching
from inorder.pipeline.position import Positions
from inorder.pipeline.published import Published
from inorder.pipeline.session import cores
from inorder.pipeline.tables import Tables, open_tables
from inorder.pipeline.total import Order
from inorder.pipeline.unique import Repeats, repeated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROMISES = (
    "total", "causal", "causal_across_topics", "fifo", "per_publisher", "unique", "reliable",
    "filter", "accepted", "realtime",
)  # fmt: skip

# Two names share a 64-bit code about once in a million logs of ten million names.
_ATTEMPTS = 5

Progress = Callable[[str, float], None]


class AuditResult(Struct):
    """`asked` are the promises named by the caller; none means all that can be judged. `promised`
    are those of the guarantee that made the trace; None when the trace does not say which."""

    verdict: str
    rows: int
    promises: dict[str, Verdict]
    source: str = ""
    complete: bool = True
    asked: list[str] = []
    about: dict[str, Any] = {}
    promised: list[str] | None = None
    crossings: list[dict[str, Any]] = []  # some disagreements, for pictures

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """The contract of `inorder audit --json` (docs/audit.md)."""
        promises = {name: _plain(verdict) for name, verdict in self.promises.items()}
        return {
            "verdict": self.verdict,
            "rows": self.rows,
            "promises": promises,
            "promised": self.promised,
        }


def audit(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Mapping[str, str] | None = None,
    promises: Iterable[str] | None = None,
    progress: Progress | None = None,
    *,
    within: float | None = None,
    clock_error: float | None = None,
    promised: Iterable[str] | None = None,
) -> AuditResult:
    """Judge the trace or delivery log at `path`, or several traces as one run.

    `columns` maps our names to theirs. `within` replaces the window of the run, `clock_error` is
    how far clocks may be apart, `promised` replaces what the guarantee of the trace promises.
    """
    asked = list(dict.fromkeys(promises or ()))
    for name in asked:
        if name not in PROMISES:
            raise UnknownName("promise", name, list(PROMISES))
    wanted = [name for name in PROMISES if not asked or name in asked]
    progress = progress or (lambda what, share: None)
    progress("opening", 0.0)
    tables = open_tables(spark, path, columns)
    tables.within = window(tables.ending, within)
    if tables.ending is not None:
        tables.ending = replace(tables.ending, within=tables.within)
    if clock_error is not None:
        tables.clock_error = clock_error
    try:
        with small_tasks(spark, tables.deliveries.rows):
            verdicts, crossings = _judge(spark, tables, wanted, progress)
    finally:
        tables.close()
    if promised is None:
        rows = tables.subscriptions or ()
        filtered = any(row.where is not None for row in rows)
        promised = promises_of_all(tables.summaries, filtered)
    names = None if promised is None else list(promised)
    return AuditResult(
        decide(verdicts, names, asked, tables.complete),
        tables.deliveries.rows,
        verdicts,
        source=tables.path,
        complete=tables.complete,
        asked=asked,
        promised=names,
        about={name: value for name, value in tables.summary.items() if name != "rows"},
        crossings=crossings,
    )


@contextmanager
def small_tasks(spark: SparkSession, rows: int) -> Iterator[None]:
    """Read files in tasks of a bounded number of rows, however well they are compressed."""
    setting = "spark.sql.files.minPartitionNum"
    before = spark.conf.get(setting, None)
    spark.conf.set(setting, str(max(cores(spark), rows // bounds.TASK_ROWS)))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(setting)
        else:
            spark.conf.set(setting, before)


def _judge(
    spark: SparkSession, tables: Tables, wanted: list[str], progress: Progress
) -> tuple[dict[str, Verdict], list[dict[str, Any]]]:
    for number in range(_ATTEMPTS):
        attempt = _Attempt(spark, tables, number, progress)
        try:
            return attempt.judge(wanted), attempt.crossings
        except Recode:
            progress("reading again with other codes", 0.0)
    raise AssertionError(f"{_ATTEMPTS} codings of {tables.path} all collide")


class _Attempt:
    """One attempt with one coding of names."""

    def __init__(
        self, spark: SparkSession, tables: Tables, number: int, progress: Progress
    ) -> None:
        self._spark = spark
        self._tables = tables
        self._progress = progress
        self._log = Log(tables.deliveries, number)
        self._published: Published | None = None
        self._matching: Matching | None = None
        self.crossings: list[dict[str, Any]] = []

    def judge(self, wanted: list[str]) -> dict[str, Verdict]:
        found: dict[str, Verdict] = {}
        if "total" in wanted or "unique" in wanted:
            found.update(self._order("total" in wanted))
        judges: dict[tuple[str, ...], Callable[[list[str]], dict[str, Verdict]]] = {
            ("causal", "causal_across_topics"): self._causal,
            fifo.NAMES: lambda names: fifo.check(self._log),
            ("reliable",): lambda names: {"reliable": self._reliable()},
            ("filter",): lambda names: {"filter": self._filter()},
            ("accepted",): lambda names: {"accepted": self._accepted()},
            ("realtime",): lambda names: {"realtime": self._realtime()},
        }
        for place, (names, judge) in enumerate(judges.items(), 1):
            if asked := [name for name in names if name in wanted]:
                self._progress(f"judging {asked[0]}", place / (len(judges) + 1))
                found.update(judge(asked))
        return {name: found[name] for name in wanted}

    def _order(self, total: bool) -> dict[str, Verdict]:
        """Total and unique in one pass."""
        self._progress("judging total and unique" if total else "judging unique", 0.0)
        slices = -(-self._tables.deliveries.rows // bounds.SLICE_ROWS_MAX)
        order, repeats = Order(slices, self._positions()), Repeats()
        for rows in self._log.slices():
            mask = repeated(rows)
            repeats.add(rows, mask)
            if total:
                order.add(rows, mask)
            del rows, mask  # comparing needs the memory
        found = {"unique": repeats.verdict(self._log)}
        if total:
            found["total"] = order.verdict(self._spark, self._log)
            self.crossings = order.crossings
        return found

    def _positions(self) -> Positions | Verdict:
        """What positions the events have, if anybody knows any."""
        events = self._tables.events
        if why := published.missing(events, position.COLUMNS):
            return not_judged("position", why if "limit" in why else NO_POSITIONS)
        assert events is not None, "`missing` was asked first"
        if not events.greatest(["position"]):
            return not_judged("position", NO_POSITIONS)
        return Positions(self._events())

    def _causal(self, names: list[str]) -> dict[str, Verdict]:
        if why := published.missing(self._tables.events, causal.COLUMNS):
            return {name: not_judged(name, why) for name in names}
        return causal.check(self._log, self._events(), names)

    def _accepted(self) -> Verdict:
        if why := published.missing(self._tables.events, accepted.COLUMNS):
            return not_judged("accepted", why)
        if not self._tables.complete:
            return not_judged("accepted", NOT_COMPLETE)
        return accepted.check(self._events(), self._tables.ending)

    def _realtime(self) -> Verdict:
        if why := published.missing(self._tables.events, realtime.COLUMNS):
            return not_judged("realtime", why)
        return realtime.check(self._log, self._events(), self._tables.clock_error)

    def _reliable(self) -> Verdict:
        tables = self._tables
        if why := self._without_subscriptions(reliable.COLUMNS):
            return not_judged("reliable", why)
        if not tables.complete:
            return not_judged("reliable", "the trace is not complete: its end may be missing")
        holdings = holdings_of(tables.subscriptions or (), tables.path)
        verdict = reliable.check(
            self._log, self._events(), holdings, self._matches(), tables.within,
            lasts_until(tables.ending, 0.0 if tables.ending else tables.latest()),
        )  # fmt: skip
        deliveries, events = tables.deliveries, tables.events
        assert events is not None, "`missing` was asked first"
        if deliveries.has(*integrity.NEEDED):
            verdict.also["integrity"] = integrity.check(
                deliveries, events, holdings, tables.elsewhere
            )
        return verdict

    def _filter(self) -> Verdict:
        if why := self._without_subscriptions(filter_.COLUMNS):
            return not_judged("filter", why)
        if all(row.where is None for row in self._tables.subscriptions or ()):
            return not_judged("filter", "no subscription is filtered")
        if not self._tables.complete:
            why = "the trace is not complete: a change of parameters may be missing"
            return not_judged("filter", why)
        if not self._tables.deliveries.has(*filter_.NEEDED):
            return not_judged("filter", "needs topic and delivered_at of each delivery")
        holdings = holdings_of(self._tables.subscriptions or (), self._tables.path)
        return filter_.check(self._log, self._events(), holdings, self._matches())

    def _without_subscriptions(self, columns: tuple[str, ...]) -> str:
        if self._tables.subscriptions is None:
            return "needs the events and the subscriptions"
        return published.missing(self._tables.events, columns)

    def _events(self) -> Published:
        if self._published is None:
            assert self._tables.events is not None, "`missing` was asked first"
            ours = "rows" in self._tables.summary  # our writer records the fate of every event
            self._published = Published(self._tables.events, self._log.attempt, ours)
        return self._published

    def _matches(self) -> Matching:
        if self._matching is None:
            self._matching = Matching(self._events())
        return self._matching


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "judged": verdict.judged,
        "kept": verdict.kept,
        "violations": verdict.violations,
        "witness": verdict.witness,
        "counts": verdict.counts,
        "why": verdict.why,
        "extent": extent(verdict),
        "also": {name: _plain(each) for name, each in verdict.also.items()},
    }
