"""`fit`: every pair has a row, equal to what plain Python says of the same delays."""

from __future__ import annotations

import json
from math import inf, log, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from inorder.check.trace import DeliveryRow, TraceWriter
from inorder.cli.fit import fit as command
from inorder.core.errors import Misuse
from inorder.pipeline import fit_stage as fit_module
from inorder.pipeline.fit_pair import DIAL, exceeded, fit_pair
from inorder.pipeline.fit_stage import fit
from inorder.protocols.fifo.delays import describe
from inorder.protocols.fifo.fit import Fit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer()
app.command()(command)

Log = dict[tuple[str, str], list[tuple[float | None, float | None]]]


def hops(seed: int, count: int, *means: float) -> list[tuple[float, float]]:
    """Departures, and arrivals after a fixed time and an exponential one per hop."""
    random = np.random.default_rng(seed)
    departed = np.cumsum(random.exponential(0.1, count))
    arrived = departed + 0.05 + sum(random.exponential(mean, count) for mean in means)
    return list(zip(departed.tolist(), arrived.tolist(), strict=True))


def frame(spark: SparkSession, log: Log, parts: int = 3) -> Any:
    rows = [
        (publisher, subscriber, number, f"{publisher}:{number}", departed, arrived)
        for (publisher, subscriber), times in log.items()
        for number, (departed, arrived) in enumerate(times, 1)
    ]
    schema = "publisher string, subscriber string, nth bigint, event string, " \
        "published_at double, received_at double"  # fmt: skip
    return spark.createDataFrame(rows, schema).repartition(parts)


def by_pair(fitted: Any) -> dict[tuple[str, str], dict[str, Any]]:
    rows = [row.asDict(recursive=True) for row in fitted.collect()]
    found = {(row["publisher"], row["subscriber"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def delays(times: list[tuple[Any, Any]]) -> list[float]:
    """In the order of departure, as `fit` promises."""
    return [arrived - departed for departed, arrived in sorted(times)]


def same_as_described(row: dict[str, Any], samples: list[float]) -> None:
    told = describe(samples, PHASES)
    names = {"n": "used", "median": "p50", "least": "min", "most": "max"}
    for name in told.__struct_fields__:
        assert row[names.get(name, name)] == getattr(told, name), name


# Of the hypoexponential law: every phase more takes its time.
PHASES = 2

ODD: Log = {
    ("p", "five hops"): hops(1, 400, 0.004, 0.006, 0.008, 0.01, 0.022),
    ("p", "one hop"): hops(2, 60, 0.02),
    ("p", "few"): hops(3, 7, 0.02),
    ("p", "once"): [(1.0, 1.5)],
    ("p", "constant"): [(float(number), number + 0.25) for number in range(30)],
    ("p", "tied"): [(float(n), n + (0.5 if n % 3 else 0.75 + n / 100)) for n in range(64)],
    ("p", "behind"): [(departed, arrived - 1.0) for departed, arrived in hops(4, 40, 0.02)],
    ("p", "holes"): [*hops(5, 30, 0.02), (None, 1.0), (1.0, None), (nan, 1.0), (1.0, inf)],
    ("p", "nothing"): [(None, None), (1.0, nan)],
    ("p", "endless"): [(float(number), 1e300 * number) for number in range(25)],
}


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> dict[tuple[str, str], dict[str, Any]]:
    return by_pair(fit(spark, frame(spark, ODD), late=0.2, phases=PHASES))


@pytest.mark.parametrize("name", ["five hops", "one hop", "few", "once", "constant", "tied"])
def test_a_row_says_what_describe_says_of_the_same_delays(odd: Any, name: str) -> None:
    row = odd["p", name]
    same_as_described(row, delays(ODD["p", name]))
    assert row["samples"] == row["used"]
    assert (row["means"] is None) == (row["shift"] is None)


def test_the_comparison_sees_another_order_and_another_delay(odd: Any) -> None:
    samples = delays(ODD["p", "five hops"])
    for wrong in (sorted(samples), [*samples[:-1], samples[-1] + 1e-9]):
        with pytest.raises(AssertionError):
            same_as_described(odd["p", "five hops"], wrong)


def test_one_pair_says_what_describe_says_without_being_told_the_phases() -> None:
    times = hops(12, 200, 0.004, 0.006, 0.008)
    row, told = fit_pair(*zip(*times, strict=True), 0.1), describe([b for _, b in sorted(times)])
    assert (row["law"], row["ks"], row["shift"]) == (told.law, told.ks, told.shift)


def test_a_law_has_its_parameters(odd: Any) -> None:
    for name in ("five hops", "one hop"):
        row = odd["p", name]
        parts = sum(row["means"]) * row["shape"]
        assert row["shift"] + parts == pytest.approx(row["mean"], rel=0.2)


def test_every_odd_pair_has_a_row_and_a_reason(odd: Any) -> None:
    assert set(odd) == set(ODD)
    told = {name: odd["p", name]["problem"] for _, name in ODD}
    assert {name for name, problem in told.items() if problem is None} == {
        "five hops", "one hop", "constant",
    }  # fmt: skip
    assert told["few"] == "7 samples, a law needs 20"
    assert "40 of 40 delays are below zero" in told["behind"]
    assert told["holes"] == "4 of 34 have no usable times"
    assert told["nothing"] == "no delivery has usable times"
    assert "infinite" in told["endless"]
    assert "equal" in told["tied"]
    assert odd["p", "nothing"]["samples"] == odd["p", "nothing"]["used"] == 0


def test_holes_and_wrong_clocks_leave_the_rest_usable(odd: Any) -> None:
    kept = ODD["p", "holes"][:30]
    same_as_described(odd["p", "holes"], delays(kept))
    ahead = [(departed, arrived + 1.0) for departed, arrived in ODD["p", "behind"]]
    right = fit_pair([t for t, _ in ahead], [b - a for a, b in ahead], 0.2)
    assert odd["p", "behind"]["wait"] == pytest.approx(right["wait"])


def test_the_dial_asks_for_longer_waits_as_fewer_may_be_late(odd: Any) -> None:
    row = odd["p", "five hops"]
    assert [turn["late"] for turn in row["dial"]] == list(DIAL)
    waits = [row["wait"], *(turn["wait"] for turn in row["dial"])]
    assert waits == sorted(waits)
    # 400 samples know nothing of the last thousandth: the law does.
    assert [turn["from_law"] for turn in row["dial"]] == [False, False, False, True]
    assert [turn["wait"] for turn in odd["p", "few"]["dial"]][1:] == [None] * 3


def test_one_pair_with_most_of_the_log_is_sampled_before_python(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: Log = {("p", "many"): hops(6, 5000, 0.02), ("p", "some"): hops(7, 300, 0.02)}
    whole = by_pair(fit(spark, frame(spark, log), phases=1))
    assert whole["p", "many"]["used"] == 5000
    monkeypatch.setattr(fit_module, "FIT_SAMPLES_MAX", 500)
    cut = by_pair(fit(spark, frame(spark, log), phases=1))
    many = cut["p", "many"]
    assert 400 < many["used"] <= 500
    assert many["samples"] == 5000
    assert (many["min"], many["max"]) == (min(delays(log["p", "many"])), whole["p", "many"]["max"])
    assert many["p50"] == pytest.approx(whole["p", "many"]["p50"], rel=0.1)
    assert cut["p", "some"] == whole["p", "some"]
    assert by_pair(fit(spark, frame(spark, log, parts=7), phases=1)) == cut


numbers = st.floats(-1e3, 1e3, allow_nan=False)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=60), st.randoms())
def test_the_order_of_the_rows_does_not_matter(rows: list[Any], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = (fit_pair(*zip(*each, strict=True), 0.1, 1) for each in (rows, shuffled))
    assert one == other
    told = describe([delay for _, delay in sorted(rows)], 1)
    assert (one["law"], one["used"], one["p99"], one["sd"]) == (
        told.law, told.n, told.p99, told.sd,
    )  # fmt: skip


@given(st.lists(numbers, min_size=1, max_size=200), st.sampled_from([0.5, *DIAL]))
def test_no_more_samples_than_the_share_exceed_the_wait(samples: list[float], late: float) -> None:
    wait = fit_pair(range(len(samples)), samples, late, 1)["wait"]
    if wait is None:
        assert len(samples) < (1.0 - late) / late
    else:
        level = float(np.asarray(samples).mean())
        assert sum(x > level + wait + 1e-9 for x in samples) <= late * (len(samples) + 1)


def test_a_law_is_exceeded_as_often_as_it_says() -> None:
    one = Fit("exponential", (2.0,), 1.0, 1.0)
    assert exceeded(one, 0.001) == pytest.approx(1.0 + 2.0 * log(1000.0), rel=1e-9)
    # Two equal phases: P(X > x) = exp(-x) (1 + x).
    x = exceeded(Fit("hypoexponential", (1.0, 1.0), 1.0, 0.0), 0.01)
    assert np.exp(-x) * (1.0 + x) == pytest.approx(0.01, rel=1e-4)
    same = exceeded(Fit("gamma", (1.0,), 2.0 + 1e-9, 0.0), 0.01)
    assert same == pytest.approx(x, rel=1e-4)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit") / "trace"
    with TraceWriter(folder) as writer:
        for subscriber, times in (("s1", hops(8, 50, 0.02)), ("s2", hops(9, 9, 0.02))):
            for number, (at, there) in enumerate(times, 1):
                event = f"p1:{number}"
                row = DeliveryRow(subscriber, number, event, "t", "p1", number, at, there, there)
                writer.write("deliveries", row)
    return folder


@pytest.fixture
def no_times(tmp_path: Path) -> Path:
    log = "consumer,nth,event,sent,arrived\na,1,x,1.0,1.5\na,2,y,2.0,2.25\nb,1,x,1.0,1.125\n"
    (tmp_path / "log.csv").write_text(log)
    return tmp_path / "log.csv"


def test_a_table_for_people_and_parquet_for_later(spark: SparkSession, trace: Path) -> None:
    out = trace.parent / "fitted"
    ran = CliRunner().invoke(app, [str(trace), "--phases", "1", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    words = " ".join(ran.stdout.split())
    assert "2 pairs" in words
    assert "p1 to s2: 9 samples, a law needs 20" in words
    assert "0.1 %" in words
    stored = spark.read.parquet(str(out))
    assert stored.where("law is not null").count() == 2
    again = CliRunner().invoke(app, [str(trace), "--out", str(out)])
    assert isinstance(again.exception, Misuse)


def test_json_for_machines(spark: SparkSession, trace: Path) -> None:
    ran = CliRunner().invoke(app, [str(trace), "--phases", "1", "--late", "0.05", "--json"])
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert said["late"] == 0.05
    assert [pair["subscriber"] for pair in said["pairs"]] == ["s1", "s2"]
    assert said["pairs"][0]["wait"] == said["pairs"][0]["dial"][1]["wait"]


def test_a_foreign_log_without_times_or_publishers(spark: SparkSession, no_times: Path) -> None:
    words = [str(no_times), "--columns", "subscriber=consumer", "--json"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2
    rows = json.loads(ran.stdout)["pairs"]
    assert [(row["subscriber"], row["publisher"], row["unusable"]) for row in rows] == [
        ("a", None, 2), ("b", None, 1),
    ]  # fmt: skip
    assert "'publisher' and 'published_at' and 'received_at'" in rows[0]["problem"]


def test_a_foreign_log_with_other_names(spark: SparkSession, no_times: Path) -> None:
    columns = "subscriber=consumer,published_at=sent,received_at=arrived,publisher=event"
    ran = CliRunner().invoke(app, [str(no_times), "--columns", columns, "--json"])
    assert ran.exit_code == 0, ran.output
    rows = json.loads(ran.stdout)["pairs"]
    assert [(row["subscriber"], row["max"]) for row in rows] == [
        ("a", 0.5), ("b", 0.125), ("a", 0.25),
    ]  # fmt: skip


@pytest.mark.parametrize("late", [0.0, -0.1, 0.6, nan])
def test_a_share_that_is_none_is_refused(spark: SparkSession, late: float) -> None:
    with pytest.raises(Misuse, match="late is"):
        fit(spark, frame(spark, {("p", "s"): [(1.0, 2.0)]}), late=late)


def test_deliveries_without_subscribers_are_refused(spark: SparkSession) -> None:
    with pytest.raises(Misuse, match="no column 'subscriber'"):
        fit(spark, spark.range(1))
