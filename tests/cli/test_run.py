"""The main job, end to end on Spark: `inorder run`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from inorder.check import History, judge
from inorder.cli.job import SimulatedJob

EXAMPLES = Path(__file__).parents[2] / "examples"


def small(table):
    """The market, cut down to a few seconds and a few desks."""
    table["simulate"]["duration"] = 6.0
    table["simulate"]["subscribers"][1]["count"] = 6
    return table


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    out = tmp_path_factory.mktemp("market")
    table = small(msgspec.toml.decode((EXAMPLES / "market-simulated.toml").read_bytes()))
    job = SimulatedJob(table, out=out)
    return job, job.run(lambda: spark, lambda what, share: None)


def test_the_market_runs_with_none_tag_and_hold_side_by_side(ran):
    _, variants = ran
    by_name = {variant.name: variant for variant in variants}
    assert list(by_name) == ["none", "tag", "hold"]
    assert by_name["none"].audit.promises["total"].violations > 0
    assert by_name["tag"].audit.verdict == by_name["hold"].audit.verdict == "kept"
    assert by_name["tag"].tagged > 0
    assert by_name["hold"].tagged == by_name["none"].tagged == 0
    assert by_name["hold"].agreement.share == 1.0
    assert by_name["none"].agreement.share < 1.0


def test_spark_and_one_process_give_the_same_counts(ran):
    _, variants = ran
    for variant in variants:
        for name, verdict in judge(History.read(variant.folder)).items():
            judged = variant.audit.promises[name]
            if judged.judged:
                assert judged.violations == verdict.violations, (variant.name, name)


def test_each_variant_has_a_page_of_its_own(ran):
    job, _ = ran
    pages = [path.read_text() for path in job.reports()]
    assert ["promises broken" in page for page in pages] == [True, False, False]
    assert all(page.startswith("<!doctype html>") for page in map(str.lower, pages))


def test_the_summary_is_words_for_people_and_json_for_machines(ran):
    job, variants = ran
    words = "\n".join(job.sentences(variants))
    assert "none: " in words
    assert "hold: no two subscribers ever disagreed about the order." in words
    assert "tagged as too late" in words
    said = json.loads(job.as_json(variants))
    assert said["seed"] == 7
    assert said["variants"]["hold"]["verdict"] == "kept"
    assert said["variants"]["hold"]["violations"]["total"] == 0
    assert said["variants"]["none"]["verdict"] == "broken"
    assert all(len(variant.cells()) == 6 for variant in variants)
