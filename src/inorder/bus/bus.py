"""The public API: connect, publish, subscribe.

Every wait has a deadline: `deadline` seconds, unless a call says otherwise. What is not answered by
then has an unknown fate, and is said to.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from inorder.bus.host import Host
from inorder.bus.keeper import Keeper, service_names
from inorder.bus.node import Node
from inorder.bus.opening import Opening
from inorder.bus.publisher import Publisher
from inorder.bus.receipt import Receipt
from inorder.bus.replay import Replaying
from inorder.bus.store import broker_at
from inorder.bus.subscription import Subscription
from inorder.bus.tracing import LiveTrace
from inorder.bus.values import chunks, sized_value
from inorder.check.trace import Format
from inorder.content.door import topic_problem
from inorder.content.predicate import Predicate
from inorder.core.errors import InorderError, Misuse, Refused, TooLarge, Unsure
from inorder.core.limits import SUBSCRIBED_BYTES_MAX
from inorder.core.machine import Client
from inorder.core.settings import convert
from inorder.guarantee.compose import Filtering
from inorder.guarantee.registry import Guarantee, guarantee

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def connect(
    url: str,
    guarantee: str = "total",
    *,
    name: str | None = None,
    deadline: float = 10.0,
    trace: str | Path | None = None,
    trace_format: Format = "jsonl",
    **order: Any,
) -> Bus:
    """A bus at `memory://NAME` or `sqlite:///FILE.db`; open it with `async with`.

    `guarantee` is none, fifo or total, and `order` its options (`mode="tag"`, say). `name` is this
    publisher's name: give one to a program that restarts and is to be known again. With `trace`,
    what happens here is written to that folder.

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
    return Bus(url, guarantee, name, deadline, trace, trace_format, order)


class Bus:
    """A connection: publishes under one guarantee, subscribes under any."""

    def __init__(
        self,
        url: str,
        ordered: str,
        name: str | None,
        deadline: float,
        trace: str | Path | None,
        trace_format: Format,
        order: Mapping[str, Any],
    ) -> None:
        if name is not None:
            _check_name(name)
        _check_seconds("deadline", deadline)
        if not deadline:
            raise Misuse("a deadline of 0 s")
        self.name = name or f"bus-{uuid.uuid4().hex[:12]}"
        self.deadline = deadline
        self.closing = False
        self._guarantee = guarantee(ordered)
        self._options = self._options_of(self._guarantee, order)
        self._order = dict(order)
        self.trace = LiveTrace(None, "jsonl", self.name, {})
        self._trace_settings = (trace, trace_format)
        self.host = Host(broker_at(url, deadline), self._fail)
        self._keeper = Keeper(self.host, self._fail)
        self._declared: dict[str, str] = {}
        self._subscriptions: dict[str, Subscription] = {}
        # Names being claimed right now.
        self._opening: set[str] = set()
        self._leaving = False
        self._subscribed = 0
        self._calls = 0
        self._opened = False
        self._error: Exception | None = None
        self._ending: asyncio.Task[None] | None = None
        self._letting_go: asyncio.Task[None] | None = None

    def _options_of(self, ordered: Guarantee, order: Mapping[str, Any]) -> Any:
        if not isinstance(order, Mapping):
            raise Misuse(f"order holds the options of a guarantee, by name, not {order!r}")
        return ordered.log.options(convert(dict(order), ordered.options, "order"))

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
        if self._opened or self.closing:
            raise Misuse("a bus is opened once: connect anew")
        self._opened = True
        try:
            await self.host.broker.open(uuid.uuid4().hex, self.host.ring)
        except BaseException:
            self.closing = True
            raise
        try:
            folder, format = self._trace_settings
            order = {**self._order, "guarantee": self._guarantee.name}
            about = {"driver": "live", "order": order}
            await self._claim(self.name)
            self.trace = LiveTrace(folder, format, self.name, about)
            self._publisher = Publisher(
                self.host, self.name, self._guarantee, self._options, self.trace
            )
            self.host.start()
            self._keeper.start()
            await self._keeper.need(self._guarantee)
            await self._publisher.begin()
        except BaseException:
            self.closing = True
            self._ending = asyncio.create_task(self._end())
            await asyncio.shield(self._ending)
            raise

    async def close(self) -> None:
        """Wait for what is under way, then let go of everything. Who is cancelled here only stops
        waiting: closing goes on, and another `close` waits for it again."""
        if self._ending is None and self._opened and not self.closing:
            self._leaving = True
            self._ending = asyncio.create_task(self._close())
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _close(self) -> None:
        try:
            until = self.host.now() + self.deadline
            while self._error is None and self._publisher.waiting and self.host.now() < until:
                await asyncio.sleep(0.005)
            # All at once: none of them may take longer than the deadline.
            open_ = list(self._subscriptions.values())
            await asyncio.gather(*(each.close() for each in open_), return_exceptions=True)
        finally:
            self.closing = True
            self._publisher.close()
            await self._end()

    async def _end(self) -> None:
        try:
            await self._keeper.stop()
            await self.host.stop()
            await self._let_go()
            await self.host.broker.close()
        finally:
            self.trace.close(self.host.now())

    async def _let_go(self) -> None:
        """Others may have everything of ours, in one step."""
        with suppress(InorderError):  # they find out by themselves
            await self.host.broker.release(dict(self.host.owned))

    async def _claim(self, name: str) -> None:
        token = await self.host.broker.claim(name)
        if token is None:
            raise Misuse(f"{name!r} is connected already")
        self.host.owned[name] = token

    def _fail(self, error: Exception) -> None:
        """Nothing works any more: whoever waits is told."""
        if self._error is None:
            self._error = error
            self.host.halt(error)
            self._keeper.halt()
            self._letting_go = asyncio.ensure_future(self._let_go())
            self._publisher.broken(error)
            for subscription in list(self._subscriptions.values()):
                subscription.broken(error)

    # Publishing.

    async def publish(self, topic: str, value: Any, deadline: float | None = None) -> Receipt:
        """Publish one event; returns when it is accepted.

        Raises `Refused` when it did not happen and will not, `Unsure` when nobody answered within
        the deadline.
        """
        mark = self.trace.mark()
        attributes, _ = sized_value(value)
        until = self.host.now() + self._patience(deadline)
        await self._prepare(topic, until)
        done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

        def answered(receipt: Receipt) -> None:
            if not done.done():
                done.set_result(receipt)

        def failed(error: Exception) -> None:
            if not done.done():
                done.set_exception(error)

        self._publisher.hand_over(topic, [attributes], until, answered, failed, mark)
        receipt = await done
        if receipt.outcome == "refused":
            raise Refused(f"{receipt.event}: {receipt.reason}")
        if receipt.outcome == "unknown":
            raise Unsure(f"{receipt.event}: {receipt.reason}; it may have been published")
        return receipt

    async def publish_many(
        self, topic: str, values: Iterable[Any], deadline: float | None = None
    ) -> list[Receipt]:
        """Publish values in this order, many under way at a time; a receipt for each, whatever its
        outcome. The deadline is for each of them."""
        mark = self.trace.mark()
        sized = [sized_value(value) for value in values]
        patience = self._patience(deadline)
        receipts: list[Receipt] = []
        for some in chunks(sized):
            until = self.host.now() + patience
            try:
                await self._prepare(topic, until)
            except (Refused, Unsure) as error:
                # The earlier ones have their receipts; these were not even tried.
                receipts += [Receipt("", topic, "refused", str(error)) for _ in some]
                continue
            receipts += await self._publish_some(topic, some, until, mark)
        if not sized:
            self._check_open()
        return receipts

    async def _publish_some(
        self, topic: str, values: list[dict[str, Any]], until: float, mark: int
    ) -> list[Receipt]:
        receipts: list[Receipt] = []
        complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answered(receipt: Receipt) -> None:
            receipts.append(receipt)
            if len(receipts) == len(values) and not complete.done():
                complete.set_result(None)

        def failed(error: Exception) -> None:
            answered(Receipt("", topic, "refused", str(error)))

        self._publisher.hand_over(topic, values, until, answered, failed, mark)
        await complete
        return sorted(receipts, key=_place)

    async def _prepare(self, topic: str, until: float) -> None:
        self._check_open()
        if topic not in self._declared:
            _check_topic(topic)
            try:
                async with asyncio.timeout(until - self.host.now()):
                    found = await self.host.broker.declare(topic, self._guarantee.name)
            except TimeoutError:
                raise Refused(f"topic {topic!r} could not be declared in time") from None
            self._declared[topic] = found
        if self._declared[topic] != self._guarantee.name:
            has, ours = self._declared[topic], self._guarantee.name
            raise Misuse(f"topic {topic!r} is published with guarantee {has!r}, not {ours!r}")
        await self._publisher.ready(until)
        self._check_open()

    # Subscribing.

    def subscribe(
        self,
        *topics: str,
        where: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        guarantee: str | None = None,
        order: Mapping[str, Any] | None = None,
        replay: str | int | Mapping[str, int] | None = None,
        name: str | None = None,
        type: type | None = None,
        idle: float | None = None,
        **values: Any,
    ) -> Opening:
        """A subscription to some topics; enter it with `async with`, then iterate.

        `where` filters (docs/content.md); its parameters are further keywords, or `parameters` for
        those whose names are taken. `guarantee` and `order` default to the bus's. `replay` starts
        in the past: "all", an offset, or an offset for each topic. `type` is what values are
        turned into. `idle`: iteration ends when nothing has come for so many seconds.
        """
        self._check_open()
        if not topics:
            raise Misuse("subscribe names no topic")
        for topic in topics:
            _check_topic(topic)
        if (size := sum(len(topic.encode()) for topic in topics)) > SUBSCRIBED_BYTES_MAX:
            raise TooLarge("names of topics, in bytes,", size, SUBSCRIBED_BYTES_MAX)
        if idle is not None:
            _check_seconds("idle", idle)
        bound = {**(parameters or {}), **values}
        if where is None and bound:
            raise Misuse(f"parameters without a where: {', '.join(sorted(bound))}")
        if where is not None:
            Predicate.parse(where).check(bound)
        return Opening(
            self, topics, where, bound, guarantee, order, replay, name, type, idle
        )  # fmt: skip

    async def subscribed(self, opening: Opening) -> Subscription:
        """Build and open what `subscribe` describes."""
        self._check_open()
        ordered = self._guarantee if opening.guarantee is None else guarantee(opening.guarantee)
        options = self._options
        if opening.order is not None or ordered is not self._guarantee:
            options = self._options_of(ordered, opening.order or {})
        await self._check_topics(ordered, opening.topics)
        starts = await self._starts(opening.topics, opening.replay)
        self._subscribed += 1
        name = opening.name or f"{self.name}.s{self._subscribed}"
        if opening.name is not None:
            _check_name(name)
        if name in self.host.nodes or name in self._opening:
            raise Misuse(f"{name!r} is connected already")
        self._opening.add(name)
        try:
            await self._claim(name)
            try:
                subscription = await self._build(name, opening, ordered, options, starts)
            except BaseException:
                await self._release(name)
                raise
            await subscription.open()
        finally:
            self._opening.discard(name)
        return subscription

    async def _build(
        self,
        name: str,
        opening: Opening,
        ordered: Guarantee,
        options: Any,
        starts: dict[str, int] | None,
    ) -> Subscription:
        client: Client
        if starts is None:
            client = ordered.client(name, (), options)
            await self._keeper.need(ordered)
        else:
            client = Replaying(ordered.log.reader(name, options, starts))
        machine = Filtering(ordered, client)
        node = Node(name, machine, ordered, None)
        node.replay = starts or {}
        subscription = Subscription(
            self, name, opening.topics, machine, node, opening.where, opening.parameters,
            opening.type, opening.idle,
        )  # fmt: skip
        node.owner = subscription
        self._subscriptions[name] = subscription
        self.trace.reads_with(ordered.name)
        return subscription

    async def _check_topics(self, ordered: Guarantee, topics: Iterable[str]) -> None:
        """A guarantee that needs stamps needs its own; one that needs none reads anything."""
        if ordered.log.reads_any:
            return
        for topic in topics:
            found = await self.host.broker.declare(topic, ordered.name)
            self._declared[topic] = found
            if found != ordered.name:
                raise Misuse(
                    f"topic {topic!r} is published with guarantee {found!r}: it cannot be "
                    f"subscribed to with {ordered.name!r}"
                )

    async def _starts(
        self, topics: tuple[str, ...], replay: str | int | Mapping[str, int] | None
    ) -> dict[str, int] | None:
        """Where in its log each topic starts; None: at its end."""
        if replay is None:
            return None
        known = {row.topic: row for row in await self.host.broker.topics()}
        starts: dict[str, int] = {}
        for topic in topics:
            row = known.get(topic)
            first, next = (row.first, row.next) if row else (0, 0)
            if replay == "all":
                start: Any = first
            elif isinstance(replay, Mapping):
                start = replay.get(topic, next)
            else:
                start = replay
            if isinstance(start, bool) or not isinstance(start, int):
                raise Misuse(
                    f"replay is 'all', an offset or an offset for each topic, not {start!r}"
                )
            if not first <= start <= next:
                raise Misuse(f"topic {topic!r} has the offsets {first} to {next}, not {start}")
            starts[topic] = start
        if isinstance(replay, Mapping) and (other := sorted({*replay} - {*topics})):
            raise Misuse(f"replay names {other[0]!r}, which is not subscribed to")
        return starts

    async def gone(self, subscription: Subscription) -> None:
        """A subscription has ended."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            await self._release(subscription.name)

    async def _release(self, name: str) -> None:
        if self._leaving:
            return  # all of them together, at the end
        token = self.host.owned.pop(name, None)
        if token is not None and self._error is None:
            with suppress(InorderError):  # the claim ends with this process
                await self.host.broker.release({name: token})

    # For subscriptions.

    def next_call(self) -> int:
        self._calls += 1
        return self._calls

    def _patience(self, deadline: float | None) -> float:
        if deadline is None:
            return self.deadline
        _check_seconds("deadline", deadline)
        return deadline

    def _check_open(self) -> None:
        if self._error is not None:
            raise Unsure(f"the bus has failed: {self._error}") from self._error
        if not self._opened or self.closing:
            raise Misuse("the bus is not open: use `async with inorder.connect(...) as bus`")


def _check_seconds(what: str, seconds: float) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e6:
        raise Misuse(f"{what} is a number of seconds from 0 on, not {seconds!r}")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in service_names():
        raise Misuse(f"{name!r} cannot be a name: up to 64 of A-Z a-z 0-9 _ . -")


def _check_topic(topic: str) -> None:
    if not isinstance(topic, str):
        raise Misuse(f"a topic is text, not {topic!r}")
    try:
        topic.encode()
    except UnicodeEncodeError as error:
        raise Misuse(f"topic {topic!r} is not text: {error.reason}") from None
    if problem := topic_problem(topic):
        raise Misuse(problem)


def _place(receipt: Receipt) -> int:
    _, _, seq = receipt.event.rpartition(":")
    return int(seq) if seq else 2**63
