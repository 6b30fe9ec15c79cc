"""A machine on a network of content brokers: its diffusions and joins in the brokers' words.

Rule 1: a diffusion becomes a publication at the edge broker. If its message is about one event, the
        event's attributes are matched; any other message goes to everybody who wants anything of
        its topic (a topic manager's batch, say: its receivers need all of it to keep the order).
Rule 2: a join becomes a subscription, and is confirmed when that is installed: from then on every
        matching publication is due.
Rule 3: everything that arrives and is new is passed on, also what does not match any more: an
        order may want to know that it came. The filter that decides stands behind it (compose.py).
Rule 4: the link is a session with the broker's present life (lines.py). When either end begins
        another life, the machine says again what it advertises and what it wants, and what was
        under way comes again. The edge keeps the old advertisements meanwhile, so that routes stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from inorder.content.client import Client, Handed, Mode
from inorder.content.messages import Pub
from inorder.content.predicate import Predicate
from inorder.core.effect import Answer, CancelTimer, Diffuse, Effect, Note, Persist, Send, SetTimer
from inorder.core.errors import Misuse
from inorder.core.event import Event
from inorder.core.machine import Accountable, Durable, Machine
from inorder.core.pack import pack, unpacker
from inorder.guarantee.lines import GREET, Lines
from inorder.protocols.session.book import RESEND
from inorder.protocols.session.lives import Greeting
from inorder.protocols.session.messages import Ack, Frame

# True of every event, for topics that are wanted whole.
WHOLE = Predicate.parse("EXISTS topic OR topic IS NULL")
Wanted = tuple[Predicate, Mapping[str, Any]]
# A topic, a version of its filter, and why it was refused; empty if it is installed.
News = tuple[str, int, str]

# Before the names of the link's own timers, and before its own records: no record of a machine
# begins with a byte that MessagePack never uses.
TIMER = "edge/"
RECORD = b"\xc1"

# Numbers of subscriptions, and of messages that are no events, stand above those of earlier lives.
LIFE_SHIFT = 31


class Life(Struct, frozen=True, gc=False):
    """The link has begun this life."""

    life: int


_unpack_life = unpacker(Life)


class BrokerLink:
    """One machine's link to its broker."""

    def __init__(
        self, name: str, broker: str, topics: Iterable[str], mode: Mode, resend_s: float = 0.5
    ) -> None:
        self.broker = broker
        self._name = name
        self._mode = mode
        self._client = Client(name, broker, mode=mode)
        self._lines = Lines(name, 1, resend_s, lambda peer, pub: True)
        self._topics = tuple(topics)
        self._sids: dict[str, int] = {}
        self._last_seq = 0

    def begin(self, now: float) -> list[Effect]:
        """Find the broker; all else is said when it has answered."""
        life = self._lines.life
        self._last_seq = first = life << LIFE_SHIFT
        self._client = Client(self._name, self.broker, mode=self._mode, first_wire=first)
        for topic in self._topics:
            self._client.advertise(topic, now)
        return self.named([Persist(RECORD + pack(Life(life))), *self._lines.greet(self.broker)])

    def replay(self, record: bytes) -> bool:
        """Whether a record is the link's own."""
        if not record.startswith(RECORD):
            return False
        self._lines.life = _unpack_life(record[1:]).life + 1
        return True

    @property
    def idle(self) -> bool:
        return self._lines.idle

    def diffuse(self, effect: Diffuse, now: float) -> list[Effect]:
        message = effect.message
        event = getattr(message, "event", None)
        if isinstance(event, Event):
            publisher, seq, attributes = event.publisher, event.seq, event.value
        else:
            self._last_seq += 1
            publisher, seq, attributes = self._name, self._last_seq, None
        pub = Pub(effect.topic, publisher, seq, attributes, message)
        return self._out([Send(self.broker, pub)], now)

    def join(self, topic: str, where: Wanted, now: float) -> list[Effect]:
        sid, effects = self._client.subscribe(topic, *where, now)
        self._sids[topic] = sid
        return self._out(effects, now)

    def leave(self, topic: str, now: float) -> list[Effect]:
        sid = self._sids.pop(topic, None)
        return [] if sid is None else self._out(self._client.unsubscribe(sid, now), now)

    def change(self, topic: str, where: Wanted, now: float) -> list[Effect]:
        """Another filter; the brokers are told what differs."""
        return self._out(self._client.replace(self._sids[topic], *where, now), now)

    def version(self, topic: str) -> int:
        return self._client.version(self._sids[topic])

    def is_installed(self, topic: str) -> bool:
        """Whether the present version is in force everywhere."""
        return self._client.installed(self._sids[topic]) >= self.version(topic)

    def holds(self, topic: str) -> bool:
        return topic in self._sids

    def is_for_me(self, source: str, message: Any) -> bool:
        return source == self.broker and isinstance(message, Frame | Ack | Greeting)

    def receive(self, message: Any, now: float) -> tuple[list[Effect], list[Any]]:
        """What the link wants done, and what the broker says; `flush` when all of it is done."""
        begins, effects = self._lines.hear(self.broker, message)
        if begins:
            effects += self._posted(self._client.connect(now))
            self._lines.drain(self.broker)
        bodies = [body for _, body in self._lines.take(self.broker, message, now)]
        return self.named(effects), bodies

    def flush(self, now: float) -> list[Effect]:
        return self.named(self._lines.flush(now))

    def handle(self, body: Any, now: float) -> tuple[list[Effect], list[News]]:
        """What follows from a message of the broker, and which versions of which topics are
        installed, or refused with a reason."""
        topics = {sid: topic for topic, sid in self._sids.items()}
        effects: list[Effect] = []
        news: list[News] = []
        for effect in self._client.receive(self.broker, body, now):
            if isinstance(effect, Answer):
                sid, _, version = effect.call.partition("/")
                if sid.isdigit() and int(sid) in topics:
                    news.append((topics[int(sid)], int(version), effect.reason))
            elif not isinstance(effect, Handed):
                effects.append(effect)
        return self.named(self._posted(effects)), news

    def fire(self, timer: str, now: float) -> list[Effect]:
        timer = timer.removeprefix(TIMER)
        if timer.partition("/")[0] in (GREET, RESEND):
            return self.named(self._lines.fire(timer, now))
        fired = self._client.fire(timer, now)
        return self._out([each for each in fired if not isinstance(each, Handed)], now)

    def _posted(self, effects: list[Effect]) -> list[Effect]:
        """What is said goes into the session; the other effects are left."""
        left: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send):
                self._lines.post(effect.target, effect.message)
            else:
                left.append(effect)
        return left

    def _out(self, effects: list[Effect], now: float) -> list[Effect]:
        return self.named([*self._posted(effects), *self._lines.flush(now)])

    def named(self, effects: list[Effect]) -> list[Effect]:
        """Timers under names that are ours."""
        out: list[Effect] = []
        for effect in effects:
            if isinstance(effect, SetTimer):
                out.append(SetTimer(TIMER + effect.name, effect.after_s))
            elif isinstance(effect, CancelTimer):
                out.append(CancelTimer(TIMER + effect.name))
            else:
                out.append(effect)
        return out

    def account(self) -> dict[str, float]:
        return {**self._client.account(), **self._lines.account()}


def is_new(effects: list[Effect]) -> bool:
    """Whether the publication that these effects answer has not come before."""
    return not any(isinstance(each, Note) and each.mark == "repeated_event" for each in effects)


class Attached:
    """A machine that only diffuses, such as a topic manager, on a network of content brokers."""

    def __init__(self, inner: Machine, edge: BrokerLink) -> None:
        self._inner = inner
        self._edge = edge

    def begin(self, now: float) -> list[Effect]:
        return self._edge.begin(now)

    @property
    def idle(self) -> bool:
        return self._edge.idle and getattr(self._inner, "idle", True)

    @property
    def owes(self) -> bool:
        return getattr(self._inner, "owes", False)

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if self._edge.is_for_me(source, message):
            effects, bodies = self._edge.receive(message, now)
            for body in bodies:
                effects += self._edge.handle(body, now)[0]
            return [*effects, *self._edge.flush(now)]
        return self._out(self._inner.receive(source, message, now), now)

    def fire(self, timer: str, now: float) -> list[Effect]:
        if timer.startswith(TIMER):
            return self._edge.fire(timer, now)
        return self._out(self._inner.fire(timer, now), now)

    def replay(self, record: bytes) -> None:
        if not self._edge.replay(record) and isinstance(self._inner, Durable):
            self._inner.replay(record)

    def resume(self, now: float) -> list[Effect]:
        effects = self._inner.resume(now) if isinstance(self._inner, Durable) else []
        return [*self._edge.begin(now), *self._out(effects, now)]

    def account(self) -> dict[str, float]:
        counted = self._inner.account() if isinstance(self._inner, Accountable) else {}
        return added(counted, self._edge.account())

    def snapshot(self) -> bytes:
        return self._inner.snapshot()

    @classmethod
    def restore(cls, snapshot: bytes) -> Attached:
        raise Misuse("a link begins anew: build the machine and its edge again")

    def _out(self, effects: list[Effect], now: float) -> list[Effect]:
        out: list[Effect] = []
        for each in effects:
            out += self._edge.diffuse(each, now) if isinstance(each, Diffuse) else [each]
        return out


def added(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """Two accounts of one machine as one.

    >>> added({"frames": 1.0}, {"frames": 2.0, "acks": 1.0})
    {'frames': 3.0, 'acks': 1.0}
    """
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in (*one, *other)}
