"""Runs in which something goes wrong that nobody saw once: what the judges must say of them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from inorder.check import Verdict, judge
from inorder.sim.memory import Memory
from inorder.sim.scenario import parse
from inorder.sim.simulate import simulate

ROOT = Path(__file__).parents[2]
TRADING = (ROOT / "examples" / "trading.toml").read_text()


def ran(text: str, seed: int = 1) -> Memory:
    memory = Memory()
    simulate(parse(text), seed, memory)
    return memory


def reliable(text: str, seed: int = 1) -> Verdict:
    return judge(ran(text, seed).history(), ["reliable"])["reliable"]


def share(verdict: Verdict) -> float:
    return verdict.counts["owed"] / verdict.counts["deliverable"]


@cache
def trading(update: str, updates: float = 10.0, seed: int = 1) -> Verdict:
    text = TRADING.replace('update = "parametric"', f'update = "{update}"')
    text = text.replace("updates = 10.0", f"updates = {updates}")
    return reliable(text, seed)


def test_updates_that_subscribe_anew_lose_events_and_are_found_out():
    """Each limit moves ten times a second, and for a moment nobody holds the old one or the new."""
    assert sum(trading("break", seed=seed).violations for seed in (1, 2, 3)) >= 47
    assert trading("parametric").kept


def test_with_fewer_updates_nearly_every_deliverable_pair_is_judged():
    verdict = trading("parametric", updates=0.5)
    assert verdict.kept
    assert verdict.counts["owed"] > 1000
    assert share(verdict) >= 0.8


MARKET = (ROOT / "docs" / "total.md").read_text()
WORLD = re.search(r'WORLD = """\n(.*?)"""', MARKET, re.S)[1]


@pytest.mark.parametrize("guarantee", ["none", "fifo"])
def test_in_a_run_that_ends_quiet_every_deliverable_pair_is_judged(guarantee):
    memory = ran(WORLD.replace("GUARANTEE", guarantee), seed=7)
    assert memory.ending.quiet
    verdict = judge(memory.history(), ["reliable"])["reliable"]
    assert verdict.counts["deliverable"] == 600
    assert share(verdict) == 1.0


def test_events_without_any_order_break_what_total_order_promises_across_topics():
    verdicts = judge(ran(WORLD.replace("GUARANTEE", "none"), seed=7).history())
    for name in ("total", "realtime", "causal_across_topics", "per_publisher"):
        assert verdicts[name].violations > 0, name


def test_publications_that_never_end_are_counted_and_not_taken_for_unknown(monkeypatch):
    """Every third publication gets no answer in a run that goes on for long."""
    from inorder.guarantee import none

    publish = none.Client.publish

    def forgetful(client, topic, value, now):
        effects = publish(client, topic, value, now)
        return effects if (client.next_seq - 1) % 3 else effects[:-1]

    monkeypatch.setattr(none.Client, "publish", forgetful)
    memory = ran(WORLD.replace("GUARANTEE", "none"), seed=7)
    verdict = judge(memory.history(), ["accepted"])["accepted"]
    silent = sum(row.seq % 3 == 0 for row in memory.rows["events"])
    assert verdict.violations == silent == 48
    assert verdict.counts["unknown"] == 0


def test_over_links_that_reorder_every_publication_is_answered():
    """The world of docs/total.md. Sessions without a receive window left 40 of the 150 without an
    answer 20 s later."""
    verdicts = judge(ran(WORLD.replace("GUARANTEE", "total"), seed=7).history())
    assert verdicts["accepted"].violations == 0
    assert verdicts["accepted"].counts["published"] == 150
    broken = {name for name, verdict in verdicts.items() if verdict.broken}
    assert broken == {"per_publisher"}
