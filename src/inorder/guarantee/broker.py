"""A content broker on links that lose, and that may crash: the broker's machine over lines.

Rule 1: its neighbours are given, as in a configuration; its clients are those that attached. Its
        life and the names of its clients are all that it keeps on disk.
Rule 2: after a crash it greets both. What it had forgotten comes back link by link
        (content/repair.py), and events that were under way come again (lines.py).
Rule 3: an event waits for a neighbour until that has been told of the topic, and for a client until
        that has said what it wants. One that a neighbour can never take is given up and counted.
Rule 4: a message that is not in order is noted and counts as come: its session goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct

from inorder.content.broker import Broker
from inorder.content.messages import Adv, Attach, Hello, Pub
from inorder.content.repair import TIMER as PATIENCE
from inorder.core.effect import Effect, Note, Persist, Send
from inorder.core.errors import BadMessage, Misuse, PeerFault
from inorder.core.pack import pack, unpacker
from inorder.guarantee.lines import GREET, Lines
from inorder.protocols.session.book import RESEND
from inorder.protocols.session.lives import Greeting
from inorder.protocols.session.messages import Ack, Frame


class Lived(Struct, frozen=True, gc=False, tag="lived"):
    """A life has begun."""

    life: int


class Knows(Struct, frozen=True, gc=False, tag="knows"):
    """A client hangs here, or does not any more."""

    client: str
    here: bool


_unpack = unpacker(Lived | Knows)


class LinkedBroker:
    """The machine of a broker's process."""

    def __init__(self, broker: Broker, neighbours: Sequence[str], resend_s: float = 0.5) -> None:
        self.broker = broker
        self._neighbours = tuple(sorted(neighbours))
        self._clients: dict[str, bool] = {}
        self._lines = Lines(broker.name, 1, resend_s, self._may_go)
        # Of the present sessions: neighbours that were greeted, topics each was told of, and
        # clients that have said what they want.
        self._greeted: dict[str, bool] = {}
        self._advertised: dict[str, dict[str, bool]] = {}
        self._attached: dict[str, bool] = {}

    # Beginning.

    def begin(self, now: float) -> list[Effect]:
        life = self._lines.life
        effects: list[Effect] = [Persist(pack(Lived(life)))]
        clients = tuple(sorted(self._clients))
        if life > 1:
            effects += self.broker.recover(self._neighbours, clients)
        for peer in (*self._neighbours, *clients):
            effects += self._lines.greet(peer)
        return effects

    def replay(self, record: bytes) -> None:
        entry = _unpack(record)
        if isinstance(entry, Lived):
            self._lines.life = entry.life + 1
        elif entry.here:
            self._clients[entry.client] = True
        else:
            self._clients.pop(entry.client, None)

    def resume(self, now: float) -> list[Effect]:
        return self.begin(now)

    # Inputs.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if not isinstance(message, Frame | Ack | Greeting):
            raise BadMessage(source, f"{type(message).__name__} is nothing for {self.broker.name}")
        begins, effects = self._lines.hear(source, message)
        if begins:
            effects += self._begin_link(source, now)
        # A client that asks on and on, and acknowledges no answer. (Two brokers that did not listen
        # to each other would wait for ever.)
        deaf = source not in self._neighbours and self._lines.is_overfull(source)
        for number, body in self._lines.take(source, message, now, not deaf):
            effects += self._handle(source, number, body, now)
        return [*effects, *self._lines.flush(now)]

    def _begin_link(self, source: str, now: float) -> list[Effect]:
        self._attached.pop(source, None)
        if source not in self._neighbours:
            return []
        self._greeted.pop(source, None)
        self._advertised.pop(source, None)
        try:
            return self._out(self.broker.renew(source, now))
        except Misuse as error:
            return [Note("link_refused", str(error))]

    def _handle(self, source: str, number: int, body: Any, now: float) -> list[Effect]:
        passing: AbstractContextManager[None] = nullcontext()
        if type(body) is Pub:
            passing = self._lines.passing(source, number, body)
        try:
            if type(body) is Hello and source not in self._neighbours:
                raise BadMessage(source, "greets as a broker and is no neighbour")
            with passing:
                effects = self._out(self.broker.receive(source, body, now))
        except PeerFault as error:
            return [Note("bad_frame", str(error))]
        if type(body) is Attach:
            return [*self._attach(source, body), *effects]
        if type(body) is Hello:
            topics = self._advertised.get(source, {})
            self._give_up(source, lambda pub: pub.topic not in topics)
        return effects

    def _attach(self, source: str, attach: Attach) -> list[Effect]:
        """A client has begun to say what it wants; one that wants nothing has forgotten all."""
        self._attached[source] = True
        if not attach.sids:
            self._lines.purge(source, lambda pub: True)
        self._lines.drain(source)
        if source in self._clients:
            return []
        self._clients[source] = True
        return [Persist(pack(Knows(source, True)))]

    def _out(self, effects: list[Effect]) -> list[Effect]:
        """What the broker says goes into the sessions."""
        left: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send):
                self._say(effect.target, effect.message)
            else:
                left.append(effect)
        return left

    def _say(self, peer: str, message: Any) -> None:
        kind = type(message)
        if peer in self._neighbours and kind is not Pub:
            if kind is Hello:
                self._greeted[peer] = True
            elif peer not in self._greeted:
                return  # the greeting of the next session will say it
        self._lines.post(peer, message)
        if kind is Adv:
            topics = self._advertised.setdefault(peer, {})
            if message.on:
                topics[message.topic] = True
                self._lines.drain(peer)
            else:
                topics.pop(message.topic, None)
                self._give_up(peer, lambda pub: pub.topic == message.topic)

    def _give_up(self, neighbour: str, untold: Callable[[Pub], bool]) -> None:
        """Events that a neighbour would refuse, because nobody advertises their topic any more."""
        self._lines.dropped += self._lines.purge(neighbour, untold)

    def _may_go(self, peer: str, pub: Pub) -> bool:
        if peer in self._neighbours:
            return pub.topic in self._advertised.get(peer, ())
        return peer in self._attached

    def fire(self, timer: str, now: float) -> list[Effect]:
        if timer.partition("/")[0] in (GREET, RESEND):
            return self._lines.fire(timer, now)
        late = self.broker.repair.s.expected if timer == PATIENCE else ()
        # One that is there, and has not said all, is not waited for and not forgotten either.
        given_up = [client for client in late if client not in self._attached]
        effects = self._out(self.broker.fire(timer, now))
        records: list[Effect] = []
        for client in given_up:
            del self._clients[client]
            self._lines.purge(client, lambda pub: True)
            records += [Persist(pack(Knows(client, False))), *self._lines.rest(client)]
        return [*records, *effects, *self._lines.flush(now)]

    # Figures and states.

    @property
    def idle(self) -> bool:
        return self._lines.idle

    def account(self) -> dict[str, float]:
        return {**self.broker.account(), **self._lines.account()}

    def snapshot(self) -> bytes:
        return self.broker.snapshot()

    @classmethod
    def restore(cls, snapshot: bytes) -> LinkedBroker:
        raise Misuse("links begin anew: build the broker again and let it resume")
