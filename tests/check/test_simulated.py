"""What the judges say of simulated runs: how much of them they judge, and what a defect does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inorder.check import History, judge
from inorder.check.decision import decide
from inorder.check.extent import extent
from inorder.guarantee.registry import guarantee
from inorder.protocols.session import incoming
from inorder.sim.memory import Memory
from inorder.sim.scenario import parse
from inorder.sim.simulate import simulate

ROOT = Path(__file__).parents[2]
WORLD = re.search(r'WORLD = """\n(.*?)"""', (ROOT / "docs" / "total.md").read_text(), re.S)[1]  # type: ignore[index]


def ran(text: str, seed: int) -> History:
    memory = Memory()
    simulate(parse(text), seed, memory)
    return memory.history()


def world(order: str) -> History:
    return ran(WORLD.replace('"GUARANTEE"', order), 7)


def promised(**options: object) -> tuple[str, ...]:
    total = guarantee("total")
    return total.promises(total.options(**options), "network")


def test_sessions_that_keep_nothing_early_leave_publications_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Links that reorder and lose nothing, with the defect that sessions once had."""
    monkeypatch.setattr(incoming, "LINK_WINDOW_FRAMES", 0)
    verdicts = judge(world('"total"'))
    assert verdicts["accepted"].violations >= 40
    assert verdicts["accepted"].counts["unknown"] == 0
    assert decide(verdicts, promised()) == "broken"


def test_nearly_every_deliverable_pair_is_owed_under_total_order_too() -> None:
    counts = judge(world('"total"'), ["reliable"])["reliable"].counts
    assert counts["deliverable"] == 600
    assert counts["owed"] >= 0.8 * counts["deliverable"]


def test_one_publishers_order_across_topics_is_kept_by_the_fence_alone() -> None:
    """A line of its own: without the fence it is broken, shown, and decides nothing."""
    free, fenced = judge(world('"total"')), judge(world('"total", fence = true'))
    assert free["per_publisher"].violations > 0
    assert decide(free, promised()) == "kept"
    assert decide(free, promised(fence=True)) == "broken"
    assert fenced["per_publisher"].kept
    assert decide(fenced, promised(fence=True)) == "kept"


def test_with_the_papers_threshold_nothing_is_promised_across_topics() -> None:
    assert {"total", "causal_across_topics", "realtime"}.isdisjoint(promised(threshold=2))
    assert {"total", "causal_across_topics", "realtime"} <= {*promised(threshold=1)}


def test_where_limits_move_all_the_time_the_line_says_how_little_is_owed() -> None:
    """docs/audit.md and docs/content.md say a quarter."""
    text = (ROOT / "examples" / "trading.toml").read_text()
    verdict = judge(ran(text, 1), ["reliable"])["reliable"]
    share = verdict.counts["owed"] / verdict.counts["deliverable"]
    assert 0.2 < share < 0.3
    assert f"({int(100 * share)} %) were owed; the others: a filter" in extent(verdict)
