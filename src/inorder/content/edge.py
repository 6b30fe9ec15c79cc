"""The side of a broker that clients hang on.

Rule 1: a client is known from its `Attach` on. What it had before and does not list is over; what
        it lists stays until it says it again, so that nothing is taken back in between.
Rule 2: the versions of a subscription only grow.
Rule 3: a client publishes under its own name, on topics it has advertised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from inorder.content.door import forms_problem, topic_problem, vectors_problem
from inorder.content.messages import Adv, Attach, Err, Pub, Replace, Set, Sub, Unsub
from inorder.core.effect import Effect, Send
from inorder.core.errors import BadMessage
from inorder.core.limits import CONTENT_ADVERTISED_MAX, CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX

if TYPE_CHECKING:
    from inorder.content.broker import Broker
    from inorder.content.topic import Entry, Topic


class ClientLink(Struct):
    """The topic of each subscription; those a client that came back has not said again yet."""

    topics: dict[int, str] = {}
    advertised: dict[str, bool] = {}
    awaited: dict[int, bool] = {}
    life: int = 0


class Edge:
    """Handles what clients send; the broker settles afterwards."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._on: dict[type, Callable[[str, Any, ClientLink], list[Effect]]] = {
            Adv: self._on_adv,
            Sub: self._on_sub,
            Set: self._on_set,
            Replace: self._on_replace,
            Unsub: self._on_unsub,
            Pub: self._on_pub,
        }

    def handle(self, source: str, message: Any) -> list[Effect]:
        kind = type(message)
        if kind is Attach:
            return self._on_attach(source, message)
        handler = self._on.get(kind)
        link = self._broker.clients.get(source)
        if handler is None or link is None:
            raise BadMessage(source, f"{kind.__name__} is nothing for a broker, or too early")
        return handler(source, message, link)

    def _on_attach(self, source: str, message: Attach) -> list[Effect]:
        if len({*message.topics}) > CONTENT_ADVERTISED_MAX:
            raise BadMessage(source, f"advertises more than {CONTENT_ADVERTISED_MAX} topics")
        for name in message.topics:
            if trouble := topic_problem(name):
                raise BadMessage(source, trouble)
        self._broker.require_room({*message.topics}, source)
        topics = [self._broker.topic(name, source) for name in sorted({*message.topics})]
        link = self._broker.clients.setdefault(source, ClientLink())
        kept = {*message.sids}
        for sid, name in sorted(link.topics.items()):
            if sid not in kept:
                self._end(source, sid, link, self._broker.topics[name])
        returns = source in self._broker.repair.s.expected
        link.awaited = dict.fromkeys(sorted(kept if returns else link.topics), True)
        link.life = message.life
        self._broker.forgive(source)
        for name in sorted(link.advertised):
            if name not in message.topics:
                self._silence(source, name, link)
        for topic in topics:
            self._advertise(source, topic, link)
        return [] if link.awaited else self._broker.repair.arrived(source)

    def _on_adv(self, source: str, message: Adv, link: ClientLink) -> list[Effect]:
        if trouble := topic_problem(message.topic):
            raise BadMessage(source, trouble)
        if not message.on:
            if message.topic in link.advertised:
                self._silence(source, message.topic, link)
            return []
        if len(link.advertised) >= CONTENT_ADVERTISED_MAX:
            raise BadMessage(source, f"advertises more than {CONTENT_ADVERTISED_MAX} topics")
        self._advertise(source, self._broker.topic(message.topic, source), link)
        return []

    def _advertise(self, source: str, topic: Topic, link: ClientLink) -> None:
        link.advertised[topic.s.name] = True
        topic.advertised(source, 0, False)
        self._broker.touch(topic.s.name)

    def _silence(self, source: str, name: str, link: ClientLink) -> None:
        del link.advertised[name]
        self._broker.topics[name].silenced(source)
        self._broker.touch(name)

    def _on_sub(self, source: str, message: Sub, link: ClientLink) -> list[Effect]:
        if trouble := topic_problem(message.topic) or forms_problem(message.forms):
            raise BadMessage(source, trouble)
        if message.sid < 1:
            raise BadMessage(source, f"numbers a subscription {message.sid}")
        if message.sid in link.topics:
            if message.sid not in link.awaited:
                return _refusal(source, message, "DUPLICATE_SUBSCRIPTION", "is known already")
            _, entry = self._known(source, message.sid, link)
            if link.topics[message.sid] != message.topic or message.version < entry.version:
                raise BadMessage(source, f"came back with another subscription {message.sid}")
        elif len(link.topics) >= CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX:
            text = f"is one more than {CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX}"
            return _refusal(source, message, "TOO_MANY_SUBSCRIPTIONS", text)
        topic = self._broker.topic(message.topic, source)
        self._broker.owe(topic, source, message.sid, message.version)
        link.awaited.pop(message.sid, None)
        link.topics[message.sid] = message.topic
        topic.put(source, message.sid, message.forms, message.version)
        return [] if link.awaited else self._broker.repair.arrived(source)

    def _on_set(self, source: str, message: Set, link: ClientLink) -> list[Effect]:
        if message.sid not in link.topics:
            return _refusal(source, message, "UNKNOWN_SUBSCRIPTION", "is not known")
        topic, entry = self._newer(source, message, link)
        if trouble := vectors_problem(entry.forms, message.vectors):
            raise BadMessage(source, trouble)
        forms = list(entry.forms)
        for place, vector in message.vectors:
            forms[place] = (forms[place][0], vector)
        self._broker.owe(topic, source, message.sid, message.version)
        topic.put(source, message.sid, tuple(forms), message.version)
        return []

    def _on_replace(self, source: str, message: Replace, link: ClientLink) -> list[Effect]:
        if message.sid not in link.topics:
            return _refusal(source, message, "UNKNOWN_SUBSCRIPTION", "is not known")
        topic, _ = self._newer(source, message, link)
        if trouble := forms_problem(message.forms):
            raise BadMessage(source, trouble)
        self._broker.owe(topic, source, message.sid, message.version)
        topic.put(source, message.sid, message.forms, message.version)
        return []

    def _on_unsub(self, source: str, message: Unsub, link: ClientLink) -> list[Effect]:
        if message.sid not in link.topics:
            return _refusal(source, message, "UNKNOWN_SUBSCRIPTION", "is not known")
        topic, _ = self._newer(source, message, link)
        self._broker.owe(topic, source, message.sid, message.version)
        self._end(source, message.sid, link, topic)
        return []

    def _on_pub(self, source: str, message: Pub, link: ClientLink) -> list[Effect]:
        if message.publisher != source:
            raise BadMessage(source, f"publishes under the name {message.publisher!r}")
        if message.topic not in link.advertised:
            if not self._broker.settings.auto_advertise:
                text = f"{message.topic!r} is not advertised"
                return [Send(source, Err(0, message.seq, "NOT_ADVERTISED", text))]
            self._on_adv(source, Adv(message.topic, True), link)
        return self._broker.forward(source, message)

    def _end(self, source: str, sid: int, link: ClientLink, topic: Topic) -> None:
        del link.topics[sid]
        link.awaited.pop(sid, None)
        topic.remove(source, sid)
        self._broker.touch(topic.s.name)

    def _known(self, source: str, sid: int, link: ClientLink) -> tuple[Topic, Entry]:
        topic = self._broker.topics[link.topics[sid]]
        return topic, topic.s.entries[source][sid]

    def _newer(
        self, source: str, message: Set | Replace | Unsub, link: ClientLink
    ) -> tuple[Topic, Entry]:
        topic, entry = self._known(source, message.sid, link)
        if message.version <= entry.version:
            problem = f"sends version {message.version} of {message.sid} after {entry.version}"
            raise BadMessage(source, problem)
        return topic, entry


def _refusal(
    source: str, message: Sub | Set | Replace | Unsub, code: str, text: str
) -> list[Effect]:
    words = f"subscription {message.sid} {text}"
    return [Send(source, Err(message.sid, message.version, code, words))]
