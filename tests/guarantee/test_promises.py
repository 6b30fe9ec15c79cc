"""Which guarantee keeps which promise over which network."""

from __future__ import annotations

import pytest

from inorder.check import PROMISES
from inorder.guarantee.promises import OVER_A_LOG
from inorder.guarantee.registry import GUARANTEES, guarantee
from inorder.guarantee.traced import promises_of, promises_of_all
from inorder.protocols import causal, fifo, total
from tests.bus.judge import PROMISES as JUDGED_LIVE

ACROSS = {"causal_across_topics", "realtime"}


@pytest.mark.parametrize("name", GUARANTEES)
@pytest.mark.parametrize("network", ["network", "log", "cube"])
def test_what_is_promised_can_be_judged(name, network):
    promises = guarantee(name).promises(guarantee(name).options(), network)
    assert set(promises) <= set(PROMISES)
    assert len(set(promises)) == len(promises)
    assert "accepted" in promises


@pytest.mark.parametrize("threshold", [0, 1, 2])
def test_order_across_topics_is_promised_by_what_sequences_topics_held_together(threshold):
    promises = set(guarantee("total").promises(total.Options(threshold=threshold)))
    assert promises & ACROSS == (ACROSS if threshold < 2 else set())
    assert "causal" in promises


def test_a_publishers_own_order_is_what_fence_promises():
    assert "per_publisher" in guarantee("total").promises(total.Options(fence=True))
    assert "per_publisher" not in guarantee("total").promises(total.Options())
    assert "per_publisher" in guarantee("fifo").promises(fifo.Options())


def test_over_one_log_every_guarantee_promises_the_same():
    """What the judges of live runs look at, but for `filter`, which a subscription adds."""
    for name in GUARANTEES:
        ordered = guarantee(name)
        assert ordered.promises(ordered.options(), "log") == OVER_A_LOG
    assert {*OVER_A_LOG} == {*JUDGED_LIVE} - {"filter"}


def test_a_cube_loses_and_doubles_nothing_and_has_no_order_of_its_own():
    assert set(guarantee("none").promises(None, "cube")) == {"unique", "reliable", "accepted"}
    over = {
        network: set(guarantee("fifo").promises(fifo.Options(), network))
        for network in ("network", "cube")
    }
    assert over["cube"] == over["network"] | {"reliable"}
    dropping = fifo.Options(when_late="drop")
    assert "reliable" not in guarantee("fifo").promises(dropping, "cube")
    ordered = guarantee("total")
    assert ordered.promises(total.Options(), "cube") == ordered.promises(total.Options())


@pytest.mark.parametrize("stamps", ["barrier", "clock", "whole"])
def test_causal_order_across_topics_is_promised_by_whole_stamps_only(stamps):
    ordered = guarantee("causal")
    promised = set(ordered.promises(causal.Options(stamps=stamps), "cube"))
    across = {"causal_across_topics"} if stamps == "whole" else set()
    assert promised == {"causal", "fifo", "unique", "reliable", "accepted"} | across
    # Whatever has run it gave places.
    assert promised == set(ordered.promises(causal.Options(stamps=stamps)))


def test_causal_order_needs_places_and_puts_no_rows_in_order_yet():
    assert [name for name, known in GUARANTEES.items() if known.needs_places] == ["causal"]
    rows = {name: guarantee(name).rows for name in ("none", "fifo", "total", "causal")}
    assert [name for name in rows if rows[name] is None] == ["causal"]
    assert guarantee("causal").services(("t",), causal.Options()) == {}


def test_rows_need_stamps_and_wait_for_each_other_where_numbers_tell_what_is_missing():
    rows = {name: guarantee(name).rows for name in ("none", "fifo", "total")}
    assert {name: each.needs_stamps for name, each in rows.items()} == {
        "none": False, "fifo": True, "total": True,
    }  # fmt: skip
    waits = {name: each.waits_for_all(guarantee(name).options()) for name, each in rows.items()}
    assert waits == {"none": False, "fifo": True, "total": True}


def test_a_trace_names_its_guarantee_and_so_what_it_promised():
    simulated = {"order": {"guarantee": "total", "fence": True}}
    expected = (*guarantee("total").promises(total.Options(fence=True)), "filter")
    assert promises_of(simulated, filtered=True) == expected
    for name in ("none", "fifo", "total"):
        live = {"driver": "live", "order": {"guarantee": name}}
        assert promises_of(live, filtered=False) == OVER_A_LOG
        assert promises_of(live, filtered=True) == (*OVER_A_LOG, "filter")
    assert promises_of({"order": {}}, filtered=False) == ("accepted",)
    assert promises_of({"driver": "live", "order": {"guarantee": "x"}}, filtered=False) is None
    cube = {"network": "cube", "order": {"guarantee": "none"}}
    assert promises_of(cube, filtered=False) == ("unique", "reliable", "accepted")


def test_traces_of_one_run_are_held_to_what_all_their_guarantees_promise():
    one, two = {"order": {"guarantee": "total"}}, {"order": {"guarantee": "fifo"}}
    both = promises_of_all([one, two], filtered=True)
    each = [promises_of(summary, filtered=True) for summary in (one, two)]
    assert set(both) == set(each[0]) & set(each[1])
    assert "fifo" in both
    assert "total" not in both
    assert promises_of_all([one, {}], filtered=True) is None


@pytest.mark.parametrize(
    "summary",
    [
        {}, {"order": 3}, {"order": {"guarantee": "x"}}, {"order": {"no_such_key": 1}},
        {"order": {"guarantee": ["total"]}},
    ],
)  # fmt: skip
def test_a_trace_of_others_says_nothing_of_promises(summary):
    assert promises_of(summary, filtered=True) is None
