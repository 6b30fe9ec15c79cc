"""What the bus once had wrong: order, numbers, values, traces."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from math import inf, nan
from pathlib import Path

import pytest

import inorder
from inorder.bus.store.rows import Append, Turn
from inorder.bus.store.sqlite.file import File
from inorder.core import wire
from inorder.core.errors import Damaged, Misuse, Refused, TooLarge, Unsure
from inorder.core.event import Event
from inorder.guarantee.registry import guarantee
from inorder.protocols.fifo.header import Published
from inorder.protocols.total.directory import OPEN_STAGE
from tests.bus.contract_ends import failing
from tests.bus.judge import gather, judged, run, take, traces, until


def hub(folder: Path) -> str:
    return f"memory://{folder.name}"


def file(folder: Path) -> str:
    return f"sqlite:///{folder}/bus.db"


def long_names(count: int, start: int = 0) -> list[str]:
    return [f"topic-{n:04}" for n in range(start, start + count)]


def test_hold_with_a_small_buffer_loses_nothing(tmp_path):
    """What finds no room is "asked for again" (subscriber.py), but over a log nobody asks: the
    event is gone, and everything behind it waits for ever."""

    async def job() -> None:
        async with (
            inorder.connect(hub(tmp_path), buffer=1) as bus,
            bus.subscribe("a", "b") as events,
        ):
            # A slow reader: all of it comes in one window, topic by topic.
            events.has_room = lambda: False
            for n in range(6):
                await bus.publish("ba"[n % 2], {"n": n})
            del events.has_room
            bus.host.ring()
            found = [event.value["n"] for event in await take(events, 6, 1.0)]
            assert found == [0, 1, 2, 3, 4, 5]

    run(job)


@pytest.mark.parametrize("guarantee", ["none", "fifo", "total"])
def test_the_number_of_an_unknown_publication_is_not_given_to_another(tmp_path, guarantee):
    """Its turn is refused after its deadline, with the record that reserved its number, and the new
    machine begins there again. Who looks for `me:1` finds it, and it is something else."""

    async def job() -> None:
        folder = tmp_path / "trace"
        async with inorder.connect(hub(tmp_path), guarantee, name="me", trace=folder) as bus:
            broker = failing(bus)
            broker.blocked = asyncio.Event()
            with pytest.raises(Unsure, match="me:1"):
                await bus.publish("t", {"n": 1}, deadline=0.1)
            broker.error = Refused("no room")
            broker.blocked.set()
            await until(lambda: bus.host.marks.get("turn refused", 0) > 0)
            broker.error = broker.blocked = None
            assert (await bus.publish("t", {"n": 2})).event != "me:1"

    run(job)


def test_the_largest_event_finds_room_beside_its_stamp(tmp_path, monkeypatch):
    """A stamp names all topics of the file: with 3000 topics of 250 bytes an event of 400 kB had no
    room, and the bus that numbered it failed; so did whoever took over, since the request was still
    in its mail. So the names are bounded. Here everything is 256 times smaller."""
    monkeypatch.setattr(wire, "FRAME_BYTES_MAX", 4096)
    monkeypatch.setattr("inorder.bus.store.room.TOPIC_NAMES_BYTES_MAX", 1024)
    monkeypatch.setattr("inorder.bus.store.room.TOPICS_PER_BROKER_MAX", 39)

    async def job() -> None:
        url = file(tmp_path)
        async with (
            inorder.connect(url, deadline=2) as owner,
            inorder.connect(url, deadline=2) as other,
        ):
            await other.publish("t", {})
            names = [f"{n:0100}" for n in range(11)]
            for name in names[:10]:
                await (await owner.subscribe(name)).close()
            with pytest.raises(TooLarge):
                await owner.subscribe(names[10])
            for bus in (other, owner):
                assert (await bus.publish("t", {"x": "a" * 1900})).outcome == "accepted"

    run(job)


def test_a_name_may_subscribe_to_ever_other_topics(tmp_path, monkeypatch):
    """What a name ever held is remembered and visited for ever (client.py, `known`): at some time
    its walk fits into no frame, and the bus fails. SUBSCRIBED_BYTES_MAX counts only the new."""
    monkeypatch.setattr(wire, "FRAME_BYTES_MAX", 4096)

    async def job() -> None:
        url = hub(tmp_path)
        async with inorder.connect(url), inorder.connect(url, deadline=2) as bus:
            for start in range(0, 500, 50):
                async with bus.subscribe(*long_names(50, start), name="s"):
                    pass

    run(job)


def test_a_row_that_cannot_be_taken_apart_stops_its_readers_and_only_them(tmp_path):
    """`stamped` raises BadFrame, which is not Damaged: it leaves Arrivals.log and ends the bus."""

    async def job() -> None:
        async with (
            inorder.connect(file(tmp_path), "none", deadline=2) as bus,
            bus.subscribe("sound") as sound,
            bus.subscribe("odd") as odd,
        ):
            store = File(tmp_path / "bus.db")
            store.declare("odd", "fifo")
            row = wire.encode(Published(Event("p", 1, "odd", {}, 0.0), b"\xff"))
            store.write(Turn(appends=[Append("odd", row, 1)]))
            store.close()
            with pytest.raises(Damaged):
                await odd.next(2)
            await bus.publish("sound", {})
            await sound.next(2)

    run(job)


def test_the_first_events_of_a_publisher_keep_their_order_under_fifo(tmp_path):
    """Both are in one window, which is read topic by topic: the second comes first, is taken as the
    first of its publisher, and the real first is tagged, though the log had them in order."""

    async def job() -> None:
        async with (
            inorder.connect(hub(tmp_path), "fifo") as bus,
            bus.subscribe("a", "b") as events,
        ):
            await asyncio.gather(bus.publish("b", {}), bus.publish("a", {}))
            found = await take(events, 2)
            assert [(event.seq, event.in_order) for event in found] == [(1, True), (2, True)]

    run(job)


@pytest.mark.parametrize("value", [{"x": b"abc"}, {"x": [b"abc"]}, {"x": [nan]}, {"x": {1: 2}}])
def test_a_value_is_refused_or_comes_out_as_it_went_in(tmp_path, value):
    """What is not a scalar goes through JSON, which makes text of bytes and null of nan."""

    async def job() -> None:
        async with inorder.connect(hub(tmp_path), "none") as bus, bus.subscribe("t") as events:
            try:
                await bus.publish("t", value)
            except Misuse:
                return
            assert repr((await events.next(2)).value) == repr(value)

    run(job)


def test_a_topic_that_is_no_text_and_a_deadline_that_never_comes_are_misuse(tmp_path):

    async def job() -> None:
        async with inorder.connect(hub(tmp_path), "none") as bus:
            with pytest.raises(Misuse):
                bus.subscribe("\ud800")
            with pytest.raises(Misuse):
                await bus.publish("\ud800", {})
            for never in (nan, inf):
                with pytest.raises(Misuse):
                    await bus.publish("t", {}, deadline=never)

    run(job)


def test_a_change_that_nobody_waited_for_is_in_the_trace(tmp_path):
    """The machine moves the filter whether or not the caller still waits (cancelled, or past its
    deadline); the trace is told only by a caller who does, and the judges see a broken filter."""

    async def job() -> None:
        folder = tmp_path / "trace"
        async with (
            inorder.connect(hub(tmp_path), trace=folder) as bus,
            bus.subscribe("t", where="n >= :low", low=5) as events,
        ):
            broker = failing(bus)
            broker.blocked = asyncio.Event()
            publishing = asyncio.create_task(bus.publish("t", {"n": 8}))
            await until(lambda: broker.writes > 0)
            change = asyncio.create_task(events.set(low=0))
            await asyncio.sleep(0)
            change.cancel()
            await asyncio.gather(change, return_exceptions=True)
            broker.blocked.set()
            broker.blocked = None
            await publishing
            await bus.publish("t", {"n": 1})
            assert [e.value["n"] for e in await take(events, 2)] == [8, 1]
            traces([bus])
            judged(gather([folder]), "total")

    run(job)


def test_a_trace_can_be_judged_in_which_a_name_subscribes_twice(tmp_path):
    """Positions begin at 1 again under the same name: the judges refuse the whole trace."""

    async def job() -> None:
        folder = tmp_path / "trace"
        async with inorder.connect(hub(tmp_path), trace=folder) as bus:
            for n in range(2):
                async with bus.subscribe("t", name="s") as events:
                    await bus.publish("t", {"n": n})
                    await take(events, 1)
            traces([bus])
            judged(gather([folder]), "total")

    run(job)


def test_two_buses_do_not_write_one_trace(tmp_path):
    """The second wiped what the first had written."""

    async def job() -> None:
        folder = tmp_path / "trace"
        for _ in range(2):  # free again when it is closed
            async with inorder.connect(hub(tmp_path), "none", trace=folder):
                with pytest.raises(Misuse, match="another bus"):
                    await inorder.connect(hub(tmp_path), "none", trace=folder).open()

    run(job)


def test_who_reads_long_records_says_meanwhile_that_it_lives(tmp_path, monkeypatch):
    """Or another takes the service over in the middle, and so on in turns."""
    from inorder.bus import keeper

    monkeypatch.setattr(keeper, "PAUSE_S", -1.0)
    monkeypatch.setattr(keeper, "RENEW_S", -1.0)

    async def job() -> None:
        async with inorder.connect(file(tmp_path)) as bus:
            for n in range(20):
                await bus.publish("a", {"n": n})
        async with inorder.connect(file(tmp_path)) as bus, bus.subscribe("b") as events:
            renewed: list[dict[str, int]] = []
            renew = bus.host.broker.renew

            async def noted(owned: dict[str, int]) -> list[str]:
                renewed.append(owned)
                return await renew(owned)

            monkeypatch.setattr(bus.host.broker, "renew", noted)
            bus.host._drop_service(bus.host.nodes[OPEN_STAGE])
            await bus._keeper._look(guarantee("total"))
            assert sum(OPEN_STAGE in owned for owned in renewed) > 20
            await bus.publish("b", {"n": 0})
            assert (await events.next(5)).value == {"n": 0}

    run(job)


def test_who_lost_a_service_while_reading_its_records_does_not_run_it(tmp_path, monkeypatch):
    from inorder.bus import keeper

    monkeypatch.setattr(keeper, "PAUSE_S", -1.0)
    monkeypatch.setattr(keeper, "RENEW_S", -1.0)

    async def job() -> None:
        async with inorder.connect(file(tmp_path)) as bus:
            await bus.publish("a", {"n": 0})
            bus.host._drop_service(bus.host.nodes[OPEN_STAGE])
            renew = bus.host.broker.renew

            async def robbed(owned: dict[str, int]) -> list[str]:
                with closing(sqlite3.connect(tmp_path / "bus.db")) as db, db:
                    db.execute("UPDATE owners SET token = token + 1 WHERE node = ?", (OPEN_STAGE,))
                bus.host.owned.pop(OPEN_STAGE, None)
                return await renew(owned)

            monkeypatch.setattr(bus.host.broker, "renew", robbed)
            await bus._keeper._look(guarantee("total"))
            assert OPEN_STAGE not in bus.host.nodes
            monkeypatch.setattr(bus.host.broker, "renew", renew)
            await bus._keeper._look(guarantee("total"))
            assert OPEN_STAGE in bus.host.nodes
            await bus.publish("a", {"n": 1})

    run(job)


def test_subscriptions_to_other_topics_cost_no_reading(tmp_path, monkeypatch):
    async def job() -> None:
        async with inorder.connect(file(tmp_path)) as bus, AsyncExitStack() as stack:
            all_events = [
                await stack.enter_async_context(bus.subscribe(f"t{n}")) for n in range(20)
            ]
            reads = []
            log = bus.host.broker.log

            async def noted(topics, after, up_to):
                reads.append(topics)
                return await log(topics, after, up_to)

            monkeypatch.setattr(bus.host.broker, "log", noted)
            for n in range(10):
                await bus.publish(f"t{n % 2}", {"n": n})
            for n, events in enumerate(all_events[:2]):
                assert [e.value["n"] for e in await take(events, 5)] == [*range(n, 10, 2)]
            assert len(reads) < 20

    run(job)


def test_a_damaged_row_hurts_those_only_who_want_its_topic(tmp_path):
    """Though all who begin at one place read together."""

    async def job() -> None:
        async with (
            inorder.connect(file(tmp_path), "none") as bus,
            bus.subscribe("a") as whole,
            bus.subscribe("b") as damaged,
        ):
            whole.has_room = damaged.has_room = lambda: False
            for n in range(6):
                await bus.publish("ab"[n % 2], {"n": n})
            with closing(sqlite3.connect(tmp_path / "bus.db")) as db, db:
                db.execute("UPDATE log SET crc = crc + 1 WHERE topic = 'b' AND offset = 0")
            del whole.has_room, damaged.has_room
            bus.host.ring()
            assert [event.value["n"] for event in await take(whole, 3)] == [0, 2, 4]
            with pytest.raises(Damaged):
                await damaged.next(5)

    run(job)
