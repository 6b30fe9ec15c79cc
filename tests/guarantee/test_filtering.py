"""Content subscriptions in front of every guarantee: match, then order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from inorder.check import judge
from inorder.content.predicate import Predicate
from inorder.core.effect import Answer, Deliver
from inorder.core.errors import BadScenario, Misuse, PredicateError
from inorder.core.event import Event
from inorder.guarantee.compose import Filtering, needs_of
from inorder.guarantee.none import Published
from inorder.guarantee.registry import guarantee
from inorder.protocols.fifo.summary import Interest, content_summary, elements
from inorder.sim.memory import Memory
from inorder.sim.scenario import Scenario, from_table, parse
from inorder.sim.simulate import simulate

ORDERS: dict[str, dict[str, Any]] = {
    "none": {"guarantee": "none"},
    "fifo": {"guarantee": "fifo", "summary": "content"},
    "tag": {"guarantee": "total", "mode": "tag", "buffer": 0},
    "tag, buffer": {"guarantee": "total", "mode": "tag"},
    "hold": {"guarantee": "total", "mode": "hold"},
}
PREDICATES = [
    ("price < :limit", {"limit": {"uniform": [0, 100]}}),
    ("firm = :firm AND price BETWEEN :lo AND :hi",
     {"firm": {"choice": ["a", "b", "c"]}, "lo": {"uniform": [0, 50]},
      "hi": {"uniform": [50, 100]}}),
    ("firm IN ('a', 'b') OR NOT price >= :limit", {"limit": {"walk": [50, 10]}}),
]  # fmt: skip


def draw(seed: int, order: dict[str, Any]) -> Scenario:
    """A small market whose subscribers change their minds all the time."""
    rng = Random(f"{seed}/compose")
    topics = rng.randint(1, 3)
    groups = []
    for number in range(rng.randint(1, 3)):
        where, parameters = rng.choice(PREDICATES)
        groups.append(
            {"name": f"s{chr(97 + number)}", "count": rng.randint(1, 2), "topics": "uniform",
             "per": rng.randint(1, topics), "where": where, "parameters": parameters,
             "updates": rng.choice([0.0, 5.0, 50.0])}
        )  # fmt: skip
    return from_table(
        {
            "topics": topics,
            "duration": 4.0,
            "settle": 60.0,
            "messages": False,
            "order": order,
            "network": {"model": "biased", "mean": 0.2},
            "publishers": {
                "count": rng.randint(1, 3), "rate": 10.0, "arrivals": "poisson",
                "attributes": {
                    "firm": {"choice": ["a", "b", "c"]}, "price": {"uniform": [0, 100]},
                },
            },
            "subscribers": groups,
            **({"churn": {"rate": 1.0}} if topics > 1 and rng.random() < 0.5 else {}),
            "faults": {"draw": ["pause"] if order["guarantee"] != "total" else ["pause", "crash"]},
        }
    )  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
def test_every_guarantee_keeps_its_promises_behind_a_filter(name):
    ordered = guarantee(ORDERS[name]["guarantee"])
    checked = 0
    for seed in range(40):
        scenario = draw(seed, ORDERS[name])
        memory = Memory()
        simulate(scenario, seed, memory)
        promises = {*ordered.promises(scenario.options), "filter", "unique", "reliable"}
        verdicts = judge(memory.history(), sorted(promises))
        broken = {key: verdict.witness for key, verdict in verdicts.items() if verdict.broken}
        assert broken == {}, f"seed {seed}"
        checked += verdicts["filter"].counts["checked"]
    assert checked > 1000


def test_without_the_filter_strangers_are_found(monkeypatch):
    monkeypatch.setattr(Filtering, "_matches", lambda self, delivery: True)
    memory = Memory()
    simulate(draw(1, ORDERS["none"]), 1, memory)
    assert judge(memory.history(), ["filter"])["filter"].violations > 0


def test_a_forgotten_update_is_found(monkeypatch):
    def deaf(self: Any, call: str, topics: Any, values: Any, now: float) -> list[Any]:
        return [Answer(call, "done")]

    monkeypatch.setattr(Filtering, "set", deaf)
    found = 0
    for seed in range(10):
        memory = Memory()
        simulate(draw(seed, ORDERS["none"]), seed, memory)
        found += judge(memory.history(), ["filter"])["filter"].violations
    assert found > 0


# The machine by hand.


def client(where: str | None = None, **values: Any) -> Filtering:
    none = guarantee("none")
    made = Filtering(none, none.client("s", ("t", "u"), None))
    made.subscribe("c", ["t"], 0.0, where, values)
    made.joined("t", 0.0)
    return made


def got(made: Filtering, **value: Any) -> bool:
    effects = made.receive("p", Published(Event("p", 1, "t", value)), 0.0)
    return any(isinstance(each, Deliver) for each in effects)


def test_a_set_counts_from_the_call_on():
    made = client("price < :limit", limit=10)
    assert got(made, price=9)
    assert made.set("d", ["t"], {"limit": 5}, 0.0) == [Answer("d", "done")]
    assert not got(made, price=9)
    assert made.account()["filtered"] == 1


def test_a_wrong_set_changes_nothing():
    made = client("price < :limit", limit=10)
    before = made.snapshot()
    for topics, values in (
        (["t"], {"limit": "x"}),
        (["t"], {"limt": 1}),
        (["t", "u"], {"limit": 1}),
    ):
        with pytest.raises(PredicateError):
            made.set("d", topics, values, 0.0)
    assert made.snapshot() == before


def test_replace_gives_another_predicate_at_once():
    made = client("price < :limit", limit=10)
    made.replace("d", ["t"], "size > :least", {"least": 3}, 0.0)
    assert got(made, size=4)
    assert not got(made, price=9)
    with pytest.raises(PredicateError):
        made.replace("d", ["u"], "a = 1", None, 0.0)


def test_without_where_everything_passes():
    made = client()
    assert got(made)
    with pytest.raises(Misuse, match="values without a where"):
        made.subscribe("d", ["u"], 0.0, None, {"limit": 1})
    with pytest.raises(PredicateError):
        made.set("d", ["t"], {"limit": 1}, 0.0)


def test_a_restored_client_filters_as_before():
    made = client("price < :limit", limit=10)
    made.set("d", ["t"], {"limit": 5}, 0.0)
    twin = Filtering.restore(made.snapshot())
    assert twin.snapshot() == made.snapshot()
    assert got(twin, price=4)
    assert not got(twin, price=9)
    with pytest.raises(Misuse, match="held already"):
        twin.subscribe("e", ["t"], 0.0, None, None)


def test_what_matches_is_never_called_irrelevant():
    """The needs of a predicate against Bloom summaries: no false negatives."""
    rng = Random(7)
    wheres = [
        "firm = :f AND price < :x", "firm IN ('a', 'b') OR size = :x",
        "NOT (firm = :f OR price > :x)", "firm LIKE 'a%' AND price <> :x",
        "firm IS NULL OR price BETWEEN 1 AND :x", "EXISTS firm",
        "NOT firm IN ('a', 'c') AND size >= :x", "flag AND price = :x",
    ]  # fmt: skip
    relevant = matched = 0
    for _ in range(4000):
        predicate = Predicate.parse(rng.choice(wheres))
        given = {"f": rng.choice("abc"), "x": rng.choice([1, 2.0, 5, 7.5])}
        values = {use.name: given[use.name] for use in predicate.parameters}
        event = {
            name: value
            for name, value in {
                "firm": rng.choice(["a", "b", "c", "abc"]), "price": rng.choice([1, 2, 5.0, 7.5]),
                "size": rng.choice([1.0, 2, 5]), "flag": rng.random() < 0.5,
            }.items()
            if rng.random() < 0.8
        }  # fmt: skip
        summary = content_summary(elements("t", event), 16, 4)
        interest = Interest(("t",), tuple(needs_of(predicate, values)))
        concerns = interest.concerns(summary, 4)
        relevant += concerns
        if predicate.matches(values, event):
            matched += 1
            assert concerns
    assert matched > 500
    assert relevant < 3500


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("where = 'price <'", "subscribers[1].where", "SYNTAX"),
        ("where = 'price < :x'", "subscribers[1].where", "UNBOUND_PARAMETER"),
        ("updates = 1.0", "subscribers[1].where", "is missing"),
        ("where = 'a = :x'\nparameters = { x = {} }", "subscribers[1].parameters.x", "needs one"),
        ("where = 'a = 1'\nupdates = -1.0", "subscribers[1].updates", "is not between"),
    ],
)
def test_a_wrong_subscription_is_refused_with_its_key(text, key, problem):
    with pytest.raises(BadScenario, match=problem) as caught:
        parse(f"[[subscribers]]\n{text}")
    assert caught.value.key == key
