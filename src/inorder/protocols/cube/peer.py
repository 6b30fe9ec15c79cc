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

from collections.abc import Callable, Iterable
from typing import Any, cast

from inorder.core.effect import (
    Answer,
    Deliver,
    Diffuse,
    Effect,
    Join,
    Launched,
    Leave,
    Note,
    Persist,
)
from inorder.core.errors import BadMessage, InorderError, Misuse, TooLarge
from inorder.core.event import Scalar, event_id
from inorder.core.limits import CUBE_CALLS_MAX, HELD_EVENTS_MAX
from inorder.core.machine import Accountable, Client, Durable, Machine
from inorder.core.member import SEQ_BLOCK
from inorder.core.place import Placing, Presettable
from inorder.protocols.cube.joining import Joining
from inorder.protocols.cube.links import CHANNEL, TIMER
from inorder.protocols.cube.messages import (
    GONE,
    MEMBER,
    PUB,
    SOURCE,
    SUB,
    UNS,
    Ack,
    Act,
    Packet,
    Pub,
    Sub,
    Uns,
)
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.record import RECORD, Record
from inorder.protocols.cube.sizes import Sizes
from inorder.protocols.cube.state import State
from inorder.protocols.cube.topic import Enter, Exit, Publish, Spread, Topic
from inorder.protocols.cube.wave import Key, Wave
from inorder.protocols.session.messages import Ack as SessionAck
from inorder.protocols.session.messages import Frame

# From which number on the publications of a peer count that has left before it could say so.
NEVER = 2**63 - 1


class Peer(Joining):
    """The peer `name` of these, around `inner`. `launches` says that the inner client publishes
    by diffusing, so that its publications wait for the launch."""

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
        self._on: dict[type, Callable[[int, Any, float], None]] = {
            Pub: self._on_pub,
            Ack: self._on_ack,
            Sub: self._on_sub,
            Act: self._on_act,
            Uns: self._on_uns,
            Packet: self._on_packet,
        }

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
            elif source in self._ids and self._trees.links is None:
                handler(self._ids[source], message, now)
            else:
                raise BadMessage(source, f"{type(message).__name__} is nothing for a peer")
        except Exception:
            self._out.clear()
            self._records.clear()
            raise
        return self._done(now)

    def _receive_other(self, source: str, message: Any, now: float) -> None:
        """Not in this network's words: a session's, or for the machine inside."""
        if isinstance(message, Frame | SessionAck) and message.channel == CHANNEL:
            self._receive_framed(source, message, now)
        else:
            self._pass(self.inner.receive(source, message, now), now)

    def _receive_framed(self, source: str, message: Frame[Any] | SessionAck, now: float) -> None:
        for body in self._trees.take(source, message, now):
            handler = self._on.get(type(body))
            try:
                if handler is None:
                    raise BadMessage(source, f"{type(body).__name__} is nothing for a peer")
                handler(self._ids[source], body, now)
            except BadMessage:
                # It counts as taken, or the session would stand still for ever.
                self._out.append(Note("bad_frame", source))

    def fire(self, timer: str, now: float) -> list[Effect]:
        if timer.startswith(TIMER):
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
                self._on[type(message)](source, message, now)
            except BadMessage:
                self._out.append(Note("bad_frame", self._names[source]))

    def _on_ack(self, child: int, ack: Ack, now: float) -> None:
        over = self._trees.acknowledged(child, ack)
        if over is not None:
            self._complete(*over, now)

    def _done(self, now: float) -> list[Effect]:
        """The input is over: what is written comes first, then what was said."""
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

    # Publications.

    def _on_pub(self, parent: int, pub: Pub[Any], now: float) -> None:
        self._check_source(parent, pub.source, pub.number)
        self._trees.pass_on(parent, (PUB, pub.topic, pub.source, pub.number), pub)
        topic = self._topics.get(pub.topic)
        if topic is None or topic.role != MEMBER or not topic.answers:
            return  # on the way only: a peer that is not in helps all the same
        if topic.phase != "in":
            topic.early.append((parent, pub))
        elif topic.come(pub.source, pub.number):
            if self._trees.bundler is not None:
                self._trees.bundler.came(pub.topic, pub.source)
            self._hand_in(topic, pub, now)
        else:
            self._out.append(Note("duplicate", f"{pub.topic}/{pub.source}:{pub.number}"))

    def _hand_in(self, topic: Topic, pub: Pub[Any], now: float) -> None:
        """A publication addressed to this membership, for the first time."""
        if not topic.wanted:
            return  # the application has left; the peer has not yet
        source = self._names[pub.source]
        if self._placing is not None:
            place = ((pub.topic, pub.source), pub.number)
            self._pass(self._placing.placed(place, source, pub.body, now), now)
        elif 0 < topic.counts[pub.source] <= pub.number:
            self._pass(self.inner.receive(source, pub.body, now), now)

    def _spread(self, name: str, topic: Topic, message: Any, answer: Answer | None) -> int:
        """Send a message of this peer's to all members; its number."""
        number = topic.next
        topic.next += 1
        if number > topic.reserved:
            topic.reserved = number + SEQ_BLOCK - 1
            self._write(name, topic)
        topic.outstanding += 1
        pub = Pub(name, self._me, number, b"", message)
        self._trees.launch((PUB, name, self._me, number), pub, topic.members, answer)
        return number

    def _hand_back(self, name: str, topic: Topic, number: int, message: Any, now: float) -> None:
        """What this peer has spread reaches its own machine, too."""
        if topic.role == MEMBER:
            topic.have[self._me] = number
        if self._placing is not None:
            self._pass(
                self._placing.placed(((name, self._me), number), self.name, message, now), now
            )
        elif topic.role == MEMBER and topic.wanted:
            self._pass(self.inner.receive(self.name, message, now), now)

    # Calls, one after the other.

    def _serve(self, name: str, topic: Topic, now: float) -> None:
        """Do what can be done of what waits, in order."""
        calls = topic.calls
        while calls:
            call = calls[0]
            if isinstance(call, Enter):
                if topic.phase == "in" and topic.role == MEMBER:
                    calls.popleft()  # preset, or a source that has become a member meanwhile
                    if call.role == MEMBER:
                        self._is_wanted(topic)
                        self._tell_joined(name, topic, now)
                elif topic.phase in ("out", "in"):
                    calls.popleft()
                    if call.role == MEMBER:
                        self._is_wanted(topic)
                    self._enter(name, topic, call.role, now)
                else:
                    return
            elif isinstance(call, Exit):
                if topic.phase != "in" or topic.outstanding:
                    return
                calls.popleft()
                self._leave(name, topic, now)
            elif topic.phase == "out":
                calls.appendleft(Enter(SOURCE))
            elif self._may_launch(topic):
                calls.popleft()
                if isinstance(call, Publish):
                    self._launch(name, topic, call, now)
                else:
                    number = self._spread(name, topic, call.message, None)
                    self._hand_back(name, topic, number, call.message, now)
                    self._settle(name, topic, number, now)
            else:
                return

    def _may_launch(self, topic: Topic) -> bool:
        """Whether what this peer publishes on a topic may be launched now."""
        return topic.phase == "in" and topic.outstanding < self.options.window

    def _launch(self, name: str, topic: Topic, call: Publish, now: float) -> None:
        """Now the publication is made: stamped, and sent in the same step."""
        try:
            effects = cast(Client, self.inner).publish(name, call.value, now)
        except InorderError as error:
            self._out.append(Answer(call.call, "refused", str(error)))
            return
        messages = [each.message for each in effects if isinstance(each, Diffuse)]
        assert len(messages) == 1, "a client that launches diffuses each publication once"
        event = messages[0].event
        accepted = Answer(event.id, "accepted")
        self._out.append(Launched(call.call, event))
        self._pass(
            [each for each in effects if not isinstance(each, Diffuse) and each != accepted], now
        )
        number = self._spread(name, topic, messages[0], accepted)
        self._hand_back(name, topic, number, messages[0], now)
        self._settle(name, topic, number, now)

    def _settle(self, name: str, topic: Topic, number: int, now: float) -> None:
        """A wave that goes to nobody is over at once."""
        key = (PUB, name, self._me, number)
        wave = self._trees.over(key)
        if wave is not None:
            self._complete(key, wave, now)

    def _complete(self, key: Key, wave: Wave[Any], now: float) -> None:
        """A wave of this peer's has reached everybody."""
        kind, name, _, number = key
        topic = self._topics[name]
        if kind == PUB:
            topic.outstanding -= 1
            if wave.answer is not None:
                self._out.append(wave.answer)
        elif number != topic.change:
            return
        elif kind == SUB:
            self._is_known(name, topic, wave.standings, now)
        elif kind == UNS:
            topic.phase, topic.role = "out", GONE
            topic.forget()
        else:
            self._is_in(name, topic, wave.standings, now)
        self._serve(name, topic, now)

    # The machine inside.

    def _joined(self, name: str, topic: Topic, now: float) -> None:
        self._tell_joined(name, topic, now)
        early, topic.early = topic.early, []
        for _, pub in early:
            if topic.come(pub.source, pub.number):
                self._hand_in(topic, pub, now)

    def _tell_joined(self, name: str, topic: Topic, now: float) -> None:
        if not topic.wanted:
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
        return not calls and self._trees.idle and getattr(self.inner, "idle", True)

    @property
    def owes(self) -> bool:
        return getattr(self.inner, "owes", False)

    def account(self) -> dict[str, float]:
        counted = self.inner.account() if isinstance(self.inner, Accountable) else {}
        return {**self._trees.account(), **counted}

    # The whole state.

    def packed(self) -> State[Any]:
        """The peer's own state, and the machine's inside."""
        return State(
            self.name, self.peers.names, self.options, self._launches,
            {name: topic.packed() for name, topic in self._topics.items()},
            self._calls, self._trees.packed(), self.inner.snapshot(),
        )  # fmt: skip

    def become(self, state: State[Any]) -> None:
        """Take over the state of a peer with the same machine inside, which is restored already."""
        self._topics = {name: Topic.unpacked(each) for name, each in state.topics.items()}
        self._calls = state.calls
        self._trees.become(state.trees)

    # Recovery.

    def replay(self, record: bytes) -> None:
        if record.startswith(RECORD):
            entry = Record.read(record)
            topic = self._topic(entry.topic)
            topic.change = entry.change
            topic.reserved = entry.reserved
            topic.next = entry.reserved + 1
        elif isinstance(self.inner, Durable):
            self.inner.replay(record)

    def resume(self, now: float) -> list[Effect]:
        if isinstance(self.inner, Durable):
            self._pass(self.inner.resume(now), now)
        return self._done(now)
