"""What is matched against what: the attributes of events, and what changes leave held."""

from __future__ import annotations

import pytest

from inorder.core.errors import Misuse, PredicateError, TooLarge, UnknownName
from inorder.pipeline import match_events, match_state
from inorder.pipeline.match_events import attributes_of, column_of
from inorder.pipeline.match_state import Holdings, rows_of

# Attributes.


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": NaN, "b": Infinity, "c": 1e999}', {"b": float("inf"), "c": float("inf")}),
        ('{"a": "\\ud800", "b": 1}', {"a": "\ud800", "b": 1}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        (' {"a":\n1} ', {"a": 1}),
        ("", {}),
    ],
)
def test_texts_that_are_read(text, values):
    (row,), reasons = attributes_of([text])
    assert reasons == {}
    assert {name: value for name, value in row.items() if value == value} == values


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "the attributes are not JSON"),
        ('{"a": 1}{"b": 2}', "the attributes are not JSON"),
        ('{"a": 1},{"b": 2}', "the attributes are not JSON"),
        ("{'a': 1}", "the attributes are not JSON"),
        ("[" * 100_000, "the attributes are not JSON"),
        ('{"a": %s}' % ("9" * 5000), "the attributes are not JSON"),
        ("5", "the attributes are not an object"),
        ('{"a": "%s"}' % ("é" * 600_000), "have 1200009 bytes, the limit is 1048576"),
    ],
)  # fmt: skip
def test_texts_that_are_set_aside(text, reason):
    rows, reasons = attributes_of(['{"x": 1}', text, '{"x": 2}'])
    assert rows == [{"x": 1}, {}, {"x": 2}]
    assert [*reasons] == [1]
    assert reasons[1].endswith(reason)


def test_columns_are_arrays_only_where_that_is_exact():
    def column(*values):
        return column_of([{"n": value} for value in values], "n")

    assert column(1, 2.5, None).tolist()[:2] == [1.0, 2.5]
    for values in ([2**53 + 1, 1], [2**64], [10**400, 1.0], [True, 1], ["a", 1], ["a", None]):
        assert column(*values) == values
    assert column(1e300, 0.5).dtype.kind == "f"
    assert match_events.column_of([{}, {}], "n").tolist() != [0, 0]


# Holdings.


def held(*changes):
    holdings = Holdings()
    holdings.take(holdings.staged(rows_of(changes)))
    return {(subscriber, topic): (each.where, each.values) for subscriber, topic, each in holdings}


def change(op="subscribe", topics=("t",), where=None, at=0.0, **parameters):
    row = {"subscriber": "s", "op": op, "topics": list(topics), "where": where, "at": at}
    return {**row, "parameters": parameters}


def test_what_changes_mean():
    first = change(topics=["t", "u"], where="x < :n", n=1)
    assert held(first) == {("s", "t"): ("x < :n", {"n": 1}), ("s", "u"): ("x < :n", {"n": 1})}
    assert held(first, change("set", n=2))["s", "u"] == ("x < :n", {"n": 1})
    assert held(first, change("set", [], n=2))["s", "u"] == ("x < :n", {"n": 2})
    assert held(first, change("set", where="y = :m AND x > :n", m=5))["s", "t"] == (
        "y = :m AND x > :n",
        {"m": 5, "n": 1},
    )
    assert held(first, change("replace", where="y = 1"))["s", "t"] == ("y = 1", {})
    assert held(first, change("replace"))["s", "t"] == (None, {})
    assert held(first, change(where="y = 1"))["s", "t"] == ("y = 1", {})
    assert held(first, change("unsubscribe", [])) == {}
    assert held(change("unsubscribe")) == {}
    assert held(change("unsubscribe", at=2.0), change("subscribe", at=1.0)) == {}
    versions = [{**change("unsubscribe"), "version": 2}, {**change(at=9.0), "version": 1}]
    assert held(*versions) == {}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ([change(where="x <")], PredicateError, "subscribe of 's'"),
        ([change(where="x < :n")], PredicateError, "UNBOUND_PARAMETER"),
        ([change(where="x < 1", n=1)], PredicateError, "UNKNOWN_PARAMETER"),
        ([change(where="x < :n", n=None)], PredicateError, "PARAMETER_TYPE"),
        ([change(where="x < :n", n=1), change("set", n="a")], PredicateError, "was number"),
        ([change(n=1)], Misuse, "parameters without a where"),
        ([change(), change("set", n=1)], PredicateError, "'t' is not held with a filter"),
        ([change("set", n=1)], PredicateError, "'t' is not held with a filter"),
        ([change("replace")], PredicateError, "'t' is not held"),
        ([change(), change("unsubscribe"), change("replace")], PredicateError, "is not held"),
        ([change("sing")], UnknownName, "unknown op of sing of 's' 'sing'"),
        ([change(topics=[])], Misuse, "subscribes to no topic"),
        ([change(topics=["x" * 300])], Misuse, "topic of 300 bytes"),
        ([{**change(), "parameters": "[1]"}], Misuse, "not a JSON object"),
        ([{**change(), "parameters": {"n": object()}}], Misuse, "JSON"),
        ([{"op": "subscribe"}], Misuse, "subscription 1: .*subscriber"),
        ([change(at=float("nan"))], Misuse, "its time is nan"),
    ],
)
def test_refused_changes(changes, error, words):
    with pytest.raises(error, match=words):
        held(*changes)


def test_too_many_holdings_are_refused(monkeypatch):
    monkeypatch.setattr(match_state, "MATCH_HOLDINGS_MAX", 2)
    assert len(held(change(topics=["a", "b"]), change("unsubscribe", ["a"]))) == 1
    with pytest.raises(TooLarge):
        held(change(topics=["a", "b", "c"]))
