"""A content subscription in front of any guarantee: match, then order.

Rule 1: the guarantee's machine decides when and in which order an event is delivered; the filter
        decides whether. It is asked at the instant of delivery, with the values of that instant.
Rule 2: a change of values is all or nothing, in force from the call on; `Answer(call, "done")` says
        when everybody concerned knows it: from then on every event that matches is due.
Rule 3: a guarantee that needs to know which events can matter (`want`) is told on every change.

Rule 4: an event that is kept back has its place all the same. In front of a machine that takes
        places (core/place.py) stands a filter that takes them, too; `filtering` chooses.

A topic is held under one filter at a time. Without `where` a topic is held whole, and this machine
only passes things on. Over a network of content brokers a `BrokerLink` (attach.py) turns joins into
subscriptions and diffusions into publications, and tells when a version is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from inorder.content.door import topic_problem
from inorder.content.engine import forms_of
from inorder.content.messages import Pub
from inorder.content.predicate import Predicate
from inorder.core.effect import Answer, Deliver, Diffuse, Effect, Join, Leave
from inorder.core.errors import Misuse, PredicateError
from inorder.core.event import Scalar
from inorder.core.machine import Accountable, Client, Durable
from inorder.core.pack import pack, unpacker
from inorder.core.place import Forgetting, Origin, Place, Places, Placing
from inorder.guarantee.attach import TIMER, WHOLE, BrokerLink, Wanted, added, is_new
from inorder.guarantee.registry import Guarantee, guarantee
from inorder.protocols.fifo.summary import Conjunction, Requirement, equals, has, on_topic


class Filter(Struct):
    """What is wanted of some topics, at present."""

    where: str
    values: dict[str, Any]


class _State(Struct):
    guarantee: str
    inner: bytes
    filters: dict[str, Filter]
    held: dict[str, str]
    filtered: int
    linked: bool


_unpack = unpacker(_State)


class Filtering:
    """A client of some guarantee, with content subscriptions."""

    def __init__(self, ordered: Guarantee, inner: Client, edge: BrokerLink | None = None) -> None:
        self._guarantee = ordered
        self._inner = inner
        self._edge = edge
        # Changes that the brokers have not installed yet: call -> the version of each topic.
        self._waiting: dict[str, dict[str, int]] = {}
        # Topics whose subscription is not installed yet, and the calls that wait for it.
        self._joining: dict[str, str] = {}
        # Topics asked for and not dropped, and by which call.
        self._held: dict[str, str] = {}
        self._filters: dict[str, Filter] = {}
        self._predicates: dict[str, Predicate] = {}
        # Events that the guarantee delivered and the filter kept back.
        self.filtered = 0

    # What applications ask for.

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        return self._passed(self._inner.publish(topic, value, now), now)

    @property
    def next_seq(self) -> int:
        return self._inner.next_seq

    def subscribe(
        self,
        call: str,
        topics: Iterable[str],
        now: float,
        where: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> list[Effect]:
        wanted = sorted({*topics})
        chosen = _filter(where, values)
        for topic in wanted:
            if topic in self._held:
                raise Misuse(f"{topic!r} is held already: set or replace its filter")
            if trouble := topic_problem(topic):
                raise Misuse(trouble)
        effects = self._inner.subscribe(call, wanted, now)
        for topic in wanted:
            self._held[topic] = call
            self._put(topic, chosen)
        self._tell(now)
        return self._passed(effects, now)

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        dropped = sorted({*topics})
        effects = self._inner.unsubscribe(call, dropped, now)
        for topic in dropped:
            self._held.pop(topic, None)
            self._joining.pop(topic, None)
            self._put(topic, None)
        self._tell(now)
        passed = self._passed(effects, now)
        # Nobody waits for a version of what is over.
        return [*passed, *self._answers(dict.fromkeys(dropped))]

    def set(
        self, call: str, topics: Iterable[str], values: Mapping[str, Any], now: float
    ) -> list[Effect]:
        """Move parameters of the filters of these topics; all of them, or none."""
        return self._change(call, {t: self._moved(t, values) for t in sorted({*topics})}, now)

    def replace(
        self,
        call: str,
        topics: Iterable[str],
        where: str,
        values: Mapping[str, Any] | None,
        now: float,
    ) -> list[Effect]:
        """Another filter for these topics."""
        wanted = sorted({*topics})
        for topic in wanted:
            self._known(topic)
        chosen = _filter(where, values)
        assert chosen is not None
        return self._change(call, dict.fromkeys(wanted, chosen), now)

    def _change(self, call: str, changed: dict[str, Filter], now: float) -> list[Effect]:
        for topic, each in changed.items():
            self._put(topic, each)
        self._tell(now)
        if self._edge is None:
            return [Answer(call, "done")]
        effects: list[Effect] = []
        versions: dict[str, int] = {}
        for topic in changed:
            if self._edge.holds(topic):
                effects += self._edge.change(topic, self._wanted(topic), now)
                if not self._edge.is_installed(topic):
                    versions[topic] = self._edge.version(topic)
        self._waiting[call] = versions
        return [*effects, *self._answers({})]

    # Inputs.

    def begin(self, now: float) -> list[Effect]:
        """The link to the broker is up."""
        return self._edge.begin(now) if self._edge else []

    def joined(self, topic: str, now: float) -> list[Effect]:
        effects = self._inner.joined(topic, now)
        self._tell(now)
        return self._passed(effects, now)

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if self._edge and self._edge.is_for_me(source, message):
            effects, bodies = self._edge.receive(message, now)
            for body in bodies:
                effects += self._from_broker(body, now)
            return [*effects, *self._edge.flush(now)]
        return self._passed(self._inner.receive(source, message, now), now)

    def _from_broker(self, message: Any, now: float) -> list[Effect]:
        assert self._edge is not None
        effects, news = self._edge.handle(message, now)
        if isinstance(message, Pub) and is_new(effects):
            inner = self._inner.receive(message.publisher, message.body, now)
            effects = [*effects, *self._passed(inner, now)]
        for topic, version, refused in news:
            if refused:
                effects += self._refused(topic, version, refused, now)
                continue
            # A set that came meanwhile is part of what the join waits for.
            if topic in self._joining and self._edge.is_installed(topic):
                del self._joining[topic]
                effects += self.joined(topic, now)
            effects += self._answers({topic: version})
        return effects

    def _refused(self, topic: str, version: int, reason: str, now: float) -> list[Effect]:
        """The broker would not have it: whoever waits for it is told."""
        answers: list[Effect] = []
        for call, versions in list(self._waiting.items()):
            if versions.get(topic, 0) == version:
                del self._waiting[call]
                answers.append(Answer(call, "refused", reason))
        joining = self._joining.pop(topic, None)
        if joining is None:
            return answers
        # A subscription that never began: the guarantee gives the topic up.
        given_up = self.unsubscribe(joining, [topic], now)
        kept = [each for each in given_up if not isinstance(each, Answer)]
        return [*answers, *kept, Answer(joining, "refused", reason)]

    def _answers(self, news: Mapping[str, int | None]) -> list[Effect]:
        """Answers of changes that nobody waits for any more; None: the topic is not held now."""
        answers: list[Effect] = []
        for call, versions in list(self._waiting.items()):
            for topic, version in news.items():
                if topic in versions and (version is None or version >= versions[topic]):
                    del versions[topic]
            if not versions:
                del self._waiting[call]
                answers.append(Answer(call, "done"))
        return answers

    def fire(self, timer: str, now: float) -> list[Effect]:
        if self._edge and timer.startswith(TIMER):
            return self._edge.fire(timer, now)
        return self._passed(self._inner.fire(timer, now), now)

    @property
    def idle(self) -> bool:
        return getattr(self._inner, "idle", True) and (self._edge is None or self._edge.idle)

    @property
    def owes(self) -> bool:
        return getattr(self._inner, "owes", False)

    def replay(self, record: bytes) -> None:
        if self._edge and self._edge.replay(record):
            return
        if isinstance(self._inner, Durable):
            self._inner.replay(record)

    def resume(self, now: float) -> list[Effect]:
        effects = self._inner.resume(now) if isinstance(self._inner, Durable) else []
        return [*self.begin(now), *self._passed(effects, now)]

    def account(self) -> dict[str, float]:
        counted = self._inner.account() if isinstance(self._inner, Accountable) else {}
        linked = self._edge.account() if self._edge else {}
        return {**added(linked, counted), "filtered": float(self.filtered)}

    def _passed(self, effects: list[Effect], now: float) -> list[Effect]:
        """Effects of the guarantee's machine: deliveries filtered, and the network's way of
        speaking where it has one of its own."""
        out: list[Effect] = []
        edge = self._edge
        for each in effects:
            if isinstance(each, Deliver):
                if self._matches(each):
                    out.append(each)
            elif edge is None:
                out.append(each)
            elif isinstance(each, Diffuse):
                out += edge.diffuse(each, now)
            elif isinstance(each, Join):
                self._joining[each.topic] = self._held[each.topic]
                out += edge.join(each.topic, self._wanted(each.topic), now)
            elif isinstance(each, Leave):
                out += edge.leave(each.topic, now)
            else:
                out.append(each)
        return out

    def _wanted(self, topic: str) -> Wanted:
        chosen = self._filters.get(topic)
        if chosen is None or not self._guarantee.single_events:
            return WHOLE, {}
        return self._predicates[chosen.where], chosen.values

    def _matches(self, delivery: Deliver) -> bool:
        topic = delivery.event.topic
        chosen = self._filters.get(topic)
        if chosen is None:
            return True
        if self._predicates[chosen.where].matches(chosen.values, delivery.event.value):
            return True
        self.filtered += 1
        return False

    # Filters.

    def _known(self, topic: str) -> Filter:
        try:
            return self._filters[topic]
        except KeyError:
            problem = f"topic {topic!r} is not held with a filter"
            raise PredicateError("UNKNOWN_SUBSCRIPTION", problem, None, "") from None

    def _moved(self, topic: str, values: Mapping[str, Any]) -> Filter:
        old = self._known(topic)
        checked = self._predicates[old.where].check(values, old.values)
        return Filter(old.where, checked)

    def _put(self, topic: str, chosen: Filter | None) -> None:
        if chosen is None:
            self._filters.pop(topic, None)
        else:
            self._filters[topic] = chosen
            if chosen.where not in self._predicates:
                self._predicates[chosen.where] = Predicate.parse(chosen.where)
        in_use = {each.where for each in self._filters.values()}
        for where in [each for each in self._predicates if each not in in_use]:
            del self._predicates[where]

    def _tell(self, now: float) -> None:
        """Tell the guarantee which content can matter, if it asks for that."""
        want = getattr(self._inner, "want", None)
        # If the network brings whole topics, everything that is missing may come.
        if want is not None and self._edge is not None:
            want(tuple(self._conjunctions()), now)

    def _conjunctions(self) -> Iterable[Conjunction]:
        for topic, chosen in sorted(self._filters.items()):
            for needs in needs_of(self._predicates[chosen.where], chosen.values):
                yield ((on_topic(topic),), *needs)
        # Topics without a filter are wanted whole; the machine itself knows which it holds.
        others = [topic for topic in self._inner_topics() if topic not in self._filters]
        for topic in others:
            yield ((on_topic(topic),),)

    def _inner_topics(self) -> Sequence[str]:
        return getattr(self._inner, "topics_held", ())

    # Snapshots.

    def snapshot(self) -> bytes:
        state = _State(
            self._guarantee.name, self._inner.snapshot(), self._filters, self._held,
            self.filtered, self._edge is not None,
        )  # fmt: skip
        return pack(state)

    @classmethod
    def restore(cls, snapshot: bytes) -> Filtering:
        state: _State = _unpack(snapshot)
        if state.linked:
            raise Misuse("a link begins anew: build the machine and its link again")
        ordered = guarantee(state.guarantee)
        client = filtering(ordered, ordered.client.restore(state.inner))
        for topic, chosen in state.filters.items():
            client._put(topic, chosen)
        client._held = state.held
        client.filtered = state.filtered
        return client


class PlacedFiltering(Filtering):
    """The same in front of a client that takes places."""

    def begins(self, origin: Origin, start: int, counts: int, now: float) -> list[Effect]:
        return self._passed(self._placing.begins(origin, start, counts, now), now)

    def placed(self, place: Place, source: str, message: Any, now: float) -> list[Effect]:
        return self._passed(self._placing.placed(place, source, message, now), now)

    def lost(self, place: Place, now: float) -> list[Effect]:
        return self._passed(self._placing.lost(place, now), now)

    def forget(self, now: float) -> list[Effect]:
        if isinstance(self._inner, Forgetting):
            return self._passed(self._inner.forget(now), now)
        return []

    def preset(self, topic: str, origins: Any, me: int, now: float = 0.0) -> list[Effect]:
        effects: list[Effect] = cast(Any, self._inner).preset(topic, origins, me, now)
        return self._passed(effects, now)

    def expanded(self, place: Place) -> Places | None:
        wanted: Places | None = cast(Any, self._inner).expanded(place)
        return wanted

    @property
    def waiting(self) -> int:
        """Events held back: by the guarantee, since a filter holds nothing."""
        return getattr(self._inner, "waiting", 0)

    @property
    def _placing(self) -> Placing:
        return cast(Placing, self._inner)


def filtering(ordered: Guarantee, inner: Client, edge: BrokerLink | None = None) -> Filtering:
    """A filter that takes places if, and only if, the client behind it does.

    >>> machines = [guarantee(name).client("s", (), None) for name in ("none", "causal")]
    >>> [isinstance(filtering(guarantee("none"), each), Placing) for each in machines]
    [False, True]
    """
    kind = PlacedFiltering if isinstance(inner, Placing) else Filtering
    return kind(ordered, inner, edge)


def _filter(where: str | None, values: Mapping[str, Any] | None) -> Filter | None:
    if where is None:
        if values:
            raise Misuse("values without a where")
        return None
    return Filter(where, Predicate.parse(where).check(values or {}))


def needs_of(predicate: Predicate, values: Mapping[str, Any]) -> list[Conjunction]:
    """What an event must show, conjunction by conjunction, to match at all (fifo/summary.py).

    >>> cheap = Predicate.parse("firm = 'IBM' AND price < :limit OR vip IS NULL")
    >>> needs_of(cheap, {"limit": 10})
    [(('=4:firmsIBM',), ('?price',)), ()]
    """
    found: list[Conjunction] = []
    for skeleton, vector in forms_of(predicate, values):
        needs: list[Requirement] = []
        for condition in skeleton.conditions():
            name = condition.attribute
            if condition.op in ("=", "in"):
                fillings = [vector[place] for place in condition.places]
                members = [
                    one
                    for each in fillings
                    for one in (each if isinstance(each, tuple) else (each,))
                ]
                needs.append(tuple(equals(name, one) for one in members))
            elif condition.op != "is null":
                needs.append((has(name),))
        found.append(tuple(needs))
    return found
