"""Many rows at once get the answers they get one by one, whatever their stamps say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.pipeline import order_lane
from inorder.pipeline.order_lane import Plan
from inorder.pipeline.order_rows import Rows
from inorder.protocols.total import skim, skim_run
from tests.pipeline.order.traces import Delivery, delivered, table_of

OPTIONS: list[dict[str, Any]] = [
    {"mode": "hold"},
    {"mode": "tag"},
    {"mode": "tag", "buffer": 3},
    {"mode": "hold", "buffer": 2},
]


def row(place: int, topic: str, stamp: dict[str, int]) -> dict[str, Any]:
    import msgspec

    return {
        "subscriber": "s", "topic": topic, "offset": 0, "arrival": place, "event": f"p:{place + 1}",
        "publisher": "p", "seq": place + 1, "published_at": 0.0, "received_at": float(place),
        "attributes": "{}", "stamp": msgspec.json.encode(stamp).decode(), "guarantee": "total",
    }  # fmt: skip


def answers(plan: Plan, feeds: list[list[dict[str, Any]]], *, quick: bool) -> list[Delivery]:
    lane = Rows(plan)
    found: list[Delivery] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_lane, "SKIM_ROWS_MIN", 1 if quick else 10**9)
        for rows in feeds:
            if rows:
                found += delivered(lane.feed(table_of(rows)))
                lane = Rows.unpack(plan, lane.pack())
        return [*found, *delivered(lane.finish())]


@st.composite
def histories(draw: Any) -> list[list[dict[str, Any]]]:
    """A true order of events on a few topics, then displaced, doubled, lost, spoilt and cut."""
    topics = ["a", "b", "c"][: draw(st.integers(1, 3))]
    count = dict.fromkeys(topics, 0)
    events = []
    for topic in draw(st.lists(st.sampled_from(topics), min_size=1, max_size=25)):
        count[topic] += 1
        events.append((topic, dict(count)))
    places = draw(st.lists(st.integers(0, 4), min_size=len(events), max_size=len(events)))
    events = [each for _, each in sorted(enumerate(events), key=lambda e: e[0] + places[e[0]])]
    for _ in range(draw(st.integers(0, 3))):
        change = draw(st.sampled_from(["double", "lose", "spoil", "forget", "stale"]))
        at = draw(st.integers(0, len(events) - 1))
        topic, stamp = events[at]
        if change == "double":
            events.insert(draw(st.integers(0, len(events))), events[at])
        elif change == "lose" and len(events) > 1:
            del events[at]
        elif change == "spoil":
            other = draw(st.sampled_from(topics))
            events[at] = topic, {**stamp, other: draw(st.integers(1, 9))}
        elif change == "forget":
            events[at] = topic, {topic: stamp[topic]}
        else:
            events[at] = topic, {k: n if k == topic else max(0, n - 1) for k, n in stamp.items()}
    rows = [row(place, topic, stamp) for place, (topic, stamp) in enumerate(events)]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    edges = [0, *cuts, len(rows)]
    return [rows[low:high] for low, high in pairwise(edges)]


@settings(max_examples=400)
@given(
    histories(), st.sampled_from(OPTIONS),
    st.sampled_from(["beginning", "first", {"a": 0, "b": 0}, {"a": 1, "b": 0, "c": 0}]),
)  # fmt: skip
def test_at_once_is_as_one_by_one(feeds, options, start):
    plan = Plan("total", options, start=start, strict=False)
    assert answers(plan, feeds, quick=True) == answers(plan, feeds, quick=False)


def true_order(count: int, seed: int) -> list[tuple[str, dict[str, int]]]:
    rng = np.random.default_rng(seed)
    numbers = dict.fromkeys("abc", 0)
    found = []
    for topic in rng.choice(list("abc"), count).tolist():
        numbers[topic] += 1
        found.append((topic, dict(numbers)))
    return found


def displaced(events: list[Any], share: float, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    late = np.where(rng.random(len(events)) < share, rng.integers(1, 30, len(events)), 0)
    return [events[n] for n in np.argsort(np.arange(len(events)) + late, kind="stable")]


@pytest.mark.parametrize("options", OPTIONS[:2], ids=["hold", "tag"])
def test_what_a_log_holds_is_skimmed(options, monkeypatch):
    """Five rows in a hundred out of place, and not one row is received alone but at the ends."""
    events = displaced(true_order(4000, 1), 0.05, 2)
    rows = [row(n, *each) for n, each in enumerate(events)]
    slow = []
    monkeypatch.setattr(order_lane.Lane, "_receive", _noting(order_lane.Lane._receive, slow))
    plan = Plan("total", options, start=dict.fromkeys("abc", 0))
    lane = Rows(plan)
    found: list[Delivery] = []
    for low in range(0, 4000, 1000):
        found += delivered(lane.feed(table_of(rows[low : low + 1000])))
    found += delivered(lane.finish())
    assert sum(slow) < 60
    if options["mode"] == "hold":
        assert all(each.in_order for each in found)
        names = {f"p:{n + 1}": each for n, each in enumerate(events)}
        assert [sum(names[x.event][1].values()) for x in found] == list(range(1, 4001))
    else:
        assert 50 < sum(not each.in_order for each in found) < 400


def _noting(original: Any, slow: list[int]) -> Any:
    def receive(lane: Any, subscriber: str, columns: Any, rows: Any, first: int) -> None:
        slow.append(len(rows))
        original(lane, subscriber, columns, rows, first)

    return receive


@pytest.mark.parametrize(
    "text",
    [
        b'[{"a":1},{"a":2.5}]', b'[{"a":1},{"a":null}]', b'[{"a":1},{"b":1}]',
        b'[{"a":1},{"a":-1}]',
        b'[{"a":1},{"a":true}]', b'[{"a":1},{"a":99999999999999999999}]', b'[{"a":1}]', b"",
        b"[1,2]",
        b'[{"a":1,"":2},{"a":2}]', b'[{"a":1},{"a":0}]',
    ],
)  # fmt: skip
def test_odd_stamps_are_not_skimmed(text):
    assert skim.read(["a"], np.array([0, 0]), text) is None


def test_stamps_that_would_shift_rows_are_not_skimmed():
    stamps = ['{"a":1},{"a":2}', '{"a":3', '"b":1}']
    rows = [{**row(n, "a", {"a": 1}), "stamp": text} for n, text in enumerate(stamps)]
    plan = Plan("total", {}, strict=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_lane, "SKIM_ROWS_MIN", 1)
        out = Rows(plan).feed(table_of(rows)).to_pylist()
    assert len(out) == 3
    assert all("not a stamp" in each["quarantine"] for each in out)


def test_a_skim_that_forgets_how_many_may_wait_is_caught(monkeypatch):
    """The comparison above would notice."""
    events = true_order(80, 3)
    rows = [row(n, *each) for n, each in enumerate([*events[5:], *events[:5]])]
    plan = Plan("total", {"mode": "hold", "buffer": 4}, start=dict.fromkeys("abc", 0), strict=False)
    assert answers(plan, [rows], quick=True) == answers(plan, [rows], quick=False)
    monkeypatch.setattr(skim_run, "beyond_at_most", lambda *_: 0)
    assert answers(plan, [rows], quick=True) != answers(plan, [rows], quick=False)
