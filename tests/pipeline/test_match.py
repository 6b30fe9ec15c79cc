"""Matching in Spark finds what a plain loop over all predicates finds, and what a simulation does.

Most of it asks the Arrow function directly; a few jobs see that Spark carries it out.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from inorder.content.predicate import Predicate
from inorder.content.show import show
from inorder.core.errors import BadTrace, Misuse, PredicateError
from inorder.pipeline import match_index, match_state, match_worker
from inorder.pipeline.match_events import attributes_of
from inorder.pipeline.match_stage import match
from inorder.pipeline.match_state import rows_of
from inorder.pipeline.match_worker import Kept
from inorder.sim.memory import Memory
from inorder.sim.scenario import from_table
from inorder.sim.simulate import simulate
from tests.content import populations, strategies
from tests.content.test_index import HARD
from tests.guarantee.test_filtering import ORDERS, PREDICATES

TOPICS = ["t", "ü", "whole"]


def kept_of(*versions) -> Kept:
    kept = Kept()
    for number, changes in enumerate(versions, 1):
        kept.take(number, rows_of(changes))
    return kept


def found(kept: Kept, events, unmatched: bool = False, quarantine: bool = False):
    """The rows for (topic, text) events, whose number goes along."""
    batch = pa.record_batch(
        [
            pa.array(range(len(events)), pa.int64()),
            pa.array([topic for topic, _ in events], pa.string()),
            pa.array([text for _, text in events], pa.string()),
        ],
        ["number", "topic", "attributes"],
    )
    rows = []
    for part in match_worker.matched(batch, kept.matcher, unmatched, quarantine):
        rows += part.to_pylist()
    return rows


def pairs(rows):
    listed = [(row["number"], row["subscriber"]) for row in rows if row.get("matched", True)]
    assert len(listed) == len({*listed}), "no pair twice"
    return {*listed}


def loop(holdings, events):
    """What is right: every predicate, word by word."""
    return {
        (number, subscriber)
        for number, (topic, text) in enumerate(events)
        for (subscriber, its), (where, values) in holdings.items()
        if topic == its
        and (where is None or Predicate.parse(where).matches(values, json.loads(text)))
    }


# Drawn changelogs.


def draw_filter(rng) -> tuple[str | None, dict[str, Any], list[Any]]:
    """A predicate, values for it, and what lies on its edges."""
    while True:
        if rng.random() < 0.1:
            return None, {}, []
        tree = strategies.draw_tree(rng)
        try:
            predicate = Predicate.parse(show(tree))
            names = [use.name for use in predicate.parameters]
            values = strategies.used(strategies.draw_values(rng), names)
            match_state._checked(predicate.source, values)
        except Misuse:
            continue
        return predicate.source, values, strategies.edges_of(tree, values)


def drawn_changes(rng, versions: int = 3):
    """Changes by version, what they leave held (by a replay of our own), and edges."""
    holdings: dict[tuple[str, str], tuple[str | None, dict[str, Any]]] = {}
    edges: list[Any] = [*HARD]
    log = []
    for _ in range(versions):
        changes = []
        for _ in range(rng.randint(1, 8)):
            subscriber, topic = f"s{rng.randrange(5)}", rng.choice(TOPICS)
            key = (subscriber, topic)
            row: dict[str, Any] = {"subscriber": subscriber, "topics": [topic], "op": "subscribe"}
            where, values, beside = draw_filter(rng)
            if key in holdings:
                row["op"] = rng.choice(["replace", "set", "unsubscribe", "subscribe"])
            old = holdings.get(key, (None, {}))
            if row["op"] == "set":
                if old[0] is None:
                    continue
                again = strategies.used(strategies.draw_values(rng), old[1])
                values = {k: v for k, v in again.items() if rng.random() < 0.7}
                where = old[0]
                holdings[key] = (where, {**old[1], **values})
            elif row["op"] == "unsubscribe":
                del holdings[key]
            else:
                holdings[key] = (where, values)
                row["where"] = where
                edges += beside
            if row["op"] != "unsubscribe":
                row["parameters"] = values if rng.random() < 0.5 else json.dumps(values)
            changes.append(row)
        log.append(changes)
    return log, holdings, edges


def drawn_events(rng, edges, count: int):
    """Columns of one kind are read in another way than mixed ones: half of the draws have them."""
    if rng.random() < 0.5:
        edges = [edge for edge in edges if type(edge) in (int, float)]
        edges = [edge for edge in edges if rng.random() < 0.5 or abs(edge) < 10**300]
    names = strategies.NAMES
    events = []
    for _ in range(count):
        event = strategies.draw_event(rng, edges, names)
        if all(type(edge) in (int, float) for edge in edges):
            event = {name: each for name, each in event.items() if type(each) in (int, float)}
        topic = "t" if rng.random() < 0.5 else rng.choice([*TOPICS, "nobody"])
        events.append((topic, json.dumps(event, ensure_ascii=rng.random() < 0.5)))
    return events


def disagreement(seed: int) -> bool:
    rng = random.Random(seed)
    log, holdings, edges = drawn_changes(rng)
    kept = kept_of(*log)
    events = drawn_events(rng, edges, rng.choice([0, 1, 90, 90]))
    wanted = loop(holdings, events)
    every = {
        (number, subscriber)
        for number, (topic, _) in enumerate(events)
        for subscriber, its in holdings
        if topic == its
    }
    rows = found(kept, events)
    told = found(kept, events, unmatched=True)
    right = pairs(rows) == wanted == pairs(told) and len(told) == len(every)
    right &= {(row["number"], row["subscriber"]) for row in told} == every
    right &= [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    return not right


@settings(max_examples=100, deadline=None)
@given(strategies.randoms)
def test_it_finds_what_a_loop_over_all_predicates_finds(rng):
    assert not disagreement(rng.randrange(2**32))


def rounded(rows, name):
    values = [row.get(name) for row in rows]
    if {*map(type, values)} <= {int, float, type(None)}:
        try:
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        except OverflowError:
            return values
    return values


def deaf(self, key, held, change=match_index.TopicIndex.change):
    before = self._held.get(key)
    if before is not None and held is not None and before.where == held.where:
        held = before
    return change(self, key, held)


def as_numbers(texts):
    rows, reasons = attributes_of(texts)
    return [{k: int(v) if v is True else v for k, v in row.items()} for row in rows], reasons


@pytest.mark.parametrize(
    ("place", "name", "defect"),
    [
        (match_index, "column_of", rounded),
        (match_index.TopicIndex, "change", deaf),
        (match_worker, "attributes_of", as_numbers),
    ],
    ids=["rounded numbers", "deaf to a set", "truth as a number"],
)
def test_the_loop_sees_defects(monkeypatch, place, name, defect):
    assert not any(disagreement(seed) for seed in range(20))
    monkeypatch.setattr(place, name, defect)
    assert any(disagreement(seed) for seed in range(150))


def test_ten_thousand_subscriptions_and_one_topic_with_half_of_the_events():
    rng = random.Random(7)
    changes, holdings = [], {}
    for number in range(10_000):
        op = rng.choice(["<=", ">=", "="])
        where = f"firm = :f AND price {op} :x"
        values = {"f": populations.firm(rng, 50), "x": populations.price(rng)}
        topic = rng.choice(["quotes", f"q{number % 300}"])
        changes.append(
            {"subscriber": f"s{number}", "topics": [topic], "where": where, "parameters": values}
        )
        holdings[f"s{number}", topic] = (where, values)
    events = [
        (
            rng.choice(["quotes", f"q{rng.randrange(300)}"]),
            json.dumps(populations.quote(rng, 50)),
        )
        for _ in range(1000)
    ]
    kept = kept_of(changes)
    some = [*events[:4], *events[-4:]]
    assert pairs(found(kept, some)) == loop(holdings, some)
    # All of them at once are what they are one by one.
    whole = pairs(found(kept, events))
    single = {(n, s) for n, e in enumerate(events) for _, s in pairs(found(kept, [e]))}
    assert whole == single
    assert len(whole) > 10_000


def test_slices_are_cut_by_what_they_may_give(monkeypatch):
    """However small the bounds are, the answer is the same and no batch is larger."""
    changes = [{"subscriber": f"s{n}", "topics": ["t"], "where": f"x < {n}"} for n in range(20)]
    changes += [{"subscriber": "all", "topics": ["t"]}]
    events = [("t", json.dumps({"x": n % 25})) for n in range(100)]
    kept = kept_of(changes)
    wanted = found(kept, events, unmatched=True)
    assert len(wanted) == 2100
    monkeypatch.setattr(match_worker, "MATCH_PAIRS_AT_ONCE", 50)
    monkeypatch.setattr(match_worker, "MATCH_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(match_worker, "MATCH_EVENTS_AT_ONCE", 9)
    assert found(kept_of(changes), events, unmatched=True) == wanted
    sizes = []
    real = match_worker._pairs
    monkeypatch.setattr(match_worker, "_pairs", lambda *a: _sized(real(*a), sizes))
    assert pairs(found(kept_of(changes), events)) == pairs(wanted)
    assert max(sizes) <= 9 * 21
    assert len(sizes) > 100 / 9


def _sized(answer, sizes):
    sizes.append(len(answer[0]))
    return answer


def test_a_subscriber_who_comes_back_is_a_new_one():
    """Numbers of those who left are given anew: names must follow."""
    first = {"subscriber": "a", "topics": ["t"]}
    kept = kept_of([first], [{**first, "op": "unsubscribe"}], [{**first, "subscriber": "b"}])
    assert pairs(found(kept, [("t", "{}")])) == {(0, "b")}
    kept.take(4, rows_of([first]))
    assert pairs(found(kept, [("t", "{}")])) == {(0, "a"), (0, "b")}


# In Spark.


def simulated(seed: int) -> Memory:
    """A run whose subscribers never change, on brokers that match or on a plain network."""
    rng = random.Random(f"{seed}/match")
    groups = []
    for number in range(3):
        where, parameters = rng.choice([*PREDICATES, (None, {})])
        group = {"name": f"s{chr(97 + number)}", "count": 2, "topics": "uniform", "per": 1}
        if where is not None:
            group |= {"where": where, "parameters": parameters}
        groups.append(group)
    network: dict[str, Any] = {"model": "biased", "mean": 0.05}
    if seed % 2:
        brokers = {"count": 4, "shape": "random", "match": "content"}
        network = {"overlay": "brokers", "brokers": brokers}
    attributes = {"firm": {"choice": ["a", "b", "c"]}, "price": {"uniform": [0, 100]}}
    scenario = from_table(
        {
            "topics": 2, "duration": 4.0, "settle": 60.0, "messages": False,
            "order": ORDERS["none"], "network": network, "subscribers": groups,
            "publishers": {"count": 2, "rate": 10.0, "attributes": attributes},
        }
    )  # fmt: skip
    memory = Memory()
    simulate(scenario, seed, memory)
    return memory


def test_it_finds_what_a_simulation_delivers(spark):
    """All runs in one job: each has its own topics and subscribers."""
    changes, events, delivered = [], [], set()
    for seed in range(6):
        memory = simulated(seed)
        rows = memory.rows
        since = max(row.at for row in rows["subscriptions"])
        for row in rows["subscriptions"]:
            topics = [f"{seed}/{topic}" for topic in row.topics]
            changes.append((f"{seed}/{row.subscriber}", row.op, topics, row.where, row.parameters,
                            row.at, row.after))  # fmt: skip
        ours = [row for row in rows["events"] if row.published_at > since]
        events += [(f"{seed}/{e.event}", f"{seed}/{e.topic}", e.attributes) for e in ours]
        names = {row.event for row in ours}
        delivered |= {
            (f"{seed}/{row.event}", f"{seed}/{row.subscriber}")
            for row in rows["deliveries"]
            if row.event in names
        }
    schema = (
        "subscriber string, op string, topics array<string>, where string, parameters string, "
        "at double, after long"
    )
    table = spark.createDataFrame(changes, schema)
    frame = spark.createDataFrame(events, "event string, topic string, attributes string")
    rows = match(frame, table).select("event", "subscriber").collect()
    assert {tuple(row) for row in rows} == delivered
    assert len(rows) == len(delivered) > 300
    assert len(delivered) < 0.9 * 3 * len(events)


def test_columns_pass_through_and_bad_events_are_set_aside(spark):
    moment = datetime(2024, 2, 29, 12, tzinfo=UTC)
    schema = (
        "event string, topic string, attributes string, at timestamp, tags array<string>, "
        "more struct<a:int,b:map<string,double>>, price decimal(10,2)"
    )
    same = (moment, ["x"], (1, {"k": 2.5}), None)
    events = [
        ("good", "t", '{"x": 1}', *same),
        ("other", "t", '{"x": 9}', *same),
        ("empty", "t", None, *same),
        ("bad", "t", "{", *same),
        ("lost", None, "{}", *same),
        ("idle", "nobody", "{}", *same),
        ("bad too", "nobody", "[]", *same),
    ]
    frame = spark.createDataFrame(events, schema)
    changes = [
        {"subscriber": "low", "topics": ["t"], "where": "x < :n", "parameters": {"n": 5}},
        {"subscriber": "none", "topics": ["t"], "where": "x IS NULL"},
    ]
    answer = match(frame, changes, unmatched=True, quarantine=True)
    assert answer.columns == [*frame.columns, "subscriber", "matched", "quarantine"]
    rows = answer.collect()
    seen = tuple(frame.first())[3:7]
    assert all((row[3], *row[4:7]) == seen for row in rows)
    told = [(row.event, row.subscriber, row.matched, row.quarantine) for row in rows]
    assert sorted(told, key=str) == sorted(
        [
            ("good", "low", True, None),
            ("good", "none", False, None),
            ("other", "low", False, None),
            ("other", "none", False, None),
            ("empty", "low", False, None),
            ("empty", "none", True, None),
            ("bad", None, False, "the attributes are not JSON"),
            ("bad", "low", False, None),
            ("bad", "none", False, None),
            ("lost", None, False, "the topic is null"),
            ("bad too", None, False, "the attributes are not an object"),
        ],
        key=str,
    )
    with pytest.raises(Exception, match="event 'bad': the attributes are not JSON"):
        match(frame, changes).collect()


def test_nothing_matches_nobody(spark):
    frame = spark.createDataFrame([("t", "{}")], "topic string, attributes string")
    assert match(frame, []).collect() == []
    assert match(frame.where("false"), [{"subscriber": "s", "topics": ["t"]}]).collect() == []


def test_what_is_refused_when_the_plan_is_made(spark, tmp_path):
    frame = spark.createDataFrame([("t", "{}")], "topic string, attributes string")
    with pytest.raises(Misuse, match="no column 'attributes'"):
        match(frame.select("topic"), [])
    with pytest.raises(Misuse, match="'topic' of events is int, not text"):
        match(frame.selectExpr("1 AS topic", "attributes"), [])
    with pytest.raises(Misuse, match="'subscriber' already"):
        match(frame.selectExpr("*", "1 AS SUBSCRIBER"), [])
    with pytest.raises(PredicateError, match="SYNTAX"):
        match(frame, [{"subscriber": "s", "topics": ["t"], "where": "x <"}])
    with pytest.raises(Misuse, match="is no table of subscriptions"):
        match(frame, str(tmp_path / "nowhere"))
    with pytest.raises(Misuse, match="cannot be a stream"):
        match(frame, spark.readStream.format("rate").load())


def test_a_bad_event_without_a_name_is_named_by_its_place():
    kept = kept_of([{"subscriber": "s", "topics": ["t"]}])
    with pytest.raises(BadTrace, match="row 1 of a batch: the attributes are not JSON"):
        found(kept, [("t", "{}"), ("t", "x")])
