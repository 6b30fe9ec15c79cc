"""What the broker has for the machines of this process: mail, and rows of topic logs.

Rule 1: a machine reads the log in windows of ids, topic by topic within a window: like on any
        broker, topics are independent, and who reads later sees another mixture.
Rule 2: a machine whose application has no room reads nothing. The log keeps it.
Rule 3: a row is decoded once, however many machines of this process read it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from inorder.errors import BadFrame, Damaged
from inorder.guarantee import Guarantee, guarantee
from inorder.limits import LOG_EVENTS_AT_ONCE, LOG_ROWS_AT_ONCE
from inorder.live.broker import Broker
from inorder.live.node import Node
from inorder.store.rows import LogRow, MailRow
from inorder.wire import Decoder

# Rows kept decoded: a window, for those who read it a little later.
DECODED_ROWS_MAX = 2 * LOG_ROWS_AT_ONCE


class Arrivals:
    """Where every machine has got to."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # Somebody may have written something.
        self.expected = False
        self._last_id = 0
        self._decoded: OrderedDict[int, Any] = OrderedDict()
        self._guarantees: dict[str, tuple[Guarantee, Decoder]] = {}

    def wrote(self, last_id: int) -> None:
        """We ourselves have put rows into the log."""
        self._last_id = max(self._last_id, last_id)

    def behind(self, nodes: Mapping[str, Node]) -> bool:
        """Whether there is more to read for somebody who has room."""
        return self.expected or any(
            node.joined and node.read_up_to < self._last_id and self._has_room(node)
            for node in nodes.values()
        )

    async def join(self, node: Node, topic: str) -> None:
        """Read a topic from here on, or from where its past is wanted."""
        _, behind = await self._broker.news([])
        if topic in node.replay:
            first = await self._broker.id_of(topic, node.replay[topic])
            behind = behind if first is None else first - 1
        if not node.joined:
            node.read_up_to = behind
        node.joined[topic] = behind
        # Who joins an older place reads from there; what it has of other topics it has.
        if behind < node.read_up_to:
            for other in node.joined:
                if other != topic:
                    node.joined[other] = max(node.joined[other], node.read_up_to)
            node.read_up_to = behind

    async def mail(self, nodes: Mapping[str, Node]) -> list[MailRow]:
        """What has come for these machines. It is there until the turn that takes it is written."""
        if not self.expected:
            return []
        self.expected = False
        found, last_id = await self._broker.news(list(nodes))
        self._last_id = max(self._last_id, last_id)
        # There may be more than came at once.
        self.expected = self.expected or bool(found)
        return found

    async def log(
        self, nodes: Mapping[str, Node]
    ) -> list[tuple[Node, list[tuple[str, Any]] | Damaged]]:
        """For each machine the next messages of its topics, or why they cannot be read."""
        found: list[tuple[Node, list[tuple[str, Any]] | Damaged]] = []
        for node in list(nodes.values()):
            if node.joined and node.read_up_to < self._last_id and self._has_room(node):
                try:
                    found.append((node, await self._window(node)))
                except Damaged as error:
                    found.append((node, error))
        return found

    async def _window(self, node: Node) -> list[tuple[str, Any]]:
        after = node.read_up_to
        up_to = min(self._last_id, after + LOG_ROWS_AT_ONCE)
        rows = await self._broker.log(sorted(node.joined), after, up_to)
        if sum(row.count for row in rows) > LOG_EVENTS_AT_ONCE:
            rows, up_to = _first_events(rows, LOG_EVENTS_AT_ONCE)
        node.read_up_to = up_to
        messages: list[tuple[str, Any]] = []
        for row in rows:
            if row.id > node.joined.get(row.topic, row.id):
                messages += await self._messages(node, row)
        return messages

    async def _messages(self, node: Node, row: LogRow) -> list[tuple[str, Any]]:
        """The row as this machine wants it: as it is, or event by event without its stamps."""
        ordered, decoder = await self._guarantee(row.topic)
        message = self._decoded.get(row.id)
        if message is None:
            try:
                message = decoder.decode(row.message)
            except BadFrame as error:
                raise Damaged(f"topic {row.topic}", f"offset {row.offset}: {error}") from None
            self._decoded[row.id] = message
            if len(self._decoded) > DECODED_ROWS_MAX:
                self._decoded.popitem(last=False)
        start = node.replay.get(row.topic, 0)
        if node.owner is not None:
            node.owner.received(row.offset, ordered.log.events(message))
        if node.ordered.name == ordered.name and start <= row.offset:
            return [(ordered.log.source(message), message)]
        # Event by event: for those who need no stamps, or begin in the middle of a message.
        restamped = node.ordered.log.restamped
        source = ordered.log.source(message)
        return [
            (source, restamped(event, stamp))
            for offset, (event, stamp) in enumerate(ordered.log.stamped(message), row.offset)
            if offset >= start
        ]

    async def _guarantee(self, topic: str) -> tuple[Guarantee, Decoder]:
        if topic not in self._guarantees:
            for row in await self._broker.topics():
                ordered = guarantee(row.guarantee)
                self._guarantees[row.topic] = (ordered, Decoder(ordered.log.messages))
        return self._guarantees[topic]

    def _has_room(self, node: Node) -> bool:
        return node.owner is None or node.owner.has_room()


def _first_events(rows: list[LogRow], limit: int) -> tuple[list[LogRow], int]:
    """The rows that were committed first, with so many events at most (but one row at least), and
    the id of the last of them."""
    events = 0
    up_to = 0
    for id, count in sorted((row.id, row.count) for row in rows):
        events += count
        if events > limit and up_to:
            break
        up_to = id
    return [row for row in rows if row.id <= up_to], up_to
