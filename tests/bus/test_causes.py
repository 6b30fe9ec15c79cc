"""What an application had taken when it published, and what the judges see by it."""

from __future__ import annotations

import asyncio

import pytest

import inorder
from inorder.bus.bus import Bus
from inorder.bus.tracing import LiveTrace
from inorder.check import History, judge
from inorder.check.seen import counts
from inorder.check.trace import read_table
from inorder.core.errors import Misuse, Refused, UnknownName
from tests.bus.judge import PROMISES, Failing, gather, run, take, until

QUESTIONS = 50


def connect(tmp_path, name: str, guarantee: str) -> Bus:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    return inorder.connect(url, guarantee, name=name, trace=tmp_path / name)


def ask_and_answer(tmp_path, guarantee: str) -> None:
    """One asks, one answers each question it was handed, and one reads both topics afterwards."""

    async def job() -> None:
        async with (
            connect(tmp_path, "asker", guarantee) as asker,
            connect(tmp_path, "answerer", guarantee) as answerer,
            answerer.subscribe("questions") as questions,
        ):
            for number in range(QUESTIONS):
                await asker.publish("questions", {"n": number})
                question = await questions.next(5)
                await answerer.publish("answers", {"to": question.value["n"]})
        async with (
            connect(tmp_path, "reader", guarantee) as reader,
            reader.subscribe("answers", "questions", start="earliest") as both,
        ):
            await take(both, 2 * QUESTIONS)

    run(job)


@pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])
def test_every_question_is_handed_over_before_its_answer(tmp_path, guarantee):
    """The log has that order, so every guarantee over it does."""
    ask_and_answer(tmp_path, guarantee)
    history = gather(tmp_path / name for name in ("asker", "answerer", "reader"))
    verdicts = judge(history, PROMISES)
    for name, verdict in verdicts.items():
        assert verdict.judged, (name, verdict.why)
        assert verdict.kept, (name, verdict.witness)
    across = verdicts["causal_across_topics"]
    assert across.counts["untold"] == 0
    assert across.counts["caused"] == 2 * QUESTIONS - 1  # all but the first question


def test_what_was_taken_is_told_once_and_by_the_next_event(tmp_path):
    async def job() -> None:
        async with (
            connect(tmp_path, "shop", "none") as bus,
            bus.subscribe("t", name="s1") as one,
            bus.subscribe("t", name="s2") as two,
        ):
            await bus.publish("t", {"n": 0})
            await take(one, 1)
            await bus.publish_many("t", [{"n": 1}, {"n": 2}])
            await take(one, 2)
            await take(two, 1)
            await bus.publish("t", {"n": 3})
            await bus.publish("t", {"n": 4})

    run(job)
    rows = sorted(read_table(tmp_path / "shop", "events"), key=lambda row: row.seq)
    assert [counts(row.seen, row.event, "") for row in rows] == [
        {}, {"s1": 1}, {}, {"s1": 3, "s2": 1}, {},
    ]  # fmt: skip
    assert {row.application for row in rows} == {"shop"}
    assert {row.outcome for row in rows} == {"accepted"}
    assert all(row.seen is not None for row in rows)
    history = History.read(tmp_path / "shop")
    assert history.ending is not None
    assert (history.ending.quiet, history.ending.within) == (False, 10.0)
    assert history.ending.ended_at >= max(row.accepted_at for row in rows)
    assert history.clock_error == 0.0


def test_what_was_refused_is_written_as_refused(tmp_path):
    async def job() -> None:
        async with connect(tmp_path, "shop", "total") as bus:
            await bus.publish("t", {"n": 0})
            broker = Failing(bus)
            broker.error = Refused("no room")
            with pytest.raises(Refused):
                await bus.publish("t", {"n": 1})
            broker.error = None
            await bus.publish("t", {"n": 2})

    run(job)
    rows = sorted(read_table(tmp_path / "shop", "events"), key=lambda row: row.seq)
    assert [row.outcome for row in rows] == ["accepted", "refused", "accepted"]
    assert [row.accepted_at is None for row in rows] == [False, True, False]
    verdict = judge(History.read(tmp_path / "shop"), ["accepted"])["accepted"]
    assert verdict.kept
    assert verdict.counts["refused"] == 1


def test_a_trace_can_be_judged_in_which_a_name_subscribes_twice(tmp_path):
    async def job() -> None:
        async with connect(tmp_path, "shop", "total") as bus:
            for n in range(3):
                async with bus.subscribe("t", name="s") as events:
                    await bus.publish("t", {"n": n})
                    await events.next(5)

    run(job)
    verdicts = judge(gather([tmp_path / "shop"], within=10.0), PROMISES)
    assert all(verdict.kept for verdict in verdicts.values()), verdicts


def test_two_buses_do_not_write_one_trace(tmp_path):
    async def job() -> None:
        async with inorder.connect("memory://", trace=tmp_path / "t"):
            with pytest.raises(Misuse, match="another bus writes its trace there"):
                await inorder.connect("memory://", trace=tmp_path / "t").open()
        with pytest.raises(UnknownName, match="format of a trace"):
            await inorder.connect("memory://", trace=tmp_path / "t", trace_format="xml").open()

    run(job)


def test_a_publication_is_not_said_to_have_seen_what_was_taken_after_its_call(tmp_path):
    """It waits for its turn while the application goes on; what it waited for is no cause of it."""
    trace = LiveTrace(tmp_path / "t", "jsonl", "shop", {})
    trace._taken[-1]["s1"] = 1
    early = trace.mark()
    trace._taken[-1]["s1"] = 2
    refused = trace.mark()
    trace._taken[-1]["s2"] = 1
    late = trace.mark()
    assert refused < late
    assert trace._seen(early) == {"s1": 1}
    assert trace._seen(early) == {}
    # Nothing came of the second call: the third tells what it would have told.
    assert trace._seen(late) == {"s1": 2, "s2": 1}
    assert trace.mark() == late


def test_what_never_became_an_event_has_no_row(tmp_path):
    async def job() -> None:
        async with connect(tmp_path, "shop", "total") as bus:
            await bus.publish("t", {"n": 0})
            broker = Failing(bus)
            broker.blocked = asyncio.Event()
            sent = asyncio.create_task(bus.publish("t", {"n": 1}))
            await until(lambda: broker.appends > 0)
            with pytest.raises(Refused, match="not sent in time"):
                await bus.publish("t", {"n": 2}, deadline=0.05)
            broker.blocked.set()
            await sent

    run(job)
    rows = read_table(tmp_path / "shop", "events")
    assert [row.attributes for row in rows] == ['{"n":0}', '{"n":1}']
    assert all(row.event for row in rows)


def test_a_name_that_subscribes_again_goes_on_counting(tmp_path):
    async def job() -> None:
        async with connect(tmp_path, "shop", "total") as bus:
            for _ in range(2):
                wanted = bus.subscribe("t", "u", where="n > :low", low=-1, name="s")
                async with wanted as events:
                    await bus.publish("t", {"n": 0})
                    await take(events, 1)
                    await events.set(low=0)
                    await bus.publish("t", {"n": 1})
                    await take(events, 1)
                    await events.unsubscribe("u")

    run(job)
    deliveries = read_table(tmp_path / "shop", "deliveries")
    assert [row.nth for row in deliveries] == [1, 2, 3, 4]
    changes = read_table(tmp_path / "shop", "subscriptions")
    assert [(row.op, row.after) for row in changes] == [
        ("subscribe", 0), ("set", 1), ("unsubscribe", 2), ("unsubscribe", 2),
        ("subscribe", 2), ("set", 3), ("unsubscribe", 4), ("unsubscribe", 4),
    ]  # fmt: skip
