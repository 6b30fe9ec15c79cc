"""A peer of the hypercube: a network machine around the machine of a guarantee.

Peer 0 publishes on a topic that 0, 1, 2 and 3 hold. It sends one copy to 1, and one to 2 that says
"and to 3". Peer 2 passes it on to 3, which acknowledges; 2 acknowledges for both, and 0 knows that
everybody has it. When peer 1 publishes, peer 1 is the root of the tree: no peer is everybody's.

Rule 1: a publication carries whom it is for. Its source alone decides that, from its view; peers on
        the way need no view, and may have left or not joined yet (errata P2, P3, P4, P13).
Rule 2: a peer joins in two waves. The first (`Sub`) goes to everybody: from then on everybody
        addresses it. The second (`Act`) asks the members from which number on that is true for all
        others, too. What is published in between sets the order and is not handed over (P14).
Rule 3: what an answer says of a peer was true when the question came to it, not when the answer
        leaves: its children may take long.
Rule 4: calls of the application are served in order, topic by topic: a publication waits until its
        peer is in, a member leaves when its publications are acknowledged (P5, P7). A publication
        is made when it is launched, not when it is called for.
Rule 5: an event is accepted when everybody addressed has acknowledged it.
Rule 6: every handler is one step: what is waited for is noted before anything is sent (P17).

Theory. "A communication-efficient causal broadcast publish/subscribe system" (J. P. de Araujo,
thesis, 2019), chapter 5. Trees and parts: topology.py, parts.py. What one peer knows of a topic:
topic.py. Proofs and what the published rules do wrong: docs/cube.md, docs/errata.md.

Peers are numbers, the places of their names in the list that all peers are configured with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, cast

from inorder.core.effect import (
    Answer,
    Deliver,
    Diffuse,
    Effect,
    Join,
    Leave,
    Note,
    Persist,
)
from inorder.core.errors import BadMessage, Misuse, TooLarge
from inorder.core.event import Scalar, event_id
from inorder.core.limits import CUBE_CALLS_MAX, HELD_EVENTS_MAX
from inorder.core.machine import Accountable, Client, Durable, Machine
from inorder.core.place import Forgetting, Placing, Presettable
from inorder.protocols.cube.links import CHANNEL, FIRST, TIMER
from inorder.protocols.cube.messages import (
    MEMBER,
    Ack,
    Act,
    Flush,
    Kept,
    Packet,
    Probe,
    Pub,
    Sub,
    Uns,
)
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.record import RECORD, Record, life_in
from inorder.protocols.cube.remains import NEVER
from inorder.protocols.cube.serving import Serving
from inorder.protocols.cube.sizes import Sizes
from inorder.protocols.cube.state import State
from inorder.protocols.cube.topic import Enter, Exit, Publish, Spread, Topic
from inorder.protocols.session.lives import Greeting
from inorder.protocols.session.messages import Ack as SessionAck
from inorder.protocols.session.messages import Frame


class Peer(Serving):
    """The peer `name` of these, around `inner`. `launches` says that the inner client publishes
    by diffusing, so that its publications wait for the launch."""

    # The last life on disk: the first one is not written, nothing of it is forgotten.
    _former = FIRST

    def __init__(
        self,
        name: str,
        peers: Peers,
        options: Options,
        inner: Machine,
        launches: bool = True,
    ) -> None:
        super().__init__(name, peers, options)
        self.set_inner(inner)
        self._launches = launches
        self._calls = 0
        self._on = _handlers(type(self), options.detection)

    def set_inner(self, inner: Machine) -> None:
        self.inner = inner
        self._placing = inner if isinstance(inner, Placing) else None
        # Whether anything is to be done at the end of an input.
        self._finishes = (
            hasattr(inner, "waiting")
            or self._trees.links is not None
            or self._trees.bundler is not None
        )

    # Calls of the application.

    @property
    def next_seq(self) -> int:
        return cast(Client, self.inner).next_seq

    @property
    def next_call(self) -> str:
        """Under which name the next publication is answered until it is launched."""
        if not self._launches:
            return event_id(self.name, self.next_seq)
        return f"{self.name}/publish/{self._calls + 1}"

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        if not self._launches:
            self._pass(cast(Client, self.inner).publish(topic, value, now), now)
            return self._done(now)
        state = self._topic(topic)
        if len(state.calls) >= CUBE_CALLS_MAX:
            raise TooLarge(f"calls that wait on {topic!r}", len(state.calls) + 1, CUBE_CALLS_MAX)
        call = self.next_call
        self._calls += 1
        state.calls.append(Publish(call, value))
        self._serve(topic, state, now)
        return self._done(now)

    def subscribe(
        self, call: str, topics: Iterable[str], now: float, *filtered: Any
    ) -> list[Effect]:
        self._pass(cast(Any, self.inner).subscribe(call, topics, now, *filtered), now)
        return self._done(now)

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        self._pass(cast(Client, self.inner).unsubscribe(call, topics, now), now)
        return self._done(now)

    def set(self, call: str, topics: Iterable[str], values: Any, now: float) -> list[Effect]:
        self._pass(cast(Any, self.inner).set(call, topics, values, now), now)
        return self._done(now)

    def joined(self, topic: str, now: float) -> list[Effect]:
        raise Misuse("a peer confirms its own joins")

    # Inputs from the network.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        handler = self._on.get(type(message))
        try:
            if handler is None:
                self._receive_other(source, message, now)
            else:
                peer = self._ids.get(source, self._me)
                if peer == self._me or self._trees.links is not None:
                    raise BadMessage(source, f"{type(message).__name__} is nothing for a peer")
                handler(self, peer, message, now)
        except Exception:
            self._out.clear()
            self._records.clear()
            raise
        return self._done(now)

    def _receive_other(self, source: str, message: Any, now: float) -> None:
        """Not in this network's words: a session's, or for the machine inside."""
        if isinstance(message, Frame | SessionAck) and message.channel == CHANNEL:
            self._receive_framed(source, message, now)
        elif isinstance(message, Greeting) and self._trees.links is not None:
            self._hear(source, message, now)
        elif isinstance(message, Probe):
            self._on_probe(source, message, now)
        else:
            self._pass(self.inner.receive(source, message, now), now)

    def _receive_framed(self, source: str, message: Frame[Any] | SessionAck, now: float) -> None:
        if self._trees.links is None or source == self.name:
            raise BadMessage(source, "speaks in a session, and this peer does not")
        if not self._hear(source, message, now):
            return
        life, peer = self.life, self._ids[source]
        for body in self._trees.take(source, message, now):
            if self.life != life or self._is_dead(peer):
                return  # what came before has ended the session
            handler = self._on.get(type(body))
            try:
                if handler is None:
                    raise BadMessage(source, f"{type(body).__name__} is nothing for a peer")
                handler(self, peer, body, now)
            except BadMessage:
                # It counts as taken, or the session would stand still for ever.
                self._out.append(Note("bad_frame", source))

    def fire(self, timer: str, now: float) -> list[Effect]:
        if self._fire_watch(timer, now):
            pass
        elif timer.startswith(TIMER):
            self._trees.fire(timer, now)
        else:
            self._pass(self.inner.fire(timer, now), now)
        return self._done(now)

    def _on_packet(self, source: int, packet: Packet[Any], now: float) -> None:
        """Each message as if it had come alone; what they set free leaves together at the end."""
        for message in packet.messages:
            try:
                if not isinstance(message, Pub | Ack):
                    raise BadMessage(self._names[source], "packs what does not belong in a packet")
                self._on[type(message)](self, source, message, now)
            except BadMessage:
                self._out.append(Note("bad_frame", self._names[source]))

    def _on_ack(self, child: int, ack: Ack, now: float) -> None:
        over = self._trees.acknowledged(child, ack, now)
        if over is not None:
            self._complete(*over, now)

    def _done(self, now: float) -> list[Effect]:
        """The input is over: what is written comes first, then what was said."""
        if self._asked:
            self._answer_asked(now)
        if self._finishes:
            # Without acknowledgements the sources stop at their windows.
            self._trees.finish(getattr(self.inner, "waiting", 0) <= HELD_EVENTS_MAX, now)
        out = self._out
        if self._records:
            out = [*self._records, *out]
            self._records.clear()
        else:
            out = out[:]
        self._out.clear()
        return out

    # The machine inside.

    def _joined(self, name: str, topic: Topic, now: float) -> None:
        self._tell_joined(name, topic, now)
        early, topic.early = topic.early, []
        for _, pub in early:
            if topic.come(pub.source, pub.number):
                self._hand_in(topic, pub, now)

    def _tell_joined(self, name: str, topic: Topic, now: float) -> None:
        if not topic.wanted:
            if self._detector is not None:
                topic.remains.gap = False  # the application has left: it misses nothing
            return
        alike, topic.alike = topic.alike, None
        if alike is not None and isinstance(self.inner, Presettable):
            self._pass(self.inner.preset(name, alike, self._me, now), now)
            return
        if self._placing is not None:
            for origin in range(len(self._names)):
                if topic.begun >> origin & 1:
                    self._tell_beginning(name, topic, origin, now)
        self._pass(cast(Client, self.inner).joined(name, now), now)
        if self._detector is None:
            return
        for origin, upto in sorted(topic.remains.settled.items()):
            self._tell_lost(name, origin, upto, now)
        if topic.remains.gap:
            topic.remains.gap = False
            self._out.append(Answer(f"gap/{name}", "gap", "this peer was declared dead"))

    def _forget_past(self, now: float) -> None:
        """What the machine inside knows is dead with this peer's life."""
        if isinstance(self.inner, Forgetting):
            self._pass(self.inner.forget(now), now)

    def _tell_beginning(self, name: str, topic: Topic, origin: int, now: float) -> None:
        if self._placing is None or topic.phase != "in" or not topic.wanted:
            return
        start, counts = topic.start[origin], topic.counts[origin] or NEVER
        self._pass(self._placing.begins((name, origin), start, counts, now), now)

    def _pass(self, effects: list[Effect], now: float) -> None:
        """Effects of the machine inside, in this network's words."""
        for each in effects:
            kind = type(each)
            if kind is Deliver:
                self._out.append(each)
            elif isinstance(each, Persist):
                self._records.append(each)
            elif isinstance(each, Diffuse):
                self._call(each.topic, Spread(each.message), now)
            elif isinstance(each, Join):
                self._call(each.topic, Enter(MEMBER), now)
            elif isinstance(each, Leave):
                self._topic(each.topic).wanted = False
                self._call(each.topic, Exit(), now)
            else:
                self._out.append(each)

    def _is_wanted(self, topic: Topic) -> None:
        """The application wants this membership, unless it has left again meanwhile: another
        membership that it has asked for since is another one."""
        topic.wanted = not any(isinstance(call, Exit) for call in topic.calls)

    def _call(self, name: str, call: Enter | Exit | Spread[Any], now: float) -> None:
        topic = self._topic(name)
        topic.calls.append(call)
        self._serve(name, topic, now)

    # What a driver may say.

    def tell_queue(self, busy: bool) -> None:
        """Whether something stands in this peer's output queue; that holds until the next word."""
        if self._trees.bundler is not None:
            self._trees.bundler.tell_queue(busy)

    def measure_with(self, sizes: Sizes) -> None:
        """Let messages count for something else than their bytes, from the beginning on."""
        if self._trees.bundler is not None:
            self._trees.bundler.measure_with(sizes)

    # What a driver may ask.

    @property
    def idle(self) -> bool:
        calls = any(topic.calls or topic.phase in ("join", "act", "leave")
                    for topic in self._topics.values())  # fmt: skip
        waits = self._flushing or bool(self._unsure) or bool(self._asked)
        return not (calls or waits) and self._trees.idle and getattr(self.inner, "idle", True)

    @property
    def owes(self) -> bool:
        return super().owes or getattr(self.inner, "owes", False)

    def account(self) -> dict[str, float]:
        counted = self.inner.account() if isinstance(self.inner, Accountable) else {}
        watched = self._figures
        if self._detector is None:
            watched = {"relays": watched["relays"]}
        return {**self._trees.account(), **watched, **counted}

    # The whole state.

    def packed(self) -> State[Any]:
        """The peer's own state, and the machine's inside."""
        return State(
            self.name, self.peers.names, self.options, self._launches,
            {name: topic.packed() for name, topic in self._topics.items()},
            self._calls, self._trees.packed(), self.inner.snapshot(), self._survival(),
        )  # fmt: skip

    def become(self, state: State[Any]) -> None:
        """Take over the state of a peer with the same machine inside, which is restored already."""
        self._topics = {name: Topic.unpacked(each) for name, each in state.topics.items()}
        self._calls = state.calls
        self._trees.become(state.trees)
        self._survive(state.survival)

    # Recovery.

    def replay(self, record: bytes) -> None:
        if (life := life_in(record)) is not None:
            self._former = life
        elif record.startswith(RECORD):
            entry = Record.read(record)
            topic = self._topic(entry.topic)
            topic.change = entry.change
            topic.reserved = entry.reserved
            topic.next = entry.reserved + 1
        elif isinstance(self.inner, Durable):
            self.inner.replay(record)

    def resume(self, now: float) -> list[Effect]:
        if self._trees.links is not None:
            self._live_on(self._former, now)
            self._watch(now)
        if isinstance(self.inner, Durable):
            self._pass(self.inner.resume(now), now)
        return self._done(now)


Handler = Callable[[Any, int, Any, float], None]


def _handlers(kind: type[Peer], watched: bool) -> Mapping[type, Handler]:
    """What peers of a kind do with messages of other peers: one table for all of them."""
    kept = (kind._on_kept, kind._on_flush) if watched else ()
    return _table(
        kind._on_pub, kind._on_ack, kind._on_sub, kind._on_act, kind._on_uns, kind._on_packet, *kept
    )


@cache
def _table(*handlers: Handler) -> Mapping[type, Handler]:
    return dict(zip((Pub, Ack, Sub, Act, Uns, Packet, Kept, Flush), handlers, strict=False))
