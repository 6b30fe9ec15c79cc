"""What an application publishes and subscribes through: a publisher and a subscriber in one.

Rule 1: a client forgets its subscriptions in a crash and begins a new *life*, whose number is on
        disk before anything of it is visible, a sign of life included. Sessions and versions carry
        it, so nothing of an older life can replace anything of a newer one.
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

from inorder.core.effect import Answer, Effect, Note, Persist, SetTimer
from inorder.core.errors import BadMessage
from inorder.core.event import Scalar
from inorder.core.member import SEQ_BLOCK
from inorder.core.pack import pack, unpacker
from inorder.protocols.session.book import RESEND, Sessions
from inorder.protocols.session.links import Links
from inorder.protocols.session.messages import Ack, Bye, Frame, Unknown
from inorder.protocols.total.directory import directory_of
from inorder.protocols.total.messages import (
    Accepted,
    Body,
    Events,
    Gone,
    Heartbeat,
    Renewed,
    WalkDone,
)
from inorder.protocols.total.options import Options
from inorder.protocols.total.publisher import Publisher, PublisherState
from inorder.protocols.total.subscriber import Subscriber, SubscriberState
from inorder.protocols.total.version import session_of

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
    sessions: Sessions[Body] = field(default_factory=Sessions)
    greeting: bool = False
    closing: bool = False


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
        self.links: Links[Body] = Links(
            options.resend, trusted=options.links == "trusted", patient=True,
            first=session_of(state.life),
        )  # fmt: skip
        self.links.load(state.sessions)
        parts = (directory, options, self.links)
        self.publisher = Publisher(state.name, state.publisher, *parts)
        self.subscriber = Subscriber(state.name, state.subscriber, *parts, state.life)
        self._on: dict[type, Callable[[str, Any, float], list[Effect]]] = {
            Accepted: self.publisher.on_accepted,
            WalkDone: self._on_walk_done,
            Events: self.subscriber.on_events,
            Heartbeat: self.subscriber.on_heartbeat,
            Gone: self.subscriber.on_gone,
            Renewed: self.subscriber.on_renewed,
        }
        self._framed = (Accepted, WalkDone)

    @property
    def idle(self) -> bool:
        return self.publisher.idle and self.subscriber.idle and self.links.idle

    def account(self) -> dict[str, float]:
        return self.links.account()

    @property
    def next_seq(self) -> int:
        return self._s.publisher.next_seq

    # Calls of the application.

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        sized = self.publisher.prepare(topic, value, now)
        record = self._record(sized.event.seq, ())
        effects = self.publisher.publish(sized)
        return [*record, *effects, *self._flush(now)]

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        added = self.subscriber.to_subscribe(topics)
        record = self._record(0, added)
        return [*record, *self.subscriber.subscribe(call, added, now), *self._flush(now)]

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        return [*self.subscriber.unsubscribe(call, topics, now), *self._flush(now)]

    def close(self, now: float) -> list[Effect]:
        """Leave all topics and end all sessions; `Answer("close", "done")` when that is done. What
        is under way ends first."""
        s = self._s
        s.closing = True
        wanted = sorted(s.subscriber.wanted)
        effects = self.subscriber.unsubscribe("", wanted, now) if wanted else []
        return [*effects, *self._flush(now)]

    def joined(self, topic: str, now: float) -> list[Effect]:
        return [*self.subscriber.joined(topic, now), *self._flush(now)]

    # Inputs from the network.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        kind = type(message)
        if kind is Frame:
            return self._receive_frame(source, message, now)
        if kind in (Ack, Bye, Unknown):
            return self._receive_control(source, message, now)
        handler = self._on.get(kind)
        if handler is None or (kind in self._framed and self._s.options.links != "trusted"):
            raise BadMessage(source, f"{kind.__name__} is nothing for a client")
        return [*handler(source, message, now), *self._flush(now)]

    def _receive_control(
        self, source: str, message: Ack | Bye | Unknown, now: float
    ) -> list[Effect]:
        links = self.links
        self._service(source, message)
        if message.session != links.session(source):
            return [Note("old_session", source)]
        if isinstance(message, Unknown):
            return self._begin_anew(source, message.floor, now)
        if isinstance(message, Bye):
            if links.honours(source, message):
                links.end(source)
            return []
        if refusal := links.refuse(source, message):
            return refusal
        links.acknowledged(source, message, now)
        return self._flush(now)

    def _service(self, source: str, message: Any) -> None:
        if not self.directory.is_service(source):
            raise BadMessage(source, f"{type(message).__name__} is nothing for a client")

    def _begin_anew(self, source: str, floor: int, now: float) -> list[Effect]:
        """The stage has forgotten our session, and what it owed us in it: ask again."""
        self.links.begin_anew(source, floor)
        self.publisher.ask_again(source)
        self.subscriber.walk_again()
        return [Note("session_begun_anew", source), *self._flush(now)]

    def _receive_frame(self, source: str, frame: Frame[Body], now: float) -> list[Effect]:
        """The body is handled before the link moves: a body that is refused changes nothing."""
        links = self.links
        kind = type(frame.body)
        self._service(source, frame.body)
        if kind not in self._framed:
            raise BadMessage(source, f"{kind.__name__} is nothing for a client")
        if frame.session < links.session(source):
            # Tell the stage that the session is over, or it would never fall silent.
            shown = self._record(0, ())
            return [*shown, Note("old_session", source), links.greeting(source)]
        if frame.session > links.session(source):
            # Of an earlier life that began anew, or begun by the stage: ours must be above it.
            effects = self._begin_anew(source, frame.session, now)
            shown = self._record(0, ())
            return [*shown, *effects, links.greeting(source)]
        if refusal := links.refuse(source, frame):
            return refusal
        place = links.place(source, frame)
        effects = []
        if place == "next":
            effects = self._on[kind](source, frame.body, now)
            waited = links.followers(source, frame)
            links.take(source, frame)
            effects += self._take_waited(source, waited, now)
        elif place == "early":
            links.keep(source, frame)
        else:
            links.owe(source)
        links.acknowledged(source, frame, now)
        return [*effects, *self._flush(now)]

    def _take_waited(self, source: str, frames: list[Frame[Body]], now: float) -> list[Effect]:
        """Frames whose turn has come: a bad one counts as taken, or the session would stand
        still for ever."""
        effects: list[Effect] = []
        for frame in frames:
            try:
                effects += self._on[type(frame.body)](source, frame.body, now)
            except BadMessage:
                effects.append(Note("bad_frame", source))
            self.links.take(source, frame)
        return effects

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
        if kind == RESEND:
            return [*self.links.fire(rest, now), *self._flush(now)]
        if kind == "greet":
            self._s.greeting = False
            return [*self._greetings(), *self._flush(now)]
        return [*self.subscriber.fire(timer, now), *self._flush(now)]

    def _flush(self, now: float) -> list[Effect]:
        """Send what was posted; while an answer is owed, see to it that we are not forgotten."""
        s = self._s
        effects = [*self.links.flush(now), *self._part()]
        if s.greeting or s.options.links == "trusted" or not self._owed():
            return effects
        s.greeting = True
        return [*effects, SetTimer("greet", GREET_AFTER * s.options.resend)]

    def _part(self) -> list[Effect]:
        """Once nothing is under way any more, say goodbye to everybody."""
        s = self._s
        if not s.closing or not self.idle or s.subscriber.wanted:
            return []
        s.closing = False
        effects: list[Effect] = []
        for peer in sorted(self.links.s.peers):
            effects.append(self.links.bye(peer))
            self.links.end(peer)
        return [*effects, Answer("close", "done")]

    def _owed(self) -> list[str]:
        """The topics whose managers may owe us an answer."""
        s = self._s
        walked = s.subscriber.registered if s.subscriber.walking is not None else ()
        return sorted({*s.publisher.under_way, *walked})

    def _greetings(self) -> list[Effect]:
        homes = sorted({self.directory.home(topic) for topic in self._owed()})
        return [self.links.greeting(home) for home in homes]

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
        self._s.sessions = self.links.s
        return pack(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        state: _State = _unpack(snapshot)
        client = cls(state.name, state.topics, state.options)
        client._become(state)
        return client
