"""What an application publishes and subscribes through: its own last filter, and its versions.

Rule 1: an event is handed over iff it matches at that instant, with the values of that instant. So
        no handler ever sees what its subscription does not want any more, however late the network
        learns of a change; such events are counted as spurious and dropped.
Rule 2: an update is all or nothing, one version and one message, however many values change. An
        update from inside a handler counts from the next event on.
Rule 3: an event is handed over once. It comes once while a link lasts; ids of the last events
        recognise one that is sent again after a link broke.
Rule 4: a client that connects again says what it wants now, never what has changed: a change that
        was under way may be lost.
Rule 5: event numbers are never used twice: they are reserved on disk in blocks.

Theory: "Parametric Subscriptions for Content-Based Publish/Subscribe Networks", Sec. 3.3 and Fig. 5
(STRICTNESS). The two ways to update without parameters that the paper compares with (Sec. 4.2) are
here as modes: `break` takes the old subscription back and then makes the new one, and may lose
events; `make` does it the other way round, and takes the old one back when the new one is in force
or after `patience` seconds (waiting for an event that only the new one wants, as the paper advises,
never ends for a narrowing: E-C16).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import msgspec
from msgspec import Struct

from inorder.content.choices import engine_named
from inorder.content.door import topic_problem
from inorder.content.engine import Engine
from inorder.content.messages import (
    Adv,
    Attach,
    Err,
    Installed,
    Pub,
    Replace,
    Set,
    Sub,
    Unsub,
)
from inorder.content.predicate import Predicate
from inorder.content.recent import Recent, Seen
from inorder.content.state import pack_state, state_unpacker
from inorder.content.subscription import Subscription, SubscriptionState, checked_forms
from inorder.content.value import kind_of
from inorder.core.effect import Answer, CancelTimer, Effect, Note, Persist, Send, SetTimer
from inorder.core.errors import BadMessage, Misuse, PredicateError
from inorder.core.event import Event, Scalar, event_id
from inorder.core.limits import (
    CONTENT_ADVERTISED_MAX,
    CONTENT_CLIENT_EVENTS_SEEN,
    CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX,
)
from inorder.core.member import SEQ_BLOCK
from inorder.core.pack import pack

Mode = Literal["parametric", "break", "make"]


class Handed(Struct, frozen=True, gc=False):
    """An effect of this client only: an event for the subscriptions `sids`."""

    pub: Pub
    sids: tuple[int, ...]

    @property
    def event(self) -> Event:
        """As applications know it."""
        pub = self.pub
        return Event(pub.publisher, pub.seq, pub.topic, pub.attributes or {})


class _State(Struct):
    name: str
    edge: str
    mode: Mode
    patience: float
    auto_advertise: bool
    next_seq: int = 1
    reserved: int = 0
    next_sid: int = 1
    next_wire: int = 1
    connected: bool = False
    life: int | None = None
    advertised: dict[str, bool] = {}
    subscriptions: dict[int, SubscriptionState] = {}
    seen: list[Seen] = []


_unpack = state_unpacker(_State)

Effects = list[Effect | Handed]


class Client:
    """The machine of one application, at one edge broker."""

    def __init__(
        self,
        name: str,
        edge: str,
        *,
        mode: Mode = "parametric",
        patience: float = 1.0,
        auto_advertise: bool = False,
        first_wire: int = 1,
    ) -> None:
        """`first_wire` is above all numbers of subscriptions that an earlier life, which this one
        does not remember, has told the edge."""
        state = _State(name, edge, mode, patience, auto_advertise, next_wire=first_wire)
        self._become(state)

    def _become(self, state: _State) -> None:
        self._s = state
        self._recent = Recent(CONTENT_CLIENT_EVENTS_SEEN, state.seen)
        self._engines: dict[str, Engine] = {}
        self._make_engine = engine_named("naive")
        self._subscriptions: dict[int, Subscription] = {}
        self._wires: dict[int, int] = {}
        self._counts: dict[str, float] = {}
        for sid, known in sorted(state.subscriptions.items()):
            self._know(sid, Subscription.restored(known))
            self._wires[known.wire] = sid
        self._on: dict[type, Callable[[Any], Effects]] = {
            Pub: self._on_pub,
            Installed: self._on_installed,
            Err: self._on_err,
        }

    @property
    def name(self) -> str:
        return self._s.name

    @property
    def next_seq(self) -> int:
        return self._s.next_seq

    @property
    def sids(self) -> tuple[int, ...]:
        return tuple(sorted(self._subscriptions))

    def account(self) -> dict[str, float]:
        return dict(self._counts)

    # The link.

    def connect(self, now: float, edge: str | None = None) -> list[Effect]:
        """The link to the edge is up, for the first time or again: say everything."""
        s = self._s
        s.edge = s.edge if edge is None else edge
        s.connected = True
        # Later than every earlier beginning, also of a process that forgot them.
        s.life = max(0 if s.life is None else s.life + 1, int(now * 1e6))
        known = sorted(self._subscriptions.items())
        for _, one in known:
            # Nobody has confirmed anything to this link yet.
            one.s.outdated, one.s.installed = [], 0
        wires = tuple(one.s.wire for _, one in known)
        attach = Attach(tuple(sorted(s.advertised)), wires, s.life)
        return self._send(attach, *(self._sub(one) for _, one in known))

    def disconnect(self, now: float) -> list[Effect]:
        """The link is lost; what is asked for meanwhile is said when it is back."""
        self._s.connected = False
        return []

    # Publishing.

    def advertise(self, topic: str, now: float) -> list[Effect]:
        if trouble := topic_problem(topic):
            raise Misuse(trouble)
        advertised = self._s.advertised
        if topic in advertised:
            return []
        if len(advertised) >= CONTENT_ADVERTISED_MAX:
            raise Misuse(f"no more than {CONTENT_ADVERTISED_MAX} topics can be advertised")
        advertised[topic] = True
        return self._send(Adv(topic, True))

    def unadvertise(self, topic: str, now: float) -> list[Effect]:
        if topic not in self._s.advertised:
            raise PredicateError("NOT_ADVERTISED", f"{topic!r} is not advertised")
        del self._s.advertised[topic]
        return self._send(Adv(topic, False))

    def publish(
        self, topic: str, attributes: Mapping[str, Any] | None, now: float, body: Any = None
    ) -> list[Effect]:
        """Publish an event; None as attributes is for everybody who wants anything of the topic.

        An attribute of no kind (a list, NaN) is absent, and counted.
        """
        s = self._s
        if not s.connected:
            raise Misuse(f"{s.name} is not connected")
        effects: list[Effect] = []
        if topic not in s.advertised:
            if not s.auto_advertise:
                raise PredicateError("NOT_ADVERTISED", f"{topic!r} is not advertised")
            effects += self.advertise(topic, now)
        kept: dict[str, Scalar] | None = None
        if attributes is not None:
            kept = {name: value for name, value in attributes.items() if kind_of(value) is not None}
            unfit = [one for one in attributes.values() if one is not None and kind_of(one) is None]
            self._count("attributes_dropped", len(unfit))
        seq = s.next_seq
        if seq > s.reserved:
            s.reserved = seq + SEQ_BLOCK - 1
            effects.insert(0, Persist(pack(s.reserved)))
        s.next_seq = seq + 1
        return [*effects, Send(s.edge, Pub(topic, s.name, seq, kept, body))]

    # Subscribing.

    def subscribe(
        self,
        topic: str,
        predicate: Predicate,
        values: Mapping[str, Any],
        now: float,
        sid: int | None = None,
    ) -> tuple[int, list[Effect]]:
        """A new subscription, under a number of your choice or the next free one."""
        s = self._s
        if trouble := topic_problem(topic):
            raise Misuse(trouble)
        if sid is not None and sid in self._subscriptions:
            raise PredicateError("DUPLICATE_SUBSCRIPTION", f"subscription {sid} exists already")
        if len(self._subscriptions) >= CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX:
            raise Misuse(f"no more than {CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX} subscriptions")
        made = Subscription.make(topic, predicate, values)
        number = s.next_sid if sid is None else sid
        s.next_sid = max(s.next_sid, number + 1)
        self._know(number, made)
        s.subscriptions[number] = made.s
        self._rewire(number, made)
        return number, self._send(self._sub(made))

    def set(self, sid: int, values: Mapping[str, Any], now: float) -> list[Effect]:
        """Give some or all parameters other values, all at once."""
        known = self._known(sid)
        checked = known.predicate.check(values, known.s.values)
        return self._change(sid, known.predicate, checked, now)

    def replace(
        self, sid: int, predicate: Predicate, values: Mapping[str, Any], now: float
    ) -> list[Effect]:
        """Give a subscription another predicate, at once."""
        self._known(sid)
        return self._change(sid, predicate, predicate.check(values), now)

    def unsubscribe(self, sid: int, now: float) -> list[Effect]:
        known = self._known(sid)
        self._engines[known.s.topic].remove(sid)
        if not len(self._engines[known.s.topic]):
            del self._engines[known.s.topic]
        del self._subscriptions[sid], self._s.subscriptions[sid], self._wires[known.s.wire]
        version = known.s.version + 1
        wires = [*known.s.outdated, known.s.wire]
        effects = self._send(*(Unsub(wire, version) for wire in wires))
        return [*effects, CancelTimer(f"outdated/{sid}")] if known.s.outdated else effects

    def installed(self, sid: int) -> int:
        """The last version that is in force everywhere; 0 when none is yet."""
        return self._known(sid).s.installed

    def version(self, sid: int) -> int:
        return self._known(sid).s.version

    def _change(
        self, sid: int, predicate: Predicate, values: dict[str, Any], now: float
    ) -> list[Effect]:
        s, known = self._s, self._subscriptions[sid]
        forms = checked_forms(predicate, values)
        changed = known.changed(forms)
        if changed == ():
            # Other words for the same thing: nobody else needs to know.
            known.take(predicate, values, forms)
            known.s.version -= 1
            return []
        engine = self._engines[known.s.topic]
        if changed is None:
            engine.replace(sid, forms)
        else:
            engine.set(sid, [vector for _, vector in forms])
        known.take(predicate, values, forms)
        if s.mode != "parametric":
            return self._resubscribe(sid, known)
        wire, version = known.s.wire, known.s.version
        if changed is None:
            return self._send(Replace(wire, version, forms))
        return self._send(*self._updates(wire, version, changed))

    def _updates(
        self, wire: int, version: int, changed: tuple[tuple[int, Any], ...]
    ) -> tuple[Set, ...]:
        """One message for all values (E-C7b)."""
        return (Set(wire, version, changed),)

    def _resubscribe(self, sid: int, known: Subscription) -> list[Effect]:
        """The ways without parameters: the new version is another subscription to the network."""
        s, old = self._s, known.s.wire
        self._rewire(sid, known)
        made = self._sub(known)
        if s.mode == "break":
            return self._send(Unsub(old, known.s.version), made)
        known.s.outdated.append(old)
        return [*self._send(made), SetTimer(f"outdated/{sid}", s.patience)]

    def _end_outdated(self, sid: int) -> list[Effect]:
        known = self._subscriptions[sid].s
        old, known.outdated = known.outdated, []
        return self._send(*(Unsub(wire, known.version) for wire in old))

    # Inputs.

    def receive(self, source: str, message: Any, now: float) -> Effects:
        handler = self._on.get(type(message))
        if handler is None or source != self._s.edge:
            raise BadMessage(source, f"{type(message).__name__} is nothing for a client")
        return handler(message)

    def fire(self, timer: str, now: float) -> Effects:
        kind, _, number = timer.partition("/")
        assert kind == "outdated", f"no timer {timer!r} is ever set"
        return [*self._end_outdated(int(number))] if int(number) in self._subscriptions else []

    def _on_pub(self, pub: Pub) -> Effects:
        if self._recent.origin(pub) is not None:
            self._count("repeated")
            return [Note("repeated_event", event_id(pub.publisher, pub.seq))]
        # Also one that does not match: when it comes again it would be out of its order.
        self._recent.add(pub, self._s.edge)
        sids = self._matching(pub)
        if not sids:
            self._count("spurious")
            return [Note("spurious_event", event_id(pub.publisher, pub.seq))]
        self._count("delivered", len(sids))
        return [Handed(pub, sids)]

    def _matching(self, pub: Pub) -> tuple[int, ...]:
        """The subscriptions that want an event at this instant."""
        engine = self._engines.get(pub.topic)
        if engine is None:
            return ()
        if pub.attributes is None:
            known = sorted(self._subscriptions.items())
            return tuple(sid for sid, one in known if one.s.topic == pub.topic and one.can_match())
        return tuple(engine.match(pub.attributes))

    def _on_installed(self, message: Installed) -> Effects:
        sid = self._wires.get(message.sid)
        if sid is None or message.life != self._s.life:
            return []
        known = self._subscriptions[sid].s
        if not known.installed < message.version <= known.version:
            return []
        known.installed = message.version
        effects: Effects = [Answer(f"{sid}/{message.version}", "done")]
        if known.outdated and message.version == known.version:
            effects += [*self._end_outdated(sid), CancelTimer(f"outdated/{sid}")]
        return effects

    def _on_err(self, message: Err) -> Effects:
        reason = f"{message.code}: {message.text}"
        if message.sid == 0:
            return [Answer(event_id(self._s.name, message.version), "refused", reason)]
        sid = self._wires.get(message.sid)
        if sid is None:
            return [Note("refused", reason)]
        return [Answer(f"{sid}/{message.version}", "refused", reason)]

    # Recovery: subscriptions are the application's to make again, numbers are not used twice.

    def replay(self, record: bytes) -> None:
        self._s.reserved = msgspec.msgpack.decode(record, type=int)
        self._s.next_seq = self._s.reserved + 1

    def resume(self, now: float) -> list[Effect]:
        return []

    def snapshot(self) -> bytes:
        self._s.seen = self._recent.state()
        return pack_state(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        client = cls("", "")
        client._become(_unpack(snapshot))
        return client

    # Odds and ends.

    def _known(self, sid: int) -> Subscription:
        if sid not in self._subscriptions:
            raise PredicateError("UNKNOWN_SUBSCRIPTION", f"there is no subscription {sid}")
        return self._subscriptions[sid]

    def _know(self, sid: int, subscription: Subscription) -> None:
        topic = subscription.s.topic
        if topic not in self._engines:
            self._engines[topic] = self._make_engine()
        self._engines[topic].add(sid, subscription.forms)
        self._subscriptions[sid] = subscription

    def _rewire(self, sid: int, subscription: Subscription) -> None:
        """Give a subscription a number of its own with the edge."""
        self._wires.pop(subscription.s.wire, None)
        subscription.s.wire = self._s.next_wire
        self._wires[subscription.s.wire] = sid
        self._s.next_wire += 1

    def _sub(self, subscription: Subscription) -> Sub:
        s = subscription.s
        return Sub(s.wire, s.topic, subscription.forms, s.version)

    def _send(self, *messages: Any) -> list[Effect]:
        """What is said while the link is down is said by `connect` when it is back."""
        if not self._s.connected:
            return []
        return [Send(self._s.edge, message) for message in messages]

    def _count(self, name: str, by: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + by
