"""What the broker has for the machines of this process: mail, and rows of topic logs.

Rule 1: a machine reads the log in windows of ids, topic by topic within a window: like on any
        broker, topics are independent, and who reads later sees another mixture. Only who reads
        the past gets it in the order in which it was written: a reader asks nobody where topics
        begin. So does a guarantee that asks for it (`by_topic`), because it takes a publisher's
        first event as it comes.
Rule 2: a machine whose application has no room reads nothing. The log keeps it.
Rule 3: a row is read and decoded once, however many machines of this process want it, and whatever
        other topics they want. What is damaged hurts only those who want it.
Rule 4: places change between two windows only. So a topic joined is read from the place it was
        joined at, whatever else is being read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from inorder.bus.node import Node
from inorder.bus.store.broker import Broker
from inorder.bus.store.rows import LogRow, MailRow
from inorder.core.errors import BadFrame, Damaged, Refused
from inorder.core.limits import LOG_BYTES_AT_ONCE, LOG_EVENTS_AT_ONCE, LOG_ROWS_AT_ONCE
from inorder.core.wire import Decoder
from inorder.guarantee.registry import Guarantee, guarantee

# Events and bytes of rows kept decoded: a window, for those who read it a little later.
DECODED_EVENTS_MAX = 2 * LOG_EVENTS_AT_ONCE
DECODED_BYTES_MAX = 2 * LOG_BYTES_AT_ONCE

Window = tuple[list[LogRow], int]
Messages = list[tuple[str, Any]]


class Arrivals:
    """Where every machine has got to."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # Somebody may have written something.
        self.expected = False
        self._last_id = 0
        self._joining: list[tuple[Node, str]] = []
        self._decoded: OrderedDict[int, tuple[LogRow, Any]] = OrderedDict()
        self._decoded_events = 0
        self._decoded_bytes = 0
        self._guarantees: dict[str, tuple[Guarantee, Decoder]] = {}

    def wrote(self, last_id: int) -> None:
        """We ourselves have put rows into the log."""
        self._last_id = max(self._last_id, last_id)

    def behind(self, nodes: Mapping[str, Node]) -> bool:
        """Whether there is more to read for somebody who has room."""
        return bool(self.expected or self._joining) or any(
            self._may_read(node) for node in nodes.values()
        )

    def _may_read(self, node: Node) -> bool:
        if not node.joined or node.read_up_to >= self._last_id:
            return False
        return node.owner is None or node.owner.has_room()

    # Joining.

    def join(self, node: Node, topic: str) -> None:
        """Ask for a topic; `joins` says when it is read."""
        self._joining.append((node, topic))

    async def joins(self) -> list[tuple[Node, str]]:
        """The topics that are read from now on: from here, or from where their past is wanted."""
        if not self._joining:
            return []
        _, last_id = await self._broker.news([])
        done: list[tuple[Node, str]] = []
        self.expected = True
        while self._joining:
            node, topic = self._joining[0]
            behind = last_id
            if topic in node.replay:
                try:
                    first = await self._broker.id_of(topic, node.replay[topic])
                except Refused:
                    if done:
                        return done  # the rest comes later
                    raise
                behind = behind if first is None else first - 1
            self._begin(node, topic, behind)
            done.append(self._joining.pop(0))
        return done

    def _begin(self, node: Node, topic: str, behind: int) -> None:
        if not node.joined:
            node.read_up_to = behind
        node.joined[topic] = behind
        # Who joins an older place reads from there; what it has of other topics it has.
        if behind < node.read_up_to:
            for other in node.joined:
                if other != topic:
                    node.joined[other] = max(node.joined[other], node.read_up_to)
            node.read_up_to = behind

    # Mail.

    async def mail(self, nodes: Mapping[str, Node]) -> list[MailRow]:
        """What has come for these machines. It is there until the turn that takes it is written."""
        if not self.expected:
            return []
        self.expected = False
        try:
            found, last_id = await self._broker.news(list(nodes))
        except BaseException:
            self.expected = True
            raise
        self._last_id = max(self._last_id, last_id)
        # There may be more than came at once.
        self.expected = self.expected or bool(found)
        return found

    # The log.

    async def log(self, nodes: Mapping[str, Node]) -> list[tuple[Node, Messages | Damaged]]:
        """For each machine the next messages of its topics, or why they cannot be read."""
        found: list[tuple[Node, Messages | Damaged]] = []
        readers = [node for node in nodes.values() if self._may_read(node)]
        wanted: dict[int, set[str]] = {}
        for node in readers:
            wanted.setdefault(node.read_up_to, set()).update(node.joined)
        windows: dict[int, Window | None] = {}
        for node in readers:
            try:
                after = node.read_up_to
                if after not in windows:
                    windows[after] = await self._shared(sorted(wanted[after]), after)
                window = windows[after] or await self._window(sorted(node.joined), after)
                found.append((node, await self._next(node, *window)))
            except Damaged as error:
                found.append((node, error))
            except Refused:
                if found:
                    return found  # the others come later
                raise
        return found

    async def _window(self, topics: Sequence[str], after: int) -> Window:
        """Rows of these topics behind an id, and how far they reach."""
        up_to = min(self._last_id, after + LOG_ROWS_AT_ONCE)
        return _first_events(*await self._broker.log(topics, after, up_to))

    async def _shared(self, topics: Sequence[str], after: int) -> Window | None:
        """One window for all who begin there; None if each must see for itself."""
        try:
            return await self._window(topics, after)
        except Damaged:
            return None

    async def _next(self, node: Node, rows: list[LogRow], up_to: int) -> Messages:
        rows = [row for row in rows if row.topic in node.joined]
        if not node.replay and node.ordered.log.by_topic:
            rows = sorted(rows, key=_topic)  # keeps the order within a topic
        messages: Messages = []
        for row in rows:
            if row.topic not in self._guarantees:
                await self._learn()
            if row.id > node.joined[row.topic]:
                messages += self._messages(node, row)
        node.read_up_to = up_to
        return messages

    def _messages(self, node: Node, row: LogRow) -> Messages:
        """The row as this machine wants it: as it is, or event by event without its stamps."""
        ordered, message = self._decode(row)
        log = ordered.log
        start = node.replay.get(row.topic, 0)
        if node.owner is not None:
            node.owner.received(row.offset, log.events(message), len(row.message))
        if node.ordered.name == ordered.name and start <= row.offset:
            return [(log.source(message), message)]
        # Event by event: for those who need no stamps, or begin in the middle of a message.
        restamped = node.ordered.log.restamped
        source = log.source(message)
        try:
            return [
                (source, restamped(event, stamp))
                for offset, (event, stamp) in enumerate(log.stamped(message), row.offset)
                if offset >= start
            ]
        except BadFrame as error:
            raise _damaged(row, error) from None

    def _decode(self, row: LogRow) -> tuple[Guarantee, Any]:
        ordered, decoder = self._guarantees[row.topic]
        if known := self._decoded.get(row.id):
            return ordered, known[1]
        try:
            message = decoder.decode(row.message)
        except BadFrame as error:
            raise _damaged(row, error) from None
        self._decoded[row.id] = (row, message)
        self._decoded_events += row.count
        self._decoded_bytes += len(row.message)
        while self._decoded_events > DECODED_EVENTS_MAX or self._decoded_bytes > DECODED_BYTES_MAX:
            _, (old, _) = self._decoded.popitem(last=False)
            self._decoded_events -= old.count
            self._decoded_bytes -= len(old.message)
        return ordered, message

    async def _learn(self) -> None:
        """There are topics we do not know."""
        for row in await self._broker.topics():
            ordered = guarantee(row.guarantee)
            self._guarantees[row.topic] = (ordered, Decoder(ordered.log.messages))


def _topic(row: LogRow) -> str:
    return row.topic


def _damaged(row: LogRow, error: BadFrame) -> Damaged:
    return Damaged(f"topic {row.topic}", f"offset {row.offset}: {error}")


def _first_events(rows: list[LogRow], reached: int) -> Window:
    """The first rows, with so many events at most (but one row at least), and their end."""
    events = 0
    for place, row in enumerate(rows):
        events += row.count
        if events > LOG_EVENTS_AT_ONCE and place:
            return rows[:place], rows[place - 1].id
    return rows, reached
