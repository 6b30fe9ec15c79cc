"""The public API: connect, publish, subscribe.

Every wait has a deadline: `deadline` seconds, unless a call says otherwise. What is not answered by
then has an unknown fate, and the caller is told so.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload
from uuid import uuid4

from inorder.brokers import broker_at
from inorder.bus.durable import Durable, key_of
from inorder.bus.lives import next_epoch
from inorder.bus.opening import Opening, Start, Wanted
from inorder.bus.publisher import Publisher
from inorder.bus.pump import Pump
from inorder.bus.receipt import Receipt, checked
from inorder.bus.starting import ended, gone_on, position_before
from inorder.bus.subscription import Ack, Filter, Subscription
from inorder.bus.untraced import NoTrace
from inorder.bus.values import encoded
from inorder.core.errors import (
    BadOption,
    Damaged,
    InorderError,
    Misuse,
    Replaced,
    UnknownName,
    Unsure,
)
from inorder.core.limits import HEADERS_BYTES_MAX, WAIT_S_MAX, WAITING_PUBLICATIONS_MAX
from inorder.logs.broker import Author
from inorder.logs.cursor import Cursor, parse
from inorder.logs.reader import Reader
from inorder.logs.topics import EVERYTHING, Topics, check_name

if TYPE_CHECKING:
    from inorder.bus.parameters import Parameters
    from inorder.bus.tracing import LiveTrace

Value = TypeVar("Value")

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# Over one log these cost the same: the log's order keeps all of them.
GUARANTEES = ("none", "fifo", "total")


def connect(
    url: str,
    guarantee: str = "total",
    *,
    name: str | None = None,
    deadline: float = 10.0,
    trace: str | Path | None = None,
    trace_format: Literal["jsonl", "parquet"] = "jsonl",
    **options: Any,
) -> Bus:
    """A bus at `memory://NAME` or `sqlite:///FILE.db`; open it with `async with`.

    `guarantee` is none, fifo or total. `name` is this publisher's name: give one to a program that
    restarts and is to be known again. With `trace`, what happens here is written to that folder.

    >>> async def main() -> list[float]:
    ...     async with connect("memory://doc") as bus:
    ...         async with bus.subscribe("orders", where="amount > :floor", floor=100) as events:
    ...             await bus.publish("orders", {"id": 17, "amount": 120.0})
    ...             await bus.publish("orders", {"id": 18, "amount": 20.0})
    ...             await bus.publish("orders", {"id": 19, "amount": 300.0})
    ...             return [(await events.next(5)).value["amount"] for _ in range(2)]
    >>> asyncio.run(main())
    [120.0, 300.0]
    """
    for option in options:
        raise BadOption(option, "a bus over a log has no such option")
    if guarantee not in GUARANTEES:
        raise UnknownName("guarantee over a log", guarantee, list(GUARANTEES))
    if name is not None:
        _check_name(name)
    _check_seconds("deadline", deadline)
    if not deadline:
        raise Misuse("a deadline of 0 s")
    return Bus(url, guarantee, name, deadline, None if trace is None else (trace, trace_format))


class Bus:
    """A connection to a log: publishes and subscribes."""

    def __init__(
        self,
        url: str,
        guarantee: str,
        name: str | None,
        deadline: float,
        trace: tuple[str | Path, Literal["jsonl", "parquet"]] | None,
    ) -> None:
        self.name = name or f"bus-{uuid4().hex[:12]}"
        self.deadline = deadline
        self.guarantee = guarantee
        self._named = name is not None
        self._broker = broker_at(url, deadline)
        self._trace_settings = trace
        self._subscribed = 0
        self._state: Literal["new", "open", "closing", "closed"] = "new"
        self._process = os.getpid()
        self._ending: asyncio.Task[None] | None = None
        self.trace: LiveTrace | NoTrace = NoTrace()

    # Coming and going.

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        if self._state != "new":
            raise Misuse("a bus is opened once: connect again")
        self._state = "open"
        try:
            await self._broker.open()
            try:
                self._begin_trace()
                logs = await self._broker.logs(EVERYTHING)
                if len(logs) != 1:
                    raise Misuse(f"there are {len(logs)} logs, and a bus reads one")
                self._log = logs[0]
                self._pump = Pump(self._broker, self._log)
                self._publisher = Publisher(
                    self._broker, self._log, self._next_life, self._pump.grown
                )
            except BaseException:
                await self._broker.close()
                raise
        except BaseException:
            self._state = "closed"
            raise

    def _begin_trace(self) -> None:
        if self._trace_settings is not None:
            from inorder.bus.tracing import LiveTrace

            folder, format = self._trace_settings
            about = {"driver": "live", "order": {"guarantee": self.guarantee}}
            self.trace = LiveTrace(folder, format, self.name, about)

    async def _next_life(self) -> tuple[Author, int]:
        """A life to publish under, and an offset below which nothing of it lies."""
        known = (await ended(self._broker, self._log)).written
        if not self._named and self._broker.traits.refuses_repeats:
            return Author(self.name), known
        assert self._broker.coordinator is not None
        while True:
            epoch = await next_epoch(self._broker.coordinator, self.name)
            author = Author(self.name, epoch, self._named)
            try:
                return author, await self._broker.shut(self._log, author)
            except Replaced:
                continue  # a later life has begun meanwhile, and nothing was published under ours

    async def close(self) -> None:
        """Wait for what is under way, then let go of everything. Who is cancelled here only stops
        waiting: closing goes on, and another `close` waits for it again."""
        if self._process != os.getpid():
            return
        if self._ending is None and self._state == "open":
            self._state = "closing"
            self._ending = asyncio.create_task(self._close())
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _close(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            until = loop.time() + self.deadline
            while self._publisher.waiting and loop.time() < until:
                await asyncio.sleep(0.002)
            subscriptions = list(self._pump.subscriptions)
            await asyncio.gather(*(each.close() for each in subscriptions), return_exceptions=True)
        finally:
            self._state = "closed"
            await self._publisher.close()
            await self._pump.stop()
            await self._broker.close()
            self.trace.close()

    def check_process(self) -> None:
        if self._process != os.getpid():
            raise Misuse("the bus belongs to the process that was forked: connect again")

    def _check_open(self) -> None:
        self.check_process()
        if self._state != "open":
            how = "use `async with`" if self._state == "new" else "it was closed"
            raise Misuse(f"the bus is not open: {how}")

    # Publishing.

    async def publish(
        self,
        topic: str,
        value: Any,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Receipt:
        """Publish one event; returns when it is stored.

        Raises `Refused` when it did not happen and will not, `Unsure` when no answer came within
        the deadline.
        """
        self._check_open()
        check_name(topic)
        _check_facts(key, headers)
        [(array, _)] = encoded([value])
        keys = None if key is None else (key,)
        [receipt] = await self._publish(
            topic, array, 1, self._patience(deadline), keys, (headers,) if headers else None
        )
        if receipt.outcome == "refused" and isinstance(self._publisher.error, Replaced | Damaged):
            raise self._publisher.error
        return checked(receipt)

    async def publish_many(
        self,
        topic: str,
        values: Iterable[Any],
        *,
        keys: Sequence[str | None] | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> list[Receipt]:
        """Publish values in this order, many under way at a time; a receipt for each, whatever its
        outcome. The deadline is for each of them, `headers` are for all of them."""
        self._check_open()
        check_name(topic)
        for key in keys or ():
            _check_facts(key, None)
        _check_facts(None, headers)
        patience = self._patience(deadline)
        runs = list(encoded(values))
        total = sum(count for _, count in runs)
        if keys is not None and len(keys) != total:
            raise Misuse(f"{len(keys)} keys for {total} values")
        receipts: list[Receipt] = []
        under_way: deque[tuple[asyncio.Future[list[Receipt]], int]] = deque()
        place = waiting = 0
        for array, count in runs:
            while under_way and waiting + count > EVENTS_AT_ONCE:
                answers, told = under_way.popleft()
                receipts += await answers
                waiting -= told
            waiting += count
            some = None if keys is None else tuple(keys[place : place + count])
            shared = None if not headers else (headers,) * count
            answers = self._publish(topic, array, count, patience, some, shared)
            under_way.append((answers, count))
            place += count
        for answers, _ in under_way:
            receipts += await answers
        return receipts

    def _publish(
        self,
        topic: str,
        array: bytes,
        count: int,
        patience: float,
        keys: tuple[str | None, ...] | None,
        headers: tuple[Mapping[str, str] | None, ...] | None,
    ) -> asyncio.Future[list[Receipt]]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[list[Receipt]] = loop.create_future()
        published_at = time.time()
        mark = self.trace.mark()

        def told(receipts: list[Receipt]) -> None:
            self.trace.published(receipts, array, published_at, mark)
            if not done.done():
                done.set_result(receipts)

        try:
            self._publisher.publish(
                topic, array, count, published_at, loop.time() + patience, told, keys, headers
            )
        except InorderError as error:
            refused = Receipt(topic, self.name, 0, 0, "refused", reason=str(error))
            done.set_result([refused] * count)
        return done

    # Subscribing.

    @overload
    def subscribe(
        self, *topics: str | Parameters, type: type[Value], **settings: Any
    ) -> Opening[Value]: ...

    @overload
    def subscribe(
        self, *topics: str | Parameters, type: None = None, **settings: Any
    ) -> Opening[Any]: ...

    def subscribe(
        self,
        *topics: str | Parameters,
        where: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        start: Start = "latest",
        durable: str | None = None,
        ack: Ack = "next",
        removed: Literal["raise", "tell"] = "raise",
        name: str | None = None,
        type: type[Any] | None = None,
        idle: float | None = None,
        **values: Any,
    ) -> Opening[Any]:
        """A subscription to some topics or patterns; enter it with `async with`, then iterate.

        `where` filters (docs/content.md); its parameters are further keywords, or `parameters` for
        those whose names are taken. A `Parameters` object stands for topics, filter and values, and
        assigning one of its fields moves the filter. `start` is latest, earliest, a position or a
        cursor (reading goes on above it), or an aware datetime. Under a `durable` name a program
        goes on where it was; what it was handed is done when it asks for the next event, or, with
        `ack="manual"`, when it says so. `type` is what values are turned into. `idle`: iteration
        ends when nothing has come for so many seconds.
        """
        self._check_open()
        monitor, names = _split(topics, where)
        if monitor is not None:
            names, where, values = monitor.topics, monitor.where, {**monitor.values, **values}
        bound = {**(parameters or {}), **values}
        if where is None and bound:
            name_of_it = min(bound)
            raise BadOption(name_of_it, "subscribe has no such option, and without a where it is "
                            "no parameter of a filter either")  # fmt: skip
        if not names:
            raise Misuse("subscribe names no topic")
        if idle is not None:
            _check_seconds("idle", idle)
        for label in (name, durable):
            if label is not None:
                _check_name(label)
        _check_choice("ack", ack, ("next", "manual"))
        _check_choice("removed", removed, ("raise", "tell"))
        if durable is None and ack == "manual":
            raise BadOption("ack", 'ack="manual" is for a subscription with a durable name')
        if durable is not None and not self._broker.traits.shares:
            raise BadOption("durable", "nothing outlives this broker: use a file")
        filtered = None if where is None else Filter(where, bound)
        wanted = Wanted(
            Topics(names), filtered, start, durable, ack, removed, name or durable, type, idle
        )
        return Opening(self, wanted, monitor)

    async def begun(self, wanted: Wanted) -> Subscription[Any]:
        """Begin what `subscribe` describes; it stands when this returns."""
        self._check_open()
        try:
            async with asyncio.timeout(self.deadline):
                return await self._begun(wanted)
        except TimeoutError:
            raise Unsure(f"subscribe: no answer in {self.deadline:g} s") from None

    async def _begun(self, wanted: Wanted) -> Subscription[Any]:
        self._subscribed += 1
        name = wanted.name or f"{self.name}.s{self._subscribed}"
        durable: Durable | None = None
        broken: list[Exception] = []
        holder: list[Subscription[Any]] = []

        def failed(error: Exception) -> None:
            broken.append(error)
            for subscription in holder:
                subscription.broken(error)

        if wanted.durable is not None:
            durable = await self._durable(wanted, failed)
            position = durable.position
        else:
            position = await position_before(self._broker, self._log, wanted.start)
        judge = None if wanted.filter is None else wanted.filter.judge
        reader = Reader(wanted.topics, self._log.identity, position, judge, wanted.kind)
        subscription: Subscription[Any] = Subscription(
            self, name, reader, wanted.filter, wanted.idle, wanted.removed, durable
        )
        holder.append(subscription)
        for error in broken:
            subscription.broken(error)
        values = {} if wanted.filter is None else wanted.filter.values
        where = None if wanted.filter is None else wanted.filter.where
        self.trace.begins(name)
        self.trace.subscribed(name, wanted.topics.wanted, where, values, 0)
        self._pump.add(subscription)
        return subscription

    async def _durable(self, wanted: Wanted, failed: Any) -> Durable:
        """The position stored under this name, or where it begins; other readers end here."""
        assert wanted.durable is not None
        broker, log, name = self._broker, self._log, wanted.durable
        coordinator = broker.coordinator
        assert coordinator is not None
        epoch = await next_epoch(coordinator, f"reader/{name}")
        stored = await coordinator.get(key_of(name))
        if stored is None:
            position = await position_before(broker, log, wanted.start)
            cursor = Cursor(log.identity, position, b"")
        else:
            cursor = parse(stored[0].decode())
            end = await ended(broker, log)
            await gone_on(broker, log, cursor, end)
        digest = await broker.mark(log, cursor.position + 1)
        cursor = Cursor(log.identity, cursor.position, digest or b"", cursor.born)
        await coordinator.put(key_of(name), str(cursor).encode(), epoch)

        async def mark(offset: int) -> bytes | None:
            return await broker.mark(log, offset)

        return Durable(coordinator, name, epoch, cursor, wanted.ack, mark, failed)

    # What subscriptions say.

    def reads(self) -> None:
        """A subscription wants to read on."""
        self._pump.ring()

    def gone(self, subscription: Subscription[Any]) -> None:
        self._pump.remove(subscription)

    def _patience(self, deadline: float | None) -> float:
        if deadline is None:
            return self.deadline
        _check_seconds("deadline", deadline)
        return deadline


# Events of one `publish_many` that are under way together: enough for several transactions, and
# room for other callers.
EVENTS_AT_ONCE = WAITING_PUBLICATIONS_MAX // 4


def _split(
    topics: Sequence[str | Parameters], where: str | None
) -> tuple[Parameters | None, tuple[str, ...]]:
    """A `Parameters` object, if that is what was given, and the names of topics."""
    names = tuple(each for each in topics if isinstance(each, str))
    if len(names) == len(topics):
        return None, names
    monitors = [each for each in topics if not isinstance(each, str)]
    if not all(hasattr(each, "attach") for each in monitors):
        raise Misuse("topics are texts, or one Parameters object")
    if len(monitors) != 1 or names or where is not None:
        raise Misuse("a Parameters object brings its own topics and filter: give it alone")
    return monitors[0], ()


def _check_facts(key: str | None, headers: Mapping[str, str] | None) -> None:
    if key is not None and not isinstance(key, str):
        raise Misuse(f"a key is a text, not {key!r}")
    size = len(key or "")
    for name, text in (headers or {}).items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise Misuse("headers are texts by name")
        size += len(name) + len(text)
    if size > HEADERS_BYTES_MAX:
        raise Misuse(f"key and headers of {size} characters, the limit is {HEADERS_BYTES_MAX}")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Misuse(f"name {name!r}: up to 64 letters, digits, dots, dashes or underscores")


def _check_seconds(what: str, value: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or not 0 <= value <= WAIT_S_MAX:
        raise Misuse(f"{what}={value!r}: seconds, from 0 to {WAIT_S_MAX:g}")


def _check_choice(option: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadOption(option, f"{value!r} is not one of {', '.join(allowed)}")
