"""What a review of the job found, mended since."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inorder.cli.job import PipelineJob, job_of
from inorder.cli.job import pipeline as job_pipeline
from inorder.core.errors import InorderError
from tests.cli.job.test_pipeline_job import damage, delivered, plain, publish, quiet


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("run", {"lanes": 0}),
        ("run", {"trigger": "5 parsecs"}),
        ("source", {"startingOffsets": "earlist"}),
        ("source", {"maxOffsetsPerTrigger": 0}),
        ("source", {"subscribePattern": ".*"}),
        ("source", {"url": "sqlit:///shop.db"}),
        ("publishers", {"count": 0}),
        ("publishers", {"rate": -1.0}),
    ],
)
def test_a_wrong_value_is_said_before_anything_starts(tmp_path, table, change):
    """Processes publish and Spark starts, and only then is the job refused."""
    found = plain(tmp_path)
    found[table] = {**found.get(table, {}), **change}
    with pytest.raises(InorderError):
        PipelineJob(found)


@pytest.mark.parametrize("count", [0, -1])
def test_a_group_of_nobody_is_refused(tmp_path, count):
    """A job whose subscriptions are none of anybody's delivers everything to `pipeline`."""
    with pytest.raises(InorderError):
        PipelineJob(plain(tmp_path, subscriptions=[{"name": "big", "count": count}]))


def test_a_sink_that_writes_nothing_is_refused(tmp_path):
    """Without a path the sink is left out in silence, whatever its format."""
    with pytest.raises(InorderError):
        PipelineJob(plain(tmp_path, sink={"format": "kafka", "options": {"topic": "x"}}))


def test_a_job_without_subscriptions_delivers_everything(spark, tmp_path):
    """As the file's own description says: all events for one subscriber."""
    publish(tmp_path, 0, 4)
    [variant] = job_of(plain(tmp_path, subscriptions=[])).run(lambda: spark, quiet)
    assert len(delivered(variant.folder)["pipeline"]) == 4


def damaged_job(spark: Any, folder: Any, subscriptions: list[Any]) -> tuple[int, Any]:
    """Six events, of which the third cannot be read: rows put aside, and what was delivered."""
    publish(folder, 0, 6)
    damage(folder, seq=3)
    job = job_of(plain(folder, subscriptions=subscriptions))
    variants = job.run(lambda: spark, quiet)
    return json.loads(job.as_json(variants))["quarantined"], delivered(variants[0].folder)


@pytest.mark.parametrize(
    "subscriptions",
    [[{"name": "big", "where": "amount > 1"}], [{"name": "x"}, {"name": "y"}]],
    ids=["nobody holds it", "two hold it"],
)
def test_a_damaged_row_is_counted_once(spark, tmp_path, subscriptions):
    """It is matched as if it had no attributes: put aside once for everybody who takes such, and
    gone without a word if nobody does."""
    assert damaged_job(spark, tmp_path, subscriptions)[0] == 1


def test_a_damaged_row_does_not_end_all_deliveries(spark, tmp_path):
    """Where numbers are waited for, everybody waits for its number for ever."""
    _, found = damaged_job(spark, tmp_path, [{"name": "x"}])
    assert found["x"] == [1, 2, 4, 5, 6]


def test_a_log_that_grows_meanwhile_is_judged_as_it_was_read(spark, tmp_path, monkeypatch):
    """The audit's events are read before the stream looks how far the log reaches."""
    publish(tmp_path, 0, 4)
    start = job_pipeline.Stream.start

    def published_meanwhile(stream, session):
        publish(tmp_path, 4, 4)
        return start(stream, session)

    monkeypatch.setattr(job_pipeline.Stream, "start", published_meanwhile)
    [variant] = job_of(plain(tmp_path)).run(lambda: spark, quiet)
    assert variant.audit.verdict == "kept"


def test_other_subscriptions_than_last_time_are_used_or_refused(spark, tmp_path):
    """The second run still serves the first file's subscribers, and finds its own deliveries
    missing."""
    publish(tmp_path, 0, 2)
    job_of(plain(tmp_path, subscriptions=[{"name": "old"}])).run(lambda: spark, quiet)
    publish(tmp_path, 2, 2)
    try:
        again = job_of(plain(tmp_path, subscriptions=[{"name": "new"}])).run(lambda: spark, quiet)
    except InorderError:
        return
    assert "new" in delivered(again[0].folder)


def test_a_stream_from_the_latest_event_on_remembers_where_it_began(spark, tmp_path):
    """A first run that finds nothing writes no offsets, and the next one begins at the end anew:
    what was published between them is lost."""
    table = plain(tmp_path)
    table["source"]["startingOffsets"] = "latest"
    publish(tmp_path, 0, 2)
    job_of(table).run(lambda: spark, quiet)
    publish(tmp_path, 2, 3)
    [variant] = job_of(table).run(lambda: spark, quiet)
    assert len(delivered(variant.folder).get("all", [])) == 3
