"""Clients with a defect that was published, or with one rule less: each must be noticed."""

from __future__ import annotations

from typing import Any

from inorder.core.effect import Effect
from inorder.core.place import Origin, Place, Places
from inorder.protocols.causal import Client, Options, Published
from inorder.protocols.causal.barrier import Barrier
from inorder.protocols.causal.messages import Others
from inorder.protocols.causal.order import Order
from inorder.protocols.causal.session import Session
from inorder.protocols.causal.stamp import Stamps
from inorder.protocols.causal.whole import Whole


class DoesNotWaitForUnheard(Client):
    """P1, the text: a publisher begins with what is heard of it first; nobody waits before."""

    def begins(self, origin: Origin, start: int, counts: int, now: float) -> list[Effect]:
        return []

    def placed(self, place: Place, source: str, message: Any, now: float) -> list[Effect]:
        session = self._order.sessions.get(place[0][0])
        if session is not None and session.joined and not session.due[place[0][1]]:
            session.begins(place[0][1], place[1], place[1])
        return super().placed(place, source, message, now)


class _WaitingOrder(Order):
    def missing(self, session: Session, place: Place, message: Published) -> Place | None:
        for origin, number in message.places:
            if not session.due[origin]:
                return (place[0][0], origin), number
        return super().missing(session, place, message)


class WaitsForUnheard(DoesNotWaitForUnheard):
    """P1b, the listing: what is named is waited for, whoever it is of."""

    def __init__(self, name: str, topics: Any = (), options: Options | None = None) -> None:
        super().__init__(name, topics, options)
        self._order = _WaitingOrder(self._stamps)


class IgnoresCounts(Client):
    """P14, one wave: everything that is addressed to this client is handed over."""

    def begins(self, origin: Origin, start: int, counts: int, now: float) -> list[Effect]:
        return super().begins(origin, start, start, now)


class ClearsBarrier(Client):
    """P18: who leaves a topic forgets its past there."""

    def unsubscribe(self, call: str, topics: Any, now: float) -> list[Effect]:
        effects = super().unsubscribe(call, topics, now)
        for topic in topics:
            self._stamps.tables.pop(topic, None)
        return effects


class _EmptiedStamps(Barrier):
    def taken_in(self, origin: Origin, number: int, message: Published) -> None:
        super().taken_in(origin, number, Published(message.event))


class MutatesStamp(Client):
    """P10: the test deletes from the stamp what has come, and an empty stamp prunes nothing."""

    def __init__(self, name: str, topics: Any = (), options: Options | None = None) -> None:
        super().__init__(name, topics, options)
        self._stamps = _EmptiedStamps()
        self._order = Order(self._stamps)


class _RawOrder(Order):
    def expanded(self, place: Place) -> Places | None:
        message = self.held.get(place)
        return () if message is None else message.places


class ReadsRawClocks(Client):
    """A5: what is not in a compressed clock is read as nothing."""

    def __init__(self, name: str, topics: Any = (), options: Options | None = None) -> None:
        super().__init__(name, topics, options)
        self._order = _RawOrder(self._stamps)


class _DirectAcross(Stamps):
    """The direct causes, over all topics."""

    def stamp(self, topic: str) -> tuple[Places, Others]:
        pairs = self.packed()
        own = self.own.get(topic)
        places = tuple(pair for pair in pairs.pop(topic, ()) if pair[0] != own)
        return places, tuple(sorted(pairs.items()))

    def launched(self, origin: Origin, number: int) -> None:
        self.tables = {}
        self.own[origin[0]] = origin[1]
        self.table(origin[0])[origin[1]] = number

    def taken_in(self, origin: Origin, number: int, message: Published) -> None:
        for topic, places in ((origin[0], message.places), *message.others):
            last = self.table(topic)
            for peer, cause in places:
                if 0 < last[peer] <= cause:
                    last[peer] = 0
        self.table(origin[0])[origin[1]] = number


class DirectAcross(Client):
    """Direct barriers across topics: a chain breaks at a topic that the receiver does not hold."""

    def __init__(self, name: str, topics: Any = (), options: Options | None = None) -> None:
        super().__init__(name, topics, options)
        self._stamps = _DirectAcross()
        self._order = Order(self._stamps)


class _Reachless(Whole):
    def reached(self, topic: str) -> Places:
        return ()


class JoinsBlindly(Client):
    """Whole stamps without Rule 2 of whole.py: what counts for the network is handed over."""

    def __init__(self, name: str, topics: Any = (), options: Options | None = None) -> None:
        super().__init__(name, topics, options)
        self._stamps = _Reachless()
        self._order = Order(self._stamps)
