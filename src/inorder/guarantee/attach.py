"""A machine on a network of content brokers: its diffusions and joins in the brokers' words.

Rule 1: a diffusion becomes a publication at the edge broker. If its message is about one event, the
        event's attributes are matched; any other message goes to everybody who wants anything of
        its topic (a topic manager's batch, say: its receivers need all of it to keep the order).
Rule 2: a join becomes a subscription, and is confirmed when that is installed: from then on every
        matching publication is due.
Rule 3: everything that arrives and is new is passed on, also what does not match any more: an
        order may want to know that it came. Whoever delivers filters last (compose.py).
Rule 4: every topic is advertised when the link begins, and again after a crash. The edge keeps the
        advertisement meanwhile, so that routes stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inorder.content.client import Client, Handed, Mode
from inorder.content.messages import Err, Installed, Pub
from inorder.content.predicate import Predicate
from inorder.core.effect import Answer, CancelTimer, Diffuse, Effect, Note, Send, SetTimer
from inorder.core.errors import Misuse
from inorder.core.event import Event
from inorder.core.machine import Accountable, Durable, Machine

# True of every event, for topics that are wanted whole.
WHOLE = Predicate.parse("EXISTS topic OR topic IS NULL")
Wanted = tuple[Predicate, Mapping[str, Any]]
# A topic, a version of its filter, and why it was refused; empty if it is installed.
News = tuple[str, int, str]

# Before the names of the link's own timers.
TIMER = "edge/"


class BrokerLink:
    """One machine's link to its broker."""

    def __init__(self, name: str, broker: str, topics: Iterable[str], mode: Mode) -> None:
        self.broker = broker
        self._name = name
        self._client = Client(name, broker, mode=mode)
        self._topics = tuple(topics)
        self._sids: dict[str, int] = {}
        self._last_seq = 0

    def begin(self, now: float) -> list[Effect]:
        for topic in self._topics:
            self._client.advertise(topic, now)
        return self._client.connect(now)

    def diffuse(self, effect: Diffuse, now: float) -> Effect:
        message = effect.message
        event = getattr(message, "event", None)
        if isinstance(event, Event):
            publisher, seq, attributes = event.publisher, event.seq, event.value
        else:
            # Numbers of a message that is no event: new ones after a crash, too.
            self._last_seq = max(self._last_seq + 1, int(now * 1e6))
            publisher, seq, attributes = self._name, self._last_seq, None
        return Send(self.broker, Pub(effect.topic, publisher, seq, attributes, message))

    def join(self, topic: str, where: Wanted, now: float) -> list[Effect]:
        sid, effects = self._client.subscribe(topic, *where, now)
        self._sids[topic] = sid
        return effects

    def leave(self, topic: str, now: float) -> list[Effect]:
        sid = self._sids.pop(topic, None)
        return [] if sid is None else self.named(self._client.unsubscribe(sid, now))

    def change(self, topic: str, where: Wanted, now: float) -> list[Effect]:
        """Another filter; the brokers are told what differs."""
        return self.named(self._client.replace(self._sids[topic], *where, now))

    def version(self, topic: str) -> int:
        return self._client.version(self._sids[topic])

    def is_installed(self, topic: str) -> bool:
        """Whether the present version is in force everywhere."""
        return self._client.installed(self._sids[topic]) >= self.version(topic)

    def holds(self, topic: str) -> bool:
        return topic in self._sids

    def is_for_me(self, source: str, message: Any) -> bool:
        return source == self.broker and isinstance(message, Pub | Installed | Err)

    def receive(self, message: Any, now: float) -> tuple[list[Effect], list[News]]:
        """What the link itself wants done, and which versions of which topics are installed, or
        refused with a reason."""
        topics = {sid: topic for topic, sid in self._sids.items()}
        effects: list[Effect] = []
        news: list[News] = []
        for effect in self._client.receive(self.broker, message, now):
            if isinstance(effect, Answer):
                sid, _, version = effect.call.partition("/")
                if sid.isdigit() and int(sid) in topics:
                    news.append((topics[int(sid)], int(version), effect.reason))
            elif not isinstance(effect, Handed):
                effects.append(effect)
        return self.named(effects), news

    def fire(self, timer: str, now: float) -> list[Effect]:
        found = self._client.fire(timer.removeprefix(TIMER), now)
        return self.named([each for each in found if not isinstance(each, Handed)])

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
        return self._client.account()


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

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if self._edge.is_for_me(source, message):
            return self._edge.receive(message, now)[0]
        return self._out(self._inner.receive(source, message, now), now)

    def fire(self, timer: str, now: float) -> list[Effect]:
        return self._out(self._inner.fire(timer, now), now)

    def replay(self, record: bytes) -> None:
        if isinstance(self._inner, Durable):
            self._inner.replay(record)

    def resume(self, now: float) -> list[Effect]:
        effects = self._inner.resume(now) if isinstance(self._inner, Durable) else []
        return [*self._edge.begin(now), *self._out(effects, now)]

    def account(self) -> dict[str, float]:
        return self._inner.account() if isinstance(self._inner, Accountable) else {}

    def snapshot(self) -> bytes:
        return self._inner.snapshot()

    @classmethod
    def restore(cls, snapshot: bytes) -> Attached:
        raise Misuse("a link begins anew: build the machine and its edge again")

    def _out(self, effects: list[Effect], now: float) -> list[Effect]:
        return [
            self._edge.diffuse(each, now) if isinstance(each, Diffuse) else each for each in effects
        ]
