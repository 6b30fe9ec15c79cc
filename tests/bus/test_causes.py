"""What an application had taken when it published, and what the judges see by it."""

from __future__ import annotations

import pytest

import inorder
from inorder.bus.bus import Bus
from inorder.bus.tracing import LiveTrace
from inorder.check import History, judge
from inorder.check.seen import counts
from inorder.check.trace import read_table
from inorder.core.errors import Refused
from tests.bus.judge import gather, run, take

QUESTIONS = 50


def connect(tmp_path, name: str, guarantee: str) -> Bus:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    return inorder.connect(url, guarantee, name=name, trace=tmp_path / name)


def ask_and_answer(tmp_path, guarantee: str) -> History:
    """One asks, one answers each question it was handed, and one reads both topics afterwards."""

    async def job() -> None:
        async with (
            connect(tmp_path, "asker", guarantee) as asker,
            connect(tmp_path, "answerer", guarantee) as answerer,
            connect(tmp_path, "reader", guarantee) as reader,
            answerer.subscribe("questions") as questions,
            reader.subscribe("answers", "questions") as both,
        ):
            both.has_room = lambda: False  # it reads nothing until all is there
            for number in range(QUESTIONS):
                await asker.publish("questions", {"n": number})
                question = await questions.next(5)
                await answerer.publish("answers", {"to": question.value["n"]})
            del both.has_room
            reader.host.ring()
            await take(both, 2 * QUESTIONS)

    run(job)
    return gather(tmp_path / name for name in ("asker", "answerer", "reader"))


def test_answers_that_come_before_their_questions_are_seen_across_buses(tmp_path):
    """`none` reads the topics of a log one after the other; nobody subscribes under the name of
    his publisher, and yet each answer knows its question."""
    history = ask_and_answer(tmp_path, "none")
    verdicts = judge(history, ["causal", "causal_across_topics"])
    across = verdicts["causal_across_topics"]
    assert across.violations == QUESTIONS
    assert across.counts["untold"] == 0
    assert across.counts["caused"] == 2 * QUESTIONS - 1  # all but the first question
    assert across.witness is not None
    assert across.witness["effect"].startswith("answerer:")
    assert across.witness["cause"].startswith("asker:")
    assert verdicts["causal"].kept, "within each topic nothing was out of order"


def test_total_order_brings_every_question_before_its_answer(tmp_path):
    history = ask_and_answer(tmp_path, "total")
    names = ["causal", "causal_across_topics", "realtime", "accepted", "total"]
    for name, verdict in judge(history, names).items():
        assert verdict.judged, (name, verdict.why)
        assert verdict.kept, (name, verdict.witness)


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
            broker = bus.host.broker
            write = broker.write

            async def full(turn):
                raise Refused("no room")

            broker.write = full
            with pytest.raises(Refused):
                await bus.publish("t", {"n": 1})
            broker.write = write
            await bus.publish("t", {"n": 2})

    run(job)
    rows = sorted(read_table(tmp_path / "shop", "events"), key=lambda row: row.seq)
    assert [row.outcome for row in rows] == ["accepted", "refused", "accepted"]
    assert [row.accepted_at is None for row in rows] == [False, True, False]
    verdict = judge(History.read(tmp_path / "shop"), ["accepted"])["accepted"]
    assert verdict.kept
    assert verdict.counts["refused"] == 1


def test_a_publication_is_not_said_to_have_seen_what_was_taken_after_its_call():
    """It waits for its turn while the application goes on; what it waited for is no cause of it."""
    trace = LiveTrace(None, "jsonl", "shop", {})
    trace.taken("s1", 1)
    early = trace.mark()
    trace.taken("s1", 2)
    refused = trace.mark()
    trace.taken("s2", 1)
    late = trace.mark()
    assert refused < late
    assert trace.seen(early) == {"s1": 1}
    assert trace.seen(early) == {}
    # Nothing came of the second call: the third tells what it would have told.
    assert trace.seen(late) == {"s1": 2, "s2": 1}
    assert trace.mark() == late
