"""The contract of a broker: every sentence of logs/broker.py and of its traits, as a check.

A check takes a `Place`, where any number of connections can be opened, and raises. The suite runs
all of them on every place (test_contract.py); adapters broken on purpose must fail (test_teeth.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from inorder.core.errors import Misuse, Refused, Replaced, TooLarge
from inorder.logs.broker import Author, Log
from inorder.logs.topics import EVERYTHING, Topics
from tests.brokers.hands import TIRED, Writer, encode, ends, events, everything, published

T = TypeVar("T")
Check = Callable[["Place"], Coroutine[Any, Any, None]]
CHECKS: dict[str, Check] = {}


def check(made: Check) -> Check:
    CHECKS[made.__name__] = made
    return made


class Place:
    """Where connections can be opened; all of them see the same logs. `coordinates`: a connection
    is a coordinator, too."""

    coordinates = True

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        broker = self._connect()
        await broker.open()
        try:
            yield broker
        finally:
            await broker.close()

    @asynccontextmanager
    async def log(self) -> AsyncIterator[tuple[Any, Log]]:
        """A connection, and the log of topic t."""
        async with self.connect() as broker:
            (log,) = await broker.logs(Topics(["t"]))
            yield broker, log


async def patient(call: Callable[[], Awaitable[T]]) -> T:
    """A call that may be refused for a moment."""
    for _ in range(TIRED):
        try:
            return await call()
        except Refused as error:
            reason = error
    raise reason


def values(read: Any) -> list[Any]:
    return [seen.value for seen in published(read)]


# What was appended is read.


@check
async def what_was_appended_is_read_as_it_was(place: Place) -> None:
    """Rules 1 and 3; every column."""
    before = time.time()
    async with place.log() as (broker, log):
        writer = Writer(broker, log)
        plain = await writer.write("t", [1, "two", {"three": [3, None, b"3"]}], published_at=5.0)
        headers = ({"a": "b"}, None)
        rich = await writer.write("t", [4, 5], keys=("k", None), headers=headers)
        author = writer.author
        counted = published(await everything(broker, log))
        assert [(seen.value, seen.offset) for seen in counted] == list(
            zip([1, "two", {"three": [3, None, b"3"]}, 4, 5], plain + rich, strict=True)
        )
        assert [seen.sequence for seen in counted] == [1, 2, 3, 4, 5]
        assert {(seen.topic, seen.publisher) for seen in counted} == {("t", author.publisher)}
        assert [(seen.key, seen.headers) for seen in counted] == [
            *[(None, None)] * 3, ("k", {"a": "b"}), (None, None)
        ]  # fmt: skip
        assert [seen.published_at for seen in counted] == [5.0] * 3 + [0.0] * 2
        stored = [seen.stored_at for seen in counted]
        assert stored == sorted(stored)
        assert before - 1 <= stored[0] <= stored[-1] <= time.time() + 1


@check
async def one_order_for_every_connection(place: Place) -> None:
    """Rules 2 and 4: offsets never change, and a log is the same from every connection."""
    async with place.log() as (one, log), place.log() as (other, again):
        assert log.identity == again.identity
        writers = [Writer(one, log, "a"), Writer(other, log, "b")]
        for n in range(20):
            await writers[n % 2].write("t", [n, -n])
        read = await everything(one, log)
        assert values(read) == [sign * n for n in range(20) for sign in (1, -1)]
        assert (await everything(other, log)).seen == read.seen
        await writers[0].write("t", [99])
        after = (await everything(other, log)).seen
        assert after[: len(read.seen)] == read.seen


@check
async def writers_at_once_lose_and_double_nothing(place: Place) -> None:
    async with place.log() as (one, log), place.log() as (other, _):

        async def write(writer: Writer) -> list[int]:
            return [o for n in range(25) for o in await writer.write("t", [n])]

        writers = [Writer(one, log, "a"), Writer(other, log, "b"), Writer(other, log, "c")]
        stored = await asyncio.gather(*map(write, writers))
        counted = published(await everything(one, log))
        for writer, offsets in zip(writers, stored, strict=True):
            mine = [seen for seen in counted if seen.publisher == writer.author.publisher]
            assert [(seen.value, seen.offset) for seen in mine] == list(enumerate(offsets))
        assert len(counted) == 75


@check
async def reading_begins_at_any_offset(place: Place) -> None:
    """Rule 3: everything from there on, once, also in the middle of a run."""
    async with place.log() as (broker, log):
        writer = Writer(broker, log)
        for count in (7, 1, 3):
            await writer.write("t", list(range(count)), keys=tuple(map(str, range(count))))
        whole = (await everything(broker, log)).seen
        end = await ends(broker, log)
        for offset in range(end.first, end.stable + 1):
            part = (await everything(broker, log, offset)).seen
            assert part == [seen for seen in whole if seen.offset >= offset]
        rows = await patient(lambda: broker.read(log, end.stable + 5, 100, EVERYTHING))
        assert not rows.runs
        assert rows.upto == end.stable + 5


@check
async def reading_stops_at_about_the_limit(place: Place) -> None:
    async with place.log() as (broker, log):
        writer = Writer(broker, log)
        for n in range(40):
            await writer.write("t", [f"{n}" * 500])
        few = await everything(broker, log, limit=1)
        many = await everything(broker, log, limit=1 << 30)
        assert few.seen == many.seen
        assert few.calls >= 40
        assert many.calls < 40
        rows = await patient(lambda: broker.read(log, few.seen[0].offset, 0, EVERYTHING))
        assert rows.runs


@check
async def topics_are_chosen_by_name_and_pattern(place: Place) -> None:
    """What is not wanted is passed over; beginnings of lives always come."""
    async with place.log() as (broker, log):
        writer = Writer(broker, log)
        await patient(lambda: broker.shut(log, Author("other", 3, True)))
        for n in range(30):
            await writer.write(("t", "orders.eu", "orders.us.paid")[n % 3], [n])
        for wanted, expected in (
            (["t"], range(0, 30, 3)),
            (["orders.*"], range(1, 30, 3)),
            (["orders.>"], [n for n in range(30) if n % 3]),
            (["nothing"], []),
            (["t", "orders.us.paid"], [n for n in range(30) if n % 3 != 1]),
        ):
            for limit in (1, 1 << 20):
                read = await everything(broker, log, topics=Topics(wanted), limit=limit)
                assert [s.value for s in published(read) if s.sequence] == list(expected)
                lives = [s.epoch for s in read.seen if not s.sequence and s.publisher == "other"]
                assert lives == [3]


@check
async def a_large_append_comes_back_whole(place: Place) -> None:
    """Larger than any block, and events of the largest size."""
    async with place.log() as (broker, log):
        writer = Writer(broker, log)
        many = [{"n": n, "x": "x" * 60} for n in range(5000)]
        offsets = await writer.write("t", many, keys=tuple(f"{n}" for n in range(5000)))
        largest = b"y" * (broker.traits.event_bytes - 5)
        offsets += await writer.write("t", [largest, 1, largest])
        counted = published(await everything(broker, log))
        assert [seen.value for seen in counted] == [*many, largest, 1, largest]
        assert [seen.offset for seen in counted] == offsets
        assert [seen.sequence for seen in counted] == list(range(1, 5004))
        assert [seen.key for seen in counted[:5000]] == [f"{n}" for n in range(5000)]
        middle = offsets[2500]
        part = await everything(broker, log, middle, limit=1 << 15)
        assert [seen.offset for seen in part.seen if seen.sequence][:1] == [middle]


@check
async def runs_of_many_topics_in_one_append(place: Place) -> None:
    async with place.log() as (broker, log):
        if not broker.traits.atomic:
            return
        author = Author("p", 1, True)
        some = [
            events(author, f"t.{n}", 2 * n + 1, [n], keys=(f"{n}",) if n % 2 else None)
            for n in range(50)
        ]
        stored = await broker.append(log, author, some)
        counted = published(await everything(broker, log))
        assert [(s.topic, s.value, s.sequence, s.offset, s.key) for s in counted] == [
            (f"t.{n}", n, 2 * n + 1, stored.offsets[n], f"{n}" if n % 2 else None)
            for n in range(50)
        ]
        assert await broker.last(log, author) == 99
        for n in (7, 33):
            part = await everything(broker, log, stored.offsets[n])
            assert [s.value for s in part.seen] == list(range(n, 50))


# Ends, times, marks.


@check
async def ends_grow_and_cover_receipts(place: Place) -> None:
    """Rule 2."""
    async with place.log() as (broker, log), place.log() as (other, _):
        end = await ends(broker, log)
        assert end.first == end.stable == end.written
        writer = Writer(broker, log)
        for n in range(10):
            offsets = await writer.write("t", [n])
            after = await ends(other, log)
            assert after.first == end.first
            assert end.stable <= after.stable
            assert offsets[-1] < after.stable <= after.written
            end = after
        stranger = Log("no identity of a log", "no log")
        assert stranger.identity not in await patient(lambda: broker.settle([log, stranger]))


@check
async def a_time_is_found(place: Place) -> None:
    async with place.log() as (broker, log):
        end = await ends(broker, log)
        assert await patient(lambda: broker.at(log, 0.0)) == end.stable
        writer = Writer(broker, log)
        for n in range(8):
            await writer.write("t", [n, n])
            await asyncio.sleep(0.003)
        read = (await everything(broker, log)).seen
        for seen in read:
            first = min(other.offset for other in read if other.stored_at >= seen.stored_at)
            at = await patient(lambda seen=seen: broker.at(log, seen.stored_at))
            assert at <= first
            assert not [s for s in read if at <= s.offset < first]
        last = read[-1]
        end = await ends(broker, log)
        assert await patient(lambda: broker.at(log, last.stored_at + 100)) == end.stable
        assert await patient(lambda: broker.at(log, 0.0)) <= read[0].offset


@check
async def a_mark_tells_one_past_from_another(place: Place) -> None:
    async with place.log() as (broker, log), place.log() as (other, _):
        writer = Writer(broker, log)
        for n in range(6):
            await writer.write("t", [n])
        end = await ends(broker, log)
        marks = {}
        for offset in range(end.first, end.stable + 1):
            marks[offset] = await patient(lambda offset=offset: broker.mark(log, offset))
            assert len(marks[offset]) == 8
        assert end.mark == marks[end.stable]
        assert len({*marks.values()}) >= 7
        await writer.write("t", [7])
        for offset, mark in marks.items():
            assert await patient(lambda offset=offset: other.mark(log, offset)) == mark
        assert (await ends(other, log)).mark != end.mark
        assert await patient(lambda: broker.mark(log, end.stable + 1000)) == b""


# Authors.


@check
async def a_repeat_is_refused_or_stored(place: Place) -> None:
    async with place.log() as (broker, log), place.log() as (other, _):
        if not broker.traits.refuses_repeats:
            return
        for author in (Author("p", 1, True), Author("random", 1, False)):
            await broker.append(log, author, [events(author, "t", 1, [1, 2])])
            await broker.append(log, author, [events(author, "t", 5, [5])])
            before = await ends(broker, log)
            for repeated in (1, 4, 5):
                for some in (broker, other):
                    with pytest.raises(Refused):
                        await some.append(log, author, [events(author, "t", repeated, [0, 0])])
            assert await ends(broker, log) == before
            assert await other.last(log, author) == 5
            stored = await other.append(log, author, [events(author, "t", 6, [6])])
            assert list(stored.offsets) == [before.stable]
            with pytest.raises(Refused):
                await broker.append(log, author, [events(author, "t", 6, [6])])


@check
async def the_last_sequence_is_right_or_unknown(place: Place) -> None:
    async with place.log() as (broker, log):
        writer = Writer(broker, log)
        assert await patient(lambda: broker.last(log, Author("nobody", 1, True))) in (0, None)
        for expected in (1, 2, 3):
            await writer.write("t", [expected])
            last = await patient(lambda: broker.last(log, writer.author))
            assert last in (expected, None)
            assert last is not None or not broker.traits.refuses_repeats


@check
async def a_new_life_ends_the_old(place: Place) -> None:
    async with place.log() as (broker, log), place.log() as (other, _):
        old = Writer(broker, log)
        await old.write("t", [1])
        young = Author("p", old.author.epoch + 3, True)
        offset = await patient(lambda: other.shut(log, young))
        with pytest.raises(Replaced):
            await patient(lambda: broker.append(log, old.author, [events(old.author, "t", 9, [2])]))
        for dead in (old.author, young):
            with pytest.raises(Replaced):
                await patient(lambda dead=dead: broker.shut(log, dead))
        assert await patient(lambda: broker.last(log, young)) in (0, None)
        writer = Writer(other, log)
        writer.author = young
        await writer.write("t", [3])
        read = await everything(broker, log)
        (row,) = [s for s in read.seen if s.epoch == young.epoch and not s.sequence]
        assert (row.offset, row.publisher, row.value) == (offset, "p", None)
        assert [(s.value, s.sequence) for s in published(read) if s.sequence] == [(1, 1), (3, 1)]
        (again,) = [s for s in (await everything(broker, log, offset)).seen if not s.sequence][:1]
        assert again == row


@check
async def an_older_life_is_refused_without_a_beginning(place: Place) -> None:
    async with place.log() as (broker, log):
        if not broker.traits.atomic:
            return
        young, old = Author("p", 5, True), Author("p", 4, True)
        await broker.append(log, young, [events(young, "t", 1, [1])])
        with pytest.raises(Replaced):
            await broker.append(log, old, [events(old, "t", 2, [2])])
        with pytest.raises(Replaced):
            await broker.shut(log, old)
        assert values(await everything(broker, log)) == [1]


@check
async def what_is_no_append_is_refused_and_nothing_stored(place: Place) -> None:
    async with place.log() as (broker, log):
        me, other = Author("p", 1, True), Author("q", 1, True)
        writer = Writer(broker, log, "w")
        await writer.write("t", [0])
        before = await everything(broker, log)
        good = events(me, "t", 1, [1, 2])
        huge = b"x" * broker.traits.event_bytes
        for some in (
            [],
            [events(other, "t", 1, [1])],
            [events(Author("p", 2, True), "t", 1, [1])],
            [good, events(me, "t", 2, [2])],
            [good, events(me, "t", 1, [1])],
            [events(me, "t", 0, [1])],
            [good, events(me, "t", 3, [])],
            [good, events(me, "t", 3, [1], keys=("a", "b"))],
            [good, events(me, "t", 3, [1], headers=())],
            [good, _false(events(me, "t", 3, [1]), 2)],
            [good, _false(events(me, "t", 3, [1]), 1, b"\x01")],
            [good, _false(events(me, "t", 3, [1]), 1, b"")],
            [good, events(me, "t", 3, [1, huge])],
        ):
            with pytest.raises(Misuse):
                await patient(lambda some=some: broker.append(log, me, some))
        with pytest.raises(TooLarge):
            await patient(lambda: broker.append(log, me, [events(me, "t", 1, [huge])]))
        assert (await everything(broker, log)).seen == before.seen


def _false(run: Any, count: int, some: bytes | None = None) -> Any:
    from msgspec.structs import replace

    return replace(run, count=count, values=encode([1]) if some is None else some)
