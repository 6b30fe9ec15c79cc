"""The main job on a broker: publish, listen, match, order, write, audit, report."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import inorder
from inorder.check import History, judge
from inorder.check.trace import read_table
from inorder.cli.job import PipelineJob, job_of, load_job
from inorder.core.errors import BadScenario, InorderError
from tests.pipeline.source.logs import plain_rows, spoil

EXAMPLES = Path(__file__).parents[3] / "examples"


def quiet(what: str, share: float) -> None:
    pass


def market() -> dict:
    """The example, cut down to a few seconds and a few subscribers."""
    table = msgspec.toml.decode((EXAMPLES / "market.toml").read_bytes())
    table["publishers"] |= {"duration": 3.0, "rate": 30.0}
    table["subscribers"][1]["count"] = 3
    table["subscriptions"][0]["count"] = 6
    table["simulate"] |= {"duration": 8.0}
    return table


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    job = job_of(market(), out=tmp_path_factory.mktemp("market"))
    return job, job.run(lambda: spark, quiet)


def test_one_log_has_one_order_for_all_and_it_is_that_of_the_positions(ran):
    _, variants = ran
    by_name = {variant.name: variant for variant in variants}
    assert list(by_name) == ["live", "none", "tag", "hold", "pipeline"]
    for name in ("live", "pipeline"):
        variant = by_name[name]
        assert variant.audit.verdict == "kept"
        position = variant.audit.promises["total"].also["position"]
        assert position.judged
        assert position.kept
        assert position.counts == {
            "late": 0, "in_order_deliveries": variant.delivered, "unplaced": 0,
        }  # fmt: skip
        assert variant.audit.promises["reliable"].counts["owed"] == variant.delivered > 0
        assert variant.tagged == 0
    assert by_name["live"].agreement.share == 1.0
    assert by_name["pipeline"].audit.promises["filter"].kept


def test_on_a_network_the_orders_that_spark_gives_differ(ran):
    _, variants = ran
    none, tag, hold = variants[1:4]
    assert none.delivered == tag.delivered == hold.delivered > 0
    assert none.audit.promises["total"].violations > 0
    assert tag.audit.promises["total"].kept
    assert hold.audit.promises["total"].kept
    assert tag.tagged > 0 == hold.tagged == none.tagged
    assert hold.agreement.share == 1.0 > none.agreement.share
    assert all(each.audit.promises["unique"].kept for each in (none, tag, hold))


def test_spark_and_one_process_judge_alike(ran):
    _, variants = ran
    for variant in variants:
        verdicts = judge(History.read(variant.folder))
        for name, judged in variant.audit.promises.items():
            if judged.judged:
                assert judged.violations == verdicts[name].violations, (variant.name, name)


def test_the_pipeline_delivers_what_a_plain_loop_would_match(ran):
    from inorder.content.predicate import Predicate

    job, variants = ran
    events = list(read_table(variants[0].folder, "events"))
    expected = {
        (member.name, row.event)
        for member in job._matched
        for row in events
        if row.topic in member.topics
        and Predicate.parse(member.where).matches(
            member.parameters, msgspec.json.decode(row.attributes)
        )
    }
    found = [(row.subscriber, row.event) for row in read_table(variants[-1].folder, "deliveries")]
    assert sorted(found) == sorted(expected)


def test_the_summary_is_words_for_people_and_json_for_machines(ran):
    job, variants = ran
    assert any("matched" in line for line in job.sentences(variants))
    told = json.loads(job.as_json(variants))
    assert set(told["variants"]) == {"live", "none", "tag", "hold", "pipeline"}
    assert told["quarantined"] == 0
    assert all(
        Path(page).read_text().lower().startswith("<!doctype html>") for page in told["reports"]
    )


# A source that somebody else fills.


def plain(folder: Path, **more) -> dict:
    return {
        "source": {"url": f"sqlite:///{folder}/shop.db", "subscribe": ["orders", "payments"]},
        "subscriptions": [
            {
                "name": "big",
                "topics": "all",
                "where": "amount > :floor",
                "parameters": {"floor": 5},
            },
            {"name": "all", "topics": "all"},
        ],
        "run": {"out": str(folder / "out")},
        **more,
    }


def publish(folder: Path, first: int, count: int) -> None:
    with inorder.connect_sync(f"sqlite:///{folder}/shop.db", name="shop") as bus:
        for number in range(first, first + count):
            topic = ("orders", "payments")[number % 2]
            bus.publish(topic, {"amount": number})


def damage(folder: Path, seq: int) -> None:
    """Flip a bit of the event that has this number of the shop's."""
    file = folder / "shop.db"
    spoil(file, next(row[1] for row in plain_rows(file) if row[7] == seq))


def delivered(folder: Path) -> dict[str, list[int]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for row in read_table(folder, "deliveries"):
        found.setdefault(row.subscriber, []).append((row.nth, row.seq))
    for rows in found.values():
        rows.sort()
        assert [nth for nth, _ in rows] == list(range(1, len(rows) + 1))
    return {name: [seq for _, seq in rows] for name, rows in found.items()}


def test_a_second_run_goes_on_where_the_first_ended(spark, tmp_path):
    publish(tmp_path, 0, 10)
    table = plain(tmp_path, sink={"format": "json", "path": str(tmp_path / "copy")})
    [first] = job_of(table).run(lambda: spark, quiet)
    assert delivered(first.folder)["all"] == list(range(1, 11))
    publish(tmp_path, 10, 7)
    [second] = job_of(table).run(lambda: spark, quiet)
    found = delivered(second.folder)
    assert found["all"] == [*range(1, 11), *range(1, 8)]  # a second life of the shop's
    assert len(found["big"]) == 17 - 6
    assert second.audit.verdict == "kept"
    copied = [
        (row["subscriber"], row["nth"], row["seq"])
        for file in (tmp_path / "copy").rglob("*.json")
        for row in map(json.loads, file.read_text().splitlines())
    ]
    written = [(n, place, seq) for n in found for place, seq in enumerate(found[n], 1)]
    assert sorted(copied) == sorted(written)


def test_what_subscribers_got_is_published_again_on_their_topics(spark, tmp_path):
    publish(tmp_path, 0, 12)
    url = f"sqlite:///{tmp_path}/got.db"
    table = plain(tmp_path, sink={"format": "inorder", "options": {"url": url}})
    for _ in range(2):  # the second time there is nothing new, and nothing is published twice
        job_of(table).run(lambda: spark, quiet)
    with inorder.connect_sync(url) as bus:
        for name, first in (("all", 0), ("big", 6)):
            with bus.subscribe(name, start="earliest", idle=0.5) as events:
                assert [event.value["amount"] for event in events] == list(range(first, 12))


def test_two_jobs_publish_into_one_file_beside_each_other(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/got.db"
    for name, count in (("one", 12), ("two", 12), ("three", 9)):
        folder = tmp_path / name
        folder.mkdir()
        publish(folder, 0, count)
        job_of(plain(folder, sink={"format": "inorder", "options": {"url": url}})).run(
            lambda: spark, quiet
        )
    with (
        inorder.connect_sync(url) as bus,
        bus.subscribe("all", start="earliest", idle=0.5) as events,
    ):
        found = [event.value["amount"] for event in events]
    assert found == [*range(12), *range(12), *range(9)]


def test_a_damaged_row_is_put_aside_with_its_reason_and_counted(spark, tmp_path):
    publish(tmp_path, 0, 6)
    damage(tmp_path, seq=3)
    job = job_of(plain(tmp_path))
    [variant] = job.run(lambda: spark, quiet)
    assert len(delivered(variant.folder)["all"]) == 5
    assert any("could not be used" in line for line in job.sentences([variant]))
    rows = [
        json.loads(line)
        for file in (tmp_path / "out" / "quarantine").rglob("*.json")
        for line in file.read_text().splitlines()
    ]
    assert rows
    assert all("offsets" in row["quarantine"] for row in rows)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"source": {"url": "sqlite:///x.db"}}, "source.subscribe"),
        ({"source": {"subscribe": ["a"]}}, "source"),
        ({"sorce": {}}, "sorce"),
        ({"order": {"guarantee": "total", "mode": "held"}}, "order.mode"),
        ({"order": {"guarantee": "total", "mode": "hold"}}, "order.mode: the rows of a log have"),
        ({"simulate": {"order": {}}}, "simulate.order"),
        ({"simulate": {"topic": 3}}, "simulate.topic"),
        ({"order": {"guarantee": "totl"}}, "guarantee"),
        ({"subscriptions": [{"name": "s", "topics": ["nope"]}]}, "subscriptions[1].topics"),
        ({"subscriptions": [{"name": "s", "where": "a >"}]}, "subscriptions[1].where"),
        ({"subscriptions": [{"name": "s", "where": "a > :x"}]}, "subscriptions[1].where"),
        ({"subscriptions": [{"name": "s"}, {"name": "s"}]}, "subscriptions[2].name"),
        ({"compare": [{"name": "t", "order": {"guarantee": "total"}}]}, "add [simulate]"),
        ({"publishers": {"attributes": {"a": {"drawn": 1}}}}, "publishers.attributes.a"),
    ],
)
def test_a_wrong_key_is_one_sentence_that_names_it(change, key, tmp_path):
    table = {**plain(tmp_path), **change}
    with pytest.raises(InorderError, match=r".") as refused:
        PipelineJob(table)
    assert key in str(refused.value)


def test_a_file_that_is_no_job_says_so(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text("[run]\nseed = 1\n")
    with pytest.raises(BadScenario, match="neither"):
        load_job(file)
    file.write_text("= 1")
    with pytest.raises(BadScenario, match="is not TOML"):
        load_job(file)
    with pytest.raises(BadScenario, match="cannot be read"):
        load_job(tmp_path / "none.toml")


def test_a_missing_broker_file_is_one_sentence(spark, tmp_path):
    with pytest.raises(InorderError) as refused:
        job_of(plain(tmp_path)).run(lambda: spark, quiet)
    assert "shop.db" in str(refused.value)
    assert "\n" not in str(refused.value)
