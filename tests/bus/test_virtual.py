"""The bus under the virtual loop: many drawn runs, and defects that such runs must find.

`python -m tests.bus.test_virtual --runs 20000 --from 500` plays further seeds; a run that fails
says its seed, and `--seed N` plays that one again.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from inorder.brokers.sqlite.facts import Facts
from inorder.bus.bus import Bus
from inorder.bus.publisher import Publisher
from inorder.bus.pump import LOOK_AGAIN_S, Pump
from inorder.bus.subscription import Subscription
from inorder.core.errors import InorderError
from inorder.logs.broker import Stored
from inorder.logs.publications import Append, Publications
from inorder.logs.reader import Reader
from tests.bus.rig import play
from tests.bus.verdict import judge, problems

SEEDS = 500


@contextmanager
def quiet() -> Iterator[None]:
    """Faults are logged, thousands of them."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def run(seeds: Iterable[int]) -> Counter[str]:
    """Play and judge; what happened how often."""
    happened: Counter[str] = Counter()
    with quiet():
        for seed in seeds:
            told = play(seed)
            judge(told)
            happened.update(told.seen)
            happened.update(attempt.outcome or "no answer" for attempt in told.attempts.values())
            happened.update(life.ended for life in told.lives)
            happened["filters moved"] += sum(len(life.filters) - 1 for life in told.lives)
            happened["topics left"] += sum(len(life.left) for life in told.lives)
            happened["names taken over"] += len(told.claims)
            happened["handed over"] += sum(len(life.got) for life in told.lives)
    return happened


@pytest.mark.parametrize("part", range(5))
def test_every_drawn_run_keeps_every_promise(part):
    happened = run(range(part * SEEDS // 5, (part + 1) * SEEDS // 5))
    # A run in which nothing goes wrong proves nothing.
    for what in (
        "stored", "refused", "unknown", "no answer", "closed", "killed", "replaced", "drained",
        "filters moved", "topics left", "names taken over", "append late", "append unsure",
        "committed, and 10", "commit 13", "statement 5", "read refused", "settle refused",
    ):  # fmt: skip
        assert happened[what] > 0, (what, happened)
    assert happened["handed over"] > 20 * SEEDS // 5


def test_a_seed_is_a_run():
    with quiet():
        first, second = (play(7) for _ in range(2))
    assert [vars(each) for each in first.lives] == [vars(each) for each in second.lives]
    assert first.seen == second.seen


# Defects. Each is switched on, and must be found within some runs of the kind that can show it.


def sends_behind(machine: Publications) -> list[object]:
    """What had no answer waits, and what waits is sent."""
    machine._waiting.extend(machine._flight)
    machine._land()
    return list(machine._launch())


def keeps_what_was_read(reader: Reader, judge: object, durable: int) -> int:
    reader._judge = judge
    reader.done = reader.passed = max(reader.done, durable)
    return reader.done


def puts_whatever_the_epoch(facts: Facts, key: str, value: bytes, epoch: int) -> None:
    facts.set(key, 0, epoch, value)


async def receipt_first(publisher: Publisher, effect: object) -> None:
    if not isinstance(effect, Append):
        await ACT(publisher, effect)
        return
    machine, broker, log = publisher._machine, publisher._broker, publisher._log
    start = (await broker.settle([log]))[log.identity].stable
    publisher._do(machine.stored(Stored(range(start, start + sum(r.count for r in effect.runs)))))
    await broker.append(log, effect.author, effect.runs)


ACT, BEGUN, WAIT = Publisher._act, Bus.begun, Subscription._wait


async def loses_wake_ups(pump: Pump) -> None:
    while True:
        await pump._wake.wait()
        while await pump._read():
            await asyncio.sleep(0)
        pump._wake.clear()


async def looks_and_forgets(pump: Pump) -> None:
    while True:
        try:
            await pump._broker.moved({pump._log.identity: pump._end}, LOOK_AGAIN_S)
            pump._wake.set()
            await asyncio.sleep(0.003)  # somebody has read meanwhile, and somebody has appended
            pump._end = (await pump._broker.settle([pump._log]))[pump._log.identity].stable
        except InorderError:
            await asyncio.sleep(0.05)


async def looks_late(bus: Bus, wanted: object) -> object:
    subscription = await BEGUN(bus, wanted)
    if wanted.start == "latest":
        pump, reader = bus._pump, subscription.reader
        asyncio.get_running_loop().call_later(0.01, lambda: reader.move(reader._judge, pump._end))
    return subscription


async def takes_and_waits(subscription: Subscription, seconds: float | None) -> object:
    event = await WAIT(subscription, seconds)
    await asyncio.sleep(0.001)
    return event


def admits_everybody(*facts: object) -> None:
    """Neither older lives nor repeats are refused."""


DEFECTS = {
    "sends behind an unknown append": (
        "repeats", mock.patch.object(Publications, "unsure", sends_behind)),
    "keeps what was read ahead when a filter moves": (
        "memory", mock.patch.object(Reader, "move", keeps_what_was_read)),
    "puts a position whatever the epoch": (
        "sqlite", mock.patch.object(Facts, "put", puts_whatever_the_epoch)),
    "gives a receipt before the commit": (
        "sqlite", mock.patch.object(Publisher, "_act", receipt_first)),
    "loses a wake-up": ("memory", mock.patch.object(Pump, "_run", loses_wake_ups)),
    "looks late where latest is": ("memory", mock.patch.object(Bus, "begun", looks_late)),
    "waits with an event in its hands": (
        "memory", mock.patch.object(Subscription, "_wait", takes_and_waits)),
    "says refused where nobody knows": (
        "repeats", mock.patch.object(Publications, "unsure", lambda self: self.refused("?"))),
    "lets an older life write on": (
        "sqlite", mock.patch("inorder.brokers.runs.admit", admits_everybody)),
    "takes what came while it looked for read": (
        "memory", mock.patch.object(Pump, "_listen", looks_and_forgets)),
}  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect):
    kind, planted = DEFECTS[defect]
    with quiet(), planted:
        for seed in range(60):
            try:
                if next(problems(play(seed, kind)), None):
                    return
            except (AssertionError, InorderError):
                return
    raise AssertionError(f"60 runs found nothing of this: {defect}")


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--runs", type=int, default=500)
    asked.add_argument("--from", type=int, default=SEEDS, dest="first")
    asked.add_argument("--seed", type=int)
    words = asked.parse_args()
    first = words.first if words.seed is None else words.seed
    count = words.runs if words.seed is None else 1
    print(f"bus: {count} runs from seed {first}:", dict(run(range(first, first + count))))
