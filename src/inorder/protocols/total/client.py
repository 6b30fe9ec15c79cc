"""What an application publishes and subscribes through: a publisher and a subscriber in one.

Rule 1: a client forgets its subscriptions in a crash and begins a new *life*, whose number is on
        disk before anything of it is visible. Sessions and versions carry it, so nothing of an
        older life can replace anything of a newer one.
Rule 2: the topics its managers may have it registered for are on disk too; the first walk of a
        new life visits them, and those not wanted any more are told so. Those that a walk has
        told are forgotten when there are many of them.

Rule 3: a client that waits for an answer shows itself from time to time to everybody who may owe
        it one: a stage gives up on clients that are silent for minutes, and begins anew with any
        sign of life.

Nothing else has to survive. Whatever an older life delivered was complete before the new life's
walk began, hence ordered before it, and the new life delivers only what comes after its walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from msgspec import Struct, field

from inorder.core.effect import Effect, Note, Persist, Send, SetTimer
from inorder.core.errors import BadMessage
from inorder.core.event import Scalar
from inorder.core.member import SEQ_BLOCK
from inorder.core.pack import pack, unpacker
from inorder.protocols.total.directory import directory_of
from inorder.protocols.total.link import Link, Links
from inorder.protocols.total.messages import (
    Accepted,
    Ack,
    Events,
    Frame,
    Gone,
    Heartbeat,
    WalkDone,
)
from inorder.protocols.total.options import Options
from inorder.protocols.total.publisher import Publisher, PublisherState
from inorder.protocols.total.subscriber import Subscriber, SubscriberState

# A waiting client shows itself after this many resend times.
GREET_AFTER = 16

# Topics left that the next life visits in vain; more are not worth their place in its first walk.
LEFT_TOPICS_KEPT = 32


class _Record(Struct, frozen=True, gc=False):
    life: int
    reserved: int
    topics: tuple[str, ...]


class _State(Struct):
    name: str
    topics: tuple[str, ...]
    options: Options
    life: int = 1
    # What the last record says.
    recorded: int = 0
    reserved: int = 0
    known: tuple[str, ...] = ()
    publisher: PublisherState = field(default_factory=PublisherState)
    subscriber: SubscriberState = field(default_factory=SubscriberState)
    links: dict[str, Link] = {}
    greeting: bool = False


_unpack = unpacker(_State)
_unpack_record = unpacker(_Record)


class Client:
    """The machine of one application."""

    def __init__(self, name: str, topics: Sequence[str], options: Options | None = None) -> None:
        options = options or Options()
        self._become(_State(name, tuple(topics), options))

    def _become(self, state: _State) -> None:
        self._s = state
        options = state.options
        directory = directory_of(state.topics, options.topics_per_stage)
        self.directory = directory
        self.links = Links(options.resend, options.links == "trusted", patient=True)
        self.links.peers = state.links
        parts = (directory, options, self.links, state.life)
        self.publisher = Publisher(state.name, state.publisher, *parts)
        self.subscriber = Subscriber(state.name, state.subscriber, *parts)
        self._on: dict[type, Callable[[str, Any, float], list[Effect]]] = {
            Accepted: self.publisher.on_accepted,
            WalkDone: self._on_walk_done,
            Events: self.subscriber.on_events,
            Heartbeat: self.subscriber.on_heartbeat,
            Gone: self.subscriber.on_gone,
        }
        self._framed = (Accepted, WalkDone)

    @property
    def idle(self) -> bool:
        return self.publisher.idle and self.subscriber.idle and self.links.idle

    @property
    def next_seq(self) -> int:
        return self._s.publisher.next_seq

    # Calls of the application.

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        sized = self.publisher.prepare(topic, value, now)
        record = self._record(sized.event.seq, ())
        effects = self.publisher.publish(sized)
        return [*record, *effects, *self._flush()]

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        added = self.subscriber.to_subscribe(topics)
        record = self._record(0, added)
        return [*record, *self.subscriber.subscribe(call, added, now), *self._flush()]

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        return [*self.subscriber.unsubscribe(call, topics, now), *self._flush()]

    def joined(self, topic: str, now: float) -> list[Effect]:
        return [*self.subscriber.joined(topic, now), *self._flush()]

    # Inputs from the network.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        kind = type(message)
        if kind is Frame:
            return self._receive_frame(source, message, now)
        if kind is Ack:
            if message.session != self._s.life or self.links.refusal(source, message):
                return [Note("old_life", source)]
            return self.links.acknowledged(source, message, message.number)
        handler = self._on.get(kind)
        if handler is None or (kind in self._framed and self._s.options.links != "trusted"):
            raise BadMessage(source, f"{kind.__name__} is nothing for a client")
        return [*handler(source, message, now), *self._flush()]

    def _receive_frame(self, source: str, frame: Frame, now: float) -> list[Effect]:
        """The body is handled before the link moves: a body that is refused changes nothing."""
        links = self.links
        kind = type(frame.body)
        if kind not in self._framed or not self.directory.is_service(source):
            raise BadMessage(source, f"{kind.__name__} is nothing for a client")
        if frame.session != self._s.life:
            # Tell the stage that the life it speaks to is over, or it would never fall silent.
            return [Note("old_life", source), Send(source, Ack(self._s.life, 0, 0))]
        if refusal := links.refusal(source, frame):
            return [Note(refusal, source)]
        if not links.is_next(source, frame):
            if source in links.peers:
                links.owe(source)
            return [*links.acknowledged(source, frame, frame.ack), *self._flush()]
        effects = self._on[kind](source, frame.body, now)
        effects = [*links.acknowledged(source, frame, frame.ack), *effects]
        links.take(source, frame)
        return [*effects, *self._flush()]

    def _on_walk_done(self, source: str, done: WalkDone, now: float) -> list[Effect]:
        effects = self.subscriber.on_walk_done(source, done, now)
        s = self._s
        left = {*s.known} - s.subscriber.registered - s.subscriber.wanted
        if len(left) <= LEFT_TOPICS_KEPT:
            return effects
        s.known = tuple(sorted({*s.known} - left))
        return [*effects, Persist(pack(_Record(s.life, s.reserved, s.known)))]

    def fire(self, timer: str, now: float) -> list[Effect]:
        kind, _, rest = timer.partition("/")
        if kind == "resend":
            return self.links.fire(rest)
        if kind == "greet":
            self._s.greeting = False
            return [*self._greetings(), *self._flush()]
        return [*self.subscriber.fire(timer, now), *self._flush()]

    def _flush(self) -> list[Effect]:
        """Send what was posted; while an answer is owed, see to it that we are not forgotten."""
        effects = self.links.flush()
        s = self._s
        if s.greeting or s.options.links == "trusted" or not self._owed():
            return effects
        s.greeting = True
        return [*effects, SetTimer("greet", GREET_AFTER * s.options.resend)]

    def _owed(self) -> list[str]:
        """The topics whose managers may owe us an answer."""
        s = self._s
        walked = s.subscriber.registered if s.subscriber.walking is not None else ()
        return sorted({*s.publisher.under_way, *walked})

    def _greetings(self) -> list[Effect]:
        homes = sorted({self.directory.home(topic) for topic in self._owed()})
        return [self.links.greeting(home, self._s.life) for home in homes]

    # Recovery.

    def _record(self, seq: int, topics: Sequence[str]) -> list[Effect]:
        """Make durable what must be before the next effect is: life, numbers, topics."""
        s = self._s
        missing = [topic for topic in topics if topic not in s.known]
        if s.recorded == s.life and seq <= s.reserved and not missing:
            return []
        if seq > s.reserved:
            s.reserved = seq + SEQ_BLOCK - 1
        s.recorded = s.life
        s.known = tuple(sorted({*s.known, *missing} if missing else s.known))
        return [Persist(pack(_Record(s.life, s.reserved, s.known)))]

    def replay(self, record: bytes) -> None:
        entry: _Record = _unpack_record(record)
        s = self._s
        state = _State(s.name, s.topics, s.options, entry.life + 1, 0, entry.reserved, entry.topics)
        state.publisher = PublisherState(next_seq=entry.reserved + 1)
        state.subscriber = SubscriberState(registered={*entry.topics})
        self._become(state)

    def resume(self, now: float) -> list[Effect]:
        """Nothing to resend: the application subscribes and publishes anew."""
        return []

    # The whole state.

    def snapshot(self) -> bytes:
        self.subscriber.engine.store()
        return pack(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        state: _State = _unpack(snapshot)
        client = cls(state.name, state.topics, state.options)
        client._become(state)
        return client
