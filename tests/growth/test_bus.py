"""What a verb of the bus costs does not grow with the log, with its topics, or with those who came
and went. Steps of SQLite's machine are counted, never time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import inorder
from inorder.core.limits import NAMELESS_KEPT_MAX
from tests.bus.judge import run, take


class Steps:
    """Counts the steps of every connection that is opened under it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        connect = sqlite3.connect

        def counted(*values: Any, **named: Any) -> sqlite3.Connection:
            made = connect(*values, **named)
            made.set_progress_handler(self._step, 1)
            return made

        monkeypatch.setattr(sqlite3, "connect", counted)

    def _step(self) -> int:
        self.count += 1
        return 0

    async def of(self, job: Callable[[], Awaitable[Any]], times: int = 5) -> int:
        """The least of some tries: looks at the file's version come in between."""
        found = []
        for _ in range(times):
            before = self.count
            await job()
            found.append(self.count - before)
        return min(found)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


async def verbs(steps: Steps, url: str, bus: Any, events: Any, topic: str) -> dict[str, int]:
    """What each verb costs now."""

    async def publish() -> None:
        await bus.publish(topic, {"n": 0})
        await take(events, 1)

    async def subscribe() -> None:
        async with bus.subscribe("none.such"):
            pass

    async def resume() -> None:
        async with bus.subscribe("none.such", durable="d"):
            pass

    async def move() -> None:
        await moving.set(low=1)

    async def connect() -> None:
        async with inorder.connect(url):
            pass

    costs = {"publish": await steps.of(publish), "subscribe": await steps.of(subscribe),
             "resume": await steps.of(resume), "connect": await steps.of(connect)}  # fmt: skip
    async with bus.subscribe("none.such", where="n > :low", low=0) as moving:
        costs["move"] = await steps.of(move)
    return costs


def compared(few: dict[str, int], many: dict[str, int], slack: float = 1.5) -> None:
    assert few["publish"] > 0
    for verb, count in few.items():
        assert many[verb] <= count * slack + 60, (verb, count, many[verb])


def test_no_verb_costs_more_in_a_long_log(tmp_path: Path, steps: Steps) -> None:
    url = f"sqlite:///{tmp_path}/bus.db?durable=no"

    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t") as events:
            costs = []
            for _ in range(2):
                costs.append(await verbs(steps, url, bus, events, "t"))
                for n in range(1500):  # a block each
                    await bus.publish("other", {"n": n})
            compared(*costs)
            # The measure can fail: figures for people look at every block.
            assert await steps.of(bus._broker.status) > 3000 * 3

    run(job, 120)


def test_no_verb_costs_more_with_a_thousand_topics(tmp_path: Path, steps: Steps) -> None:
    costs, sizes = [], []

    async def job(topics: int) -> None:
        path = tmp_path / f"{topics}.db"
        url = f"sqlite:///{path}?durable=no"
        async with inorder.connect(url) as bus, bus.subscribe("topic.1") as events:
            await asyncio.gather(*(bus.publish(f"topic.{n}", {"n": 0}) for n in range(topics)))
            await take(events, 1)
            costs.append(await verbs(steps, url, bus, events, "topic.1"))
            before = rows_and_bytes(path)
            for n in range(200):
                await bus.publish(f"topic.{n % topics}", {"n": n})
            after = rows_and_bytes(path)
            sizes.append((after[0] - before[0], after[1] - before[1]))

    for topics in (10, 1000):
        run(lambda topics=topics: job(topics), 120)
    compared(*costs)
    (few_rows, few_bytes), (many_rows, many_bytes) = sizes
    assert many_rows == few_rows == 200
    assert many_bytes <= few_bytes * 1.1


def rows_and_bytes(path: Path) -> tuple[int, int]:
    db = sqlite3.connect(path)
    found = db.execute(
        "SELECT count(*), sum(length(head) + length(seal) + length(body)) FROM log"
    ).fetchone()
    db.close()
    return tuple(found)


def facts(path: Path) -> int:
    db = sqlite3.connect(path)
    [count] = db.execute("SELECT count(*) FROM facts").fetchone()
    db.close()
    return count


def test_connections_that_come_and_go_leave_nothing_but_bounded_rows(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader leaves nothing; a publisher without a name one row, and there are at most so many;
    one with a name as many rows as the first time, however often it comes back."""
    for module in ("inorder.brokers.runs", "inorder.brokers.sqlite.facts"):
        monkeypatch.setattr(f"{module}.NAMELESS_KEPT_MAX", 20)
    assert NAMELESS_KEPT_MAX > 20
    path = tmp_path / "bus.db"
    url = f"sqlite:///{path}?durable=no"

    async def visit(name: str | None, durable: str | None, publishes: bool) -> None:
        async with inorder.connect(url, name=name) as bus, bus.subscribe("t", durable=durable):
            if publishes:
                await bus.publish("t", {})

    async def job() -> None:
        async with inorder.connect(url) as bus, bus.subscribe("t", start="earliest") as events:
            await visit("till", "d", True)
            await take(events, 1)
            begun = facts(path)
            costs = [await verbs(steps, url, bus, events, "t")]
            for _ in range(5):
                await visit(None, None, False)
                await visit("till", "d", True)
            at_rest = facts(path)
            assert at_rest <= begun + 2  # the nameless publisher above, its durable name
            for _ in range(45):
                await visit(None, None, True)
            assert facts(path) <= at_rest + 20
            await take(events, 50)
            costs.append(await verbs(steps, url, bus, events, "t"))
            compared(*costs)

    run(job, 120)


@pytest.mark.parametrize("events", [10, 1000])
def test_a_subscription_to_another_topic_costs_no_call_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: int
) -> None:
    """Runs of topics that nobody here holds are passed over in one look at each."""
    from inorder.logs.reader import Reader

    received = []
    receive = Reader.receive
    monkeypatch.setattr(
        Reader, "receive", lambda self, offset, rows: (
            received.append(len(rows.runs)), receive(self, offset, rows))[1],
    )  # fmt: skip

    async def job() -> None:
        url = f"sqlite:///{tmp_path}/bus.db?durable=no"
        async with inorder.connect(url) as bus, bus.subscribe("mine", "last") as mine:
            await bus.publish_many("other", [{"n": n} for n in range(events)])
            await bus.publish("last", {})
            await take(mine, 1)

    run(job)
    assert sum(received) == 1
