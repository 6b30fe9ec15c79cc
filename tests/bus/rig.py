"""A run of several processes on one log, drawn from a seed, under the virtual loop.

`play(seed)` builds it, plays it, and gives what happened (`Told`); tests/bus/verdict.py judges it.
First comes a stormy part: faults, kills, cancellations, slow readers, filters that move, names
that are taken over. Then the store works again, and all that should come must come, soon.
"""

from __future__ import annotations

import asyncio
import math
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import inorder
from inorder.brokers.sqlite.file import File
from inorder.core.errors import InorderError, Misuse, Refused, Replaced, Unsure
from inorder.logs.topics import EVERYTHING
from tests.bus.faults import Faults, Memory
from tests.bus.virtual import PROCESS, Loop, Worker

TOPICS = ("a", "b", "c.x", "c.y")
HELD = (("a",), ("a", "b"), ("b", "c.*"), ("c.>",), TOPICS, (">",))
KINDS = ("sqlite", "sqlite", "memory", "repeats")
DEADLINE_S = 3.0


@dataclass
class Attempt:
    """An event that somebody tried to publish. `line` is who published it, one after the other."""

    n: int
    line: str
    topic: str
    value: int
    began: float
    patience: float
    outcome: str = ""
    ended: float = -1.0
    offset: int | None = None
    id: str = ""
    error: str = ""


@dataclass
class Life:
    """One subscription, from its beginning to its end."""

    name: str
    topics: tuple[str, ...]
    durable: str | None
    process: str
    # From which position on each filter judges, exclusive; None: no filter.
    filters: list[tuple[int, int | None]] = field(default_factory=list)
    latest: bool = False
    # Positions with a receipt before `subscribe` was called, and the next number to be published
    # when it returned.
    before: int = -1
    next_n: int = 0
    start: int = -1
    got: list[tuple[int, str, int, int, float]] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    done: int = -1
    # What was acknowledged: when the call came and went, and the position.
    acked: list[tuple[float, float, int]] = field(default_factory=list)
    ended: str = ""


@dataclass
class Claim:
    """A call that takes over a durable name; `life` is what came of it, if anything did."""

    name: str
    called: float
    returned: float = math.inf
    epoch: int = 0
    life: Life | None = None


@dataclass
class Told:
    seed: int
    kind: str
    attempts: dict[int, Attempt] = field(default_factory=dict)
    lives: list[Life] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    # The log as it is at the end: offset, topic, publisher, epoch, sequence, n.
    log: list[tuple[int, str, str, int, int, int]] = field(default_factory=list)
    # What was published when everything worked again: n, and when its receipt came.
    calm: dict[int, float] = field(default_factory=dict)
    slow_calls: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)


class World:
    def __init__(self, seed: int, loop: Loop, kind: str, url: str) -> None:
        self.loop, self.url, self.kind = loop, url, kind
        self.chance = random.Random(f"world {seed}")
        self.faults = Faults(random.Random(f"faults {seed}"))
        self.told = Told(seed, kind)
        self.stormy = True
        self.ending = False
        self.over = False
        self.files: list[File] = []

    def file(self, *values: Any, **named: Any) -> File:
        made = File(*values, **named)
        self.files.append(made)
        return made

    def let_go(self) -> None:
        """The files of processes that were killed."""
        for file in self.files:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                file.db.execute("SELECT 1")
                file.close()

    # Processes.

    def start(self, process: str, job: Any) -> asyncio.Task[Any]:
        context = copy_context()
        context.run(PROCESS.set, process)
        return self.loop.create_task(job, context=context)

    async def bounded(self, what: str, job: Any, limit: float) -> Any:
        """A call that ends by itself within its patience, and some steps of the store."""
        began = self.loop.time()
        try:
            return await job
        finally:
            took = self.loop.time() - began
            if took > limit + 1.0 and not self.over:
                self.told.slow_calls.append(f"{what}: {took:.1f} s of {limit:g}")

    async def process(self, name: str, publisher: str | None, durable: str | None) -> None:
        while True:
            bus = inorder.connect(self.url, name=publisher, deadline=DEADLINE_S)
            stormy = self.stormy
            try:
                await self.bounded(f"{name}: open", bus.open(), DEADLINE_S)
                break
            except (Misuse, Refused, Unsure):
                assert stormy, "a file that works is not opened"
                await asyncio.sleep(0.1)
        tasks = [self.start(name, self.publish(bus, f"{name}.{n}")) for n in range(2)]
        tasks += [self.start(name, self.subscribe(bus, f"{name}.s{n}", durable if n else None))
                  for n in range(2)]  # fmt: skip
        await asyncio.gather(*tasks)
        await self.bounded(f"{name}: close", bus.close(), 2 * DEADLINE_S)

    # Publishing.

    def attempt(self, line: str, patience: float) -> Attempt:
        n = len(self.told.attempts)
        topic, value = self.chance.choice(TOPICS), self.chance.randrange(10)
        made = Attempt(n, line, topic, value, self.loop.time(), patience)
        self.told.attempts[n] = made
        return made

    def fate(self, attempt: Attempt, receipt: Any) -> None:
        attempt.outcome, attempt.offset = receipt.outcome, receipt.offset
        attempt.id, attempt.ended, attempt.error = receipt.event, self.loop.time(), receipt.reason

    async def publish(self, bus: Any, line: str) -> None:
        chance = self.chance
        for _ in range(chance.randrange(3, 9)):
            if not self.stormy:
                break
            await asyncio.sleep(chance.choice([0.0, 0.001, 0.02, 0.2]) * chance.random())
            patience = chance.choice([0.01, 0.5, DEADLINE_S])
            some = [self.attempt(line, patience)]
            if chance.random() < 0.3:
                topic = some[0].topic
                some += [self.attempt(line, patience) for _ in range(chance.randrange(1, 5))]
                for each in some:
                    each.topic = topic
            call = self.start(PROCESS.get(), self.published(bus, some))
            if chance.random() < 0.15:
                await asyncio.sleep(chance.random() * 0.01)
                call.cancel()
            await asyncio.wait([call])

    async def published(self, bus: Any, some: list[Attempt]) -> None:
        patience, topic = some[0].patience, some[0].topic
        values = [{"n": each.n, "v": each.value} for each in some]
        what = f"publish {some[0].n}"
        if len(some) > 1:
            call = bus.publish_many(topic, values, deadline=patience)
            for each, receipt in zip(some, await self.bounded(what, call, patience), strict=True):
                self.fate(each, receipt)
            return
        [one] = some
        try:
            call = bus.publish(topic, values[0], deadline=patience)
            self.fate(one, await self.bounded(what, call, patience))
        except (Refused, Replaced) as error:
            one.outcome, one.error = "refused", str(error)
        except Unsure as error:
            one.outcome, one.error = "unknown", str(error)
        one.ended = self.loop.time()

    # Subscribing.

    def filter_of(self, low: int | None) -> dict[str, Any]:
        return {} if low is None else {"where": "v >= :low", "low": low}

    async def subscribe(self, bus: Any, name: str, durable: str | None) -> None:
        number = 0
        while not self.ending:
            number += 1
            await self.one_life(bus, f"{name}.{number}", durable)
            if durable and not self.stormy:
                break

    async def one_life(self, bus: Any, name: str, durable: str | None) -> None:
        chance, told = self.chance, self.told
        topics = TOPICS if durable else chance.choice(HELD)
        low = None if durable or chance.random() < 0.4 else chance.randrange(8)
        start: Any = "earliest" if durable else chance.choice(["latest", "latest", "earliest", -1])
        life = Life(name, topics, durable, PROCESS.get(), latest=start == "latest")
        ack = chance.choice(["next", "manual"]) if durable else "next"
        # What has a receipt now has a place at or before a start at the latest.
        life.before = max((a.offset or -1 for a in told.attempts.values()), default=-1)
        if start == -1 and chance.random() < 0.5:
            start = life.before
        claim = Claim(durable or "", self.loop.time())
        if durable:
            told.claims.append(claim)
        opening = bus.subscribe(
            *topics, start=start, durable=durable, ack=ack, name=name, **self.filter_of(low)
        )
        try:
            events = await self.bounded(f"{name}: subscribe", opening._begin(), DEADLINE_S)
        except (Refused, Unsure, Replaced):
            await asyncio.sleep(0.05)
            return
        life.next_n = len(told.attempts)
        life.start = life.done = events.reader.done
        life.filters = [(life.start, low)]
        if durable:
            claim.returned, claim.life = self.loop.time(), life
            claim.epoch = events._durable._epoch
        told.lives.append(life)
        try:
            await self.read(events, life, ack)
        except Replaced:
            life.ended = "replaced"
        life.ended = life.ended or "closed"
        await self.bounded(f"{name}: close", events.close(), DEADLINE_S)

    async def read(self, events: Any, life: Life, ack: str) -> None:
        chance = self.chance
        steps = chance.randrange(5, 40)
        quiet = 0
        while True:
            if self.stormy and steps <= 0:
                return
            steps -= 1
            if self.stormy and chance.random() < 0.3:
                await asyncio.sleep(chance.choice([0.0, 0.005, 0.1]) * chance.random())
            if chance.random() < 0.1:
                await self.change(events, life)
            patience = chance.choice([0.0, 0.003, 0.05, 0.5]) if self.stormy else 0.5
            try:
                event = await self.asked(events, life, patience)
            except TimeoutError:
                quiet += not self.stormy
                if quiet > 1 and self.ending:
                    life.ended = "drained"
                    return
                continue
            if event is None:
                continue
            quiet = 0
            at = self.loop.time()
            value = event.value
            life.got.append((event.position, event.topic, value["n"], value["v"], at))
            if ack == "manual" and chance.random() < 0.3:
                life.done = event.position
                with suppress(Refused, Unsure):
                    await self.bounded("ack", events.ack(event), DEADLINE_S)
                    life.acked.append((at, self.loop.time(), event.position))

    async def asked(self, events: Any, life: Life, patience: float) -> Any:
        """The next event, perhaps of a caller that is cancelled: then nothing may be lost."""
        # Who asks for the next has done what it was handed.
        life.done = max(life.done, life.got[-1][0] if life.got else -1)
        if self.chance.random() > 0.1:
            return await events.next(patience)
        call = asyncio.create_task(events.next(patience))
        await asyncio.sleep(self.chance.random() * 0.004)
        call.cancel()
        await asyncio.wait([call])
        return None if call.cancelled() else call.result()

    async def change(self, events: Any, life: Life) -> None:
        chance = self.chance
        handed = max([life.start, *(got[0] for got in life.got[-1:])])
        if life.filters[-1][1] is not None:
            low = chance.randrange(8)
            if chance.random() < 0.7:
                change = await events.set(low=low)
            else:
                change = await events.replace("v >= :other", other=low)
                await events.replace("v >= :low", low=low)
            life.filters.append((change.position, low))
            assert change.position >= handed, "a filter moved below what was handed over"
        elif chance.random() < 0.3:
            held = [topic for topic in TOPICS if events.reader.holds(topic)]
            if len(held) > 1:
                topic = chance.choice(held)
                await events.unsubscribe(topic)
                life.left[topic] = handed

    # The run.

    async def play(self) -> None:
        chance = self.chance
        self.faults.rate = chance.choice([0.0, 0.01, 0.05])
        named = chance.random() < 0.6
        names = ["till" if named and n < 2 else None for n in range(3)]
        durables = (
            ["d1", "d1", None] if self.kind == "sqlite" or chance.random() < 0.5 else [None] * 3
        )
        running = {}
        keeper = inorder.connect(self.url, name="keeper", deadline=DEADLINE_S)
        rate, self.faults.rate = self.faults.rate, 0.0
        await keeper.open()
        for number in range(3):
            process = f"p{number}"
            running[process] = self.start(
                process, self.process(process, names[number], durables[number])
            )
            await asyncio.sleep(chance.random() * 0.1)
            self.faults.rate = rate
        for number in range(3, 3 + chance.randrange(3)):
            await asyncio.sleep(chance.random() * 0.3)
            victim = chance.choice([*running])
            self.loop.killed.add(victim)
            del running[victim]
            for life in self.told.lives:
                if life.process == victim and not life.ended:
                    life.ended = "killed"
            process = f"p{number}"
            which = int(victim[1:]) % 3
            running[process] = self.start(
                process, self.process(process, names[which], durables[which])
            )
        if chance.random() < 0.3:
            # A disk that is full for a while: longer than anybody has patience.
            self.faults.rate, self.faults.code = 1.0, 13
            await asyncio.sleep(chance.random() * 2 * DEADLINE_S)
        else:
            await asyncio.sleep(chance.random())
        await self.calm(keeper, running)

    async def calm(self, keeper: Any, running: dict[str, asyncio.Task[Any]]) -> None:
        self.faults.rate, self.stormy = 0.0, False
        self.loop.stalls = 0.0
        await asyncio.sleep(2 * DEADLINE_S)
        for number in range(9):
            # Some close together: what comes while somebody looks is not to be missed.
            await asyncio.sleep(self.chance.random() * (0.005 if number % 3 else 0.3))
            last = self.attempt("keeper", DEADLINE_S)
            last.value = 9
            await self.published(keeper, [last])
            self.told.calm[last.n] = self.loop.time()
        await asyncio.sleep(1.0)
        self.ending = True
        done, late = await asyncio.wait(running.values(), timeout=60)
        assert not late, f"never ended: {[*late]}"
        for task in done:
            await task
        await self.look()  # before a memory is gone with its last connection
        await self.bounded("keeper: close", keeper.close(), DEADLINE_S)
        self.over = True

    async def look(self) -> None:
        """What the log says in the end, read by itself."""
        broker = inorder.bus.bus.broker_at(self.url, DEADLINE_S)
        await broker.open()
        [log] = await broker.logs(EVERYTHING)
        end = (await broker.settle([log]))[log.identity]
        offset = end.first
        while offset < end.stable:
            rows = await broker.read(log, offset, 1 << 20, EVERYTHING)
            for run in rows.runs:
                for index, value in enumerate(inorder.logs.reader._decode_any(run.values)):
                    self.told.log.append(
                        (run.offset + index, run.topic, run.publisher, run.epoch,
                         run.sequence + index, value["n"])
                    )  # fmt: skip
            offset = rows.upto
        await broker.close()


def play(seed: int, kind: str | None = None) -> Told:
    """What happens under this seed."""
    loop = Loop(seed)
    kind = kind or random.Random(f"kind {seed}").choice(KINDS)
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder, ExitStack() as stack:
        url = f"sqlite:///{folder}/b.db" if kind == "sqlite" else f"memory://virtual-{seed}"
        world = World(seed, loop, kind, url)
        stack.enter_context(mock.patch("tempfile.tempdir", folder))
        stack.callback(world.let_go)
        for patch in _patches(world, seed):
            stack.enter_context(patch)
        asyncio.set_event_loop(loop)
        try:
            loop.run(world.play())
        finally:
            asyncio.set_event_loop(None)
    world.told.failures = loop.failures
    world.told.seen = dict(world.faults.seen)
    return world.told


def _memory_folder() -> str | None:
    """A disk whose syncs cost nothing: what a power cut does is proved elsewhere."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _patches(world: World, seed: int) -> Iterator[Any]:
    """Small bounds, so that they are met; and the store of the run."""
    small = random.Random(f"small {seed}").random() < 0.7
    if small:
        yield mock.patch("inorder.logs.reader.UNREAD_BYTES_MAX", 100)
        yield mock.patch("inorder.logs.reader.READ_BYTES_AT_ONCE", 60)
        yield mock.patch("inorder.bus.publisher.READ_BYTES_AT_ONCE", 60)
        yield mock.patch("inorder.logs.publications.APPEND_BYTES_MAX", 60)
        yield mock.patch("inorder.brokers.sqlite.block.BLOCK_BYTES_MAX", 60)
    if world.kind == "sqlite":
        yield mock.patch("inorder.brokers.sqlite.broker.Worker", Worker)
        yield mock.patch("inorder.brokers.sqlite.broker.File", world.file)
        yield mock.patch("sqlite3.connect", world.faults.connection)
    else:
        place = world.url.removeprefix("memory://")
        yield mock.patch.dict("inorder.brokers.memory._hubs", clear=True)
        yield mock.patch(
            "inorder.bus.bus.broker_at",
            lambda url, wait_s: Memory(place, wait_s, world.faults, world.kind == "repeats"),
        )


__all__ = ["Attempt", "InorderError", "Life", "Misuse", "Told", "play"]
