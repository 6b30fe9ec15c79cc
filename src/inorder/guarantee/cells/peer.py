"""A peer whose topics have places: an event is published on the topic of its cell.

The application publishes on `ticks` at (12, 31); the peer publishes on `ticks@1,3`. An event with
an area is published in each of its cells, as an event for each, and known by the first one's name.

Rule 1: all copies are launched in one step, each with the places of all (copies.py): the event is
        made at once, so it has one past and one future.
Rule 2: an event with an area waits until its peer may launch in all its cells, and every later
        publication of the peer waits behind it. So nothing is held up for ever.
Rule 3: an event with an area is accepted when the last of its copies is.

A peer becomes a source of every cell it has published in, and stays one until it crashes.

What is not covered. A publisher that crashes forgets its past: what it publishes in one cell then
may overtake what it had published in another one before. And a copy whose stamp is too large though
that of the first copy was not: its publication is refused, and the copies before it have left. When
a peer is held to be dead, some copies of an event with an area may remain and others be lost.
"""

from __future__ import annotations

from collections import deque
from typing import cast

from msgspec import Struct

from inorder.core.effect import Answer, Effect, Launched
from inorder.core.errors import Misuse, TooLarge
from inorder.core.event import Event, Scalar, event_id
from inorder.core.limits import CUBE_CALLS_MAX
from inorder.core.pack import pack, unpacker
from inorder.guarantee.cells.copies import COPIES, Copies, cell_topic, marked, shown, topic_of
from inorder.guarantee.cells.grid import Cell
from inorder.guarantee.cells.holder import Cells
from inorder.guarantee.peer import Order, Peered
from inorder.protocols.cube.messages import SOURCE
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.topic import Enter, Publish


class Later(Struct, frozen=True, array_like=True):
    """A publication that waits behind one with an area, or is one."""

    call: str
    topic: str
    value: dict[str, Scalar]
    cells: tuple[Cell, ...]


class _State(Struct):
    peer: bytes
    later: list[Later]
    copies: dict[str, str]


_unpack = unpacker(_State)


class CelledPeer(Peered):
    """A peer of an order with a grid."""

    def __init__(self, name: str, peers: Peers, options: Options, order: Order) -> None:
        if order.cells is None or not order.launches:
            raise Misuse("cells need a grid, and a guarantee that publishes without services")
        super().__init__(name, peers, options, order)
        self._grid = order.cells
        self._later: deque[Later] = deque()
        # Copies that have not been accepted, each with the name of its event.
        self._copies: dict[str, str] = {}

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        if COPIES in value:
            raise Misuse(f"an event has no attribute {COPIES!r} of its own")
        cells = self._grid.cells_of(value)
        if len(cells) == 1 and not self._later:
            return super().publish(cell_topic(topic, cells[0]), value, now)
        if len(self._later) >= CUBE_CALLS_MAX:
            raise TooLarge("publications that wait", len(self._later) + 1, CUBE_CALLS_MAX)
        self._later.append(Later(self.next_call, topic, value, tuple(cells)))
        self._calls += 1
        return self._done(now)

    def _done(self, now: float) -> list[Effect]:
        """What an input has made possible is launched before it is over."""
        while self._later and self._may_go(self._later[0], now):
            later = self._later.popleft()
            if len(later.cells) == 1:
                name = cell_topic(later.topic, later.cells[0])
                state = self._topic(name)
                state.calls.append(Publish(later.call, later.value))
                self._serve(name, state, now)
            else:
                self._launch_all(later, now)
        return [effect for each in super()._done(now) for effect in self._shown(each)]

    def _may_go(self, later: Later, now: float) -> bool:
        """Whether this peer may launch in all cells; if it is none of their sources, become one."""
        if self._flushing:
            return False
        if len(later.cells) == 1:
            return True
        names = [cell_topic(later.topic, cell) for cell in later.cells]
        for name in names:
            topic = self._topic(name)
            if topic.phase == "out" and not topic.calls:
                self._call(name, Enter(SOURCE), now)
        return all(self._is_free(name) for name in names)

    def _is_free(self, name: str) -> bool:
        """Whether what is published now is launched in the same step."""
        topic = self._topic(name)
        return not topic.calls and self._may_launch(topic)

    def _launch_all(self, later: Later, now: float) -> None:
        names = [cell_topic(later.topic, cell) for cell in later.cells]
        places = tuple(
            (*cell, self._topic(name).next) for cell, name in zip(later.cells, names, strict=True)
        )
        copies = Copies(self.next_seq, self._me, places)
        value = marked(later.value, copies)
        first = event_id(self.name, copies.first)
        for name in names:
            seq = self.next_seq
            self._copies[event_id(self.name, seq)] = first
            self._launch(name, self._topic(name), Publish(later.call, value), now)
            if self.next_seq == seq:
                # Refused; the answer is told already.
                del self._copies[event_id(self.name, seq)]
                return

    def _shown(self, effect: Effect) -> list[Effect]:
        """An effect in the words of the application."""
        if isinstance(effect, Launched):
            event = effect.event
            value, copies = shown(event.value)
            if copies is not None and copies.first != event.seq:
                return []
            topic = topic_of(event.topic)
            made = Event(event.publisher, event.seq, topic, value, event.published_at)
            return [Launched(effect.call, made)]
        if isinstance(effect, Answer) and effect.outcome == "gap":
            return cast(Cells, self.inner).gap_of(effect)
        if isinstance(effect, Answer) and effect.call in self._copies:
            first = self._copies.pop(effect.call)
            if first in self._copies.values():
                return []
            return [Answer(first, effect.outcome, effect.reason, effect.stamp)]
        return [effect]

    @property
    def idle(self) -> bool:
        return not self._later and super().idle

    # Snapshots.

    def snapshot(self) -> bytes:
        return pack(_State(super().snapshot(), list(self._later), self._copies))

    @classmethod
    def restore(cls, snapshot: bytes) -> CelledPeer:
        state: _State = _unpack(snapshot)
        peer = super().restore(state.peer)
        assert isinstance(peer, CelledPeer)
        peer._later = deque(state.later)
        peer._copies = state.copies
        return peer
