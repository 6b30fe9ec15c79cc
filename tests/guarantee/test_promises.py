"""Which guarantee keeps which promise over which network."""

from __future__ import annotations

import pytest

from inorder.check import PROMISES
from inorder.guarantee.registry import GUARANTEES, NO_LOG, guarantee
from inorder.guarantee.traced import promises_of, promises_of_all
from inorder.protocols import causal, fifo, total

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


def test_a_log_loses_nothing_unless_late_events_are_dropped():
    # Experiments register guarantees that say nothing about logs.
    for name in [name for name, known in GUARANTEES.items() if known.log is not NO_LOG]:
        assert "reliable" in guarantee(name).promises(guarantee(name).options(), "log")
    dropping = fifo.Options(when_late="drop")
    assert "reliable" not in guarantee("fifo").promises(dropping, "log")
    assert "reliable" not in guarantee("fifo").promises(fifo.Options(), "network")


def test_a_cube_loses_and_doubles_nothing_and_has_no_order_of_its_own():
    assert set(guarantee("none").promises(None, "cube")) == {"unique", "reliable", "accepted"}
    over = {
        network: set(guarantee("fifo").promises(fifo.Options(), network))
        for network in ("network", "log", "cube")
    }
    assert over["cube"] == over["log"] == over["network"] | {"reliable"}
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


def test_causal_order_needs_places_and_has_no_log_yet():
    assert [name for name, known in GUARANTEES.items() if known.needs_places] == ["causal"]
    assert guarantee("causal").log is NO_LOG
    assert guarantee("causal").messages is causal.Published
    assert guarantee("causal").services(("t",), causal.Options()) == {}
    for name in ("none", "fifo", "total"):
        assert guarantee(name).messages is guarantee(name).log.messages is not None


def test_a_trace_names_its_guarantee_and_so_what_it_promised():
    simulated = {"order": {"guarantee": "total", "fence": True}}
    expected = (*guarantee("total").promises(total.Options(fence=True)), "filter")
    assert promises_of(simulated, filtered=True) == expected
    live = {"driver": "live", "order": {"guarantee": "none"}}
    assert promises_of(live, filtered=False) == guarantee("none").promises(None, "log")
    assert promises_of({"order": {}}, filtered=False) == ("accepted",)


def test_who_reads_with_less_is_promised_less():
    """A bus that publishes with total order, and on which somebody reads with none."""
    live = {"driver": "live", "order": {"guarantee": "total"}, "read_with": ["none", "total"]}
    promised = promises_of(live, filtered=False)
    assert set(promised) == set(guarantee("none").promises(None, "log"))


def test_traces_of_one_run_are_held_to_what_all_their_guarantees_promise():
    one, two = {"order": {"guarantee": "total"}}, {"order": {"guarantee": "fifo"}}
    both = promises_of_all([one, two], filtered=True)
    each = [promises_of(summary, filtered=True) for summary in (one, two)]
    assert set(both) == set(each[0]) & set(each[1])
    assert "fifo" in both
    assert "total" not in both
    assert promises_of_all([one, {}], filtered=True) is None


def test_a_list_of_readers_that_is_none_is_passed_over():
    live = {"driver": "live", "order": {"guarantee": "none"}}
    for rubbish in (3, [["total"]], "total"):
        assert promises_of(live | {"read_with": rubbish}, False) == promises_of(live, False)


@pytest.mark.parametrize(
    "summary",
    [
        {}, {"order": 3}, {"order": {"guarantee": "x"}}, {"order": {"no_such_key": 1}},
        {"order": {"guarantee": ["total"]}},
    ],
)  # fmt: skip
def test_a_trace_of_others_says_nothing_of_promises(summary):
    assert promises_of(summary, filtered=True) is None
