"""A broker of content subscriptions: routes events to whoever wants them, and to nobody twice.

Rule 1: brokers form a tree; a link that would close a cycle is refused (overlay.py). Should there
        be one all the same, an event seen on another link before is dropped and counted.
Rule 2: a message is found in order before it changes anything. A broken one raises `BadMessage`; a
        client that asks for what cannot be gets an `Err`.
Rule 3: after each input, or batch of inputs, the broker *settles*: for every topic that changed it
        tells each neighbour, in one message, what follows from the per-link rule (topic.py). The
        rule is about states, so that a batch may be settled once.
Rule 4: `Installed(sid, version)` means: events published from now on, by whoever advertised when
        the version came, meet this version or a later one on their way. A narrowing that smoothing
        holds back on purpose does not count; the client filters what it lets through.
Rule 5: an event comes back to its own publisher if that subscribes to it, unless `echo` is off.

Theory: "Parametric Subscriptions for Content-Based Publish/Subscribe Networks", Sec. 4, gives the
idea of variables local to a link. Its algorithm (Fig. 3 and 6) does not work as printed: errata
E-C1 to E-C19. This one keeps the idea and replaces the propagation.

A broker keeps nothing on disk. A link that is gone for good (`disconnect`) takes along what came by
it. One that begins anew because an end of it has crashed (`renew`, `recover`) gives back what was
known, and nothing that was confirmed is lost meanwhile: repair.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from msgspec import Struct, field

from inorder.content.choices import ENGINE, SUMMARY, engine_named, summary_named
from inorder.content.door import delta_problem, topic_problem
from inorder.content.edge import ClientLink, Edge
from inorder.content.links import Filter, FilterState
from inorder.content.messages import Adv, Bye, Fack, Flt, Hello, Installed, News, Pub, Said
from inorder.content.overlay import Overlay, OverlayState
from inorder.content.recent import Recent, Seen
from inorder.content.repair import TIMER as PATIENCE
from inorder.content.repair import Repair, RepairState
from inorder.content.smoothing import Smoothing
from inorder.content.state import pack_state, state_unpacker
from inorder.content.topic import UNANSWERED, Asked, Topic, TopicState
from inorder.core.effect import CancelTimer, Effect, Note, Send, SetTimer
from inorder.core.errors import BadMessage, Misuse, PeerFault
from inorder.core.limits import (
    CONTENT_BROKER_EVENTS_SEEN,
    CONTENT_BROKER_TOPICS_MAX,
    CONTENT_TREE_MEMBERS_MAX,
    CONTENT_UNCONFIRMED_MAX,
)

TIMER = "filters"


class Settings(Struct, frozen=True):
    """What a broker was built with."""

    engine: str
    summary: str
    smoothing: Smoothing | None
    min_interval: float
    auto_advertise: bool
    echo: bool


class _State(Struct):
    settings: Settings
    overlay: OverlayState
    # Neighbours, and whether their greeting has come; clients.
    neighbours: dict[str, bool] = {}
    clients: dict[str, ClientLink] = {}
    sessions: int = 0
    topics: dict[str, TopicState] = {}
    seen: list[Seen] = []
    # When the timer will run out, if it runs.
    alarm: float | None = None
    repair: RepairState = field(default_factory=RepairState)


_unpack = state_unpacker(_State)


class Broker:
    """The machine of one broker. `engine` and `summary` are names of choices.py."""

    def __init__(
        self,
        name: str,
        *,
        engine: str = ENGINE,
        summary: str = SUMMARY,
        smoothing: Smoothing | None = None,
        min_interval: float = 0.0,
        auto_advertise: bool = False,
        echo: bool = True,
    ) -> None:
        settings = Settings(engine, summary, smoothing, min_interval, auto_advertise, echo)
        self._become(_State(settings, OverlayState(name)))

    def _become(self, state: _State) -> None:
        self._s = state
        self._make_engine = engine_named(state.settings.engine)
        self._make_summary = summary_named(state.settings.summary)
        self._overlay = Overlay(state.overlay)
        self._recent = Recent(CONTENT_BROKER_EVENTS_SEEN, state.seen)
        self._topics = {name: self._topic_of(one) for name, one in sorted(state.topics.items())}
        self._counts: dict[str, float] = {}
        self._edge = Edge(self)
        self.repair = Repair(self, state.repair)
        # Of the input in progress: topics to settle, and (topic, link, number, version) to confirm.
        self._dirty: dict[str, None] = {}
        self._owed: list[tuple[str, str, int, int]] = []
        # When filters that wait must be looked at again, by topic and neighbour.
        self._due: dict[tuple[str, str], float] = {}
        for topic in self._topics.values():
            self._note_due(topic)
        self._on: dict[type, Callable[[str, Any, float], list[Effect]]] = {
            Adv: self._on_adv,
            Flt: self._on_flt,
            Fack: self._on_fack,
            Pub: self._on_pub,
            News: self._on_news,
            Said: self._on_said,
        }

    @property
    def name(self) -> str:
        return self._s.overlay.name

    @property
    def settings(self) -> Settings:
        return self._s.settings

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The neighbours whose links are up."""
        return tuple(sorted(one for one, up in self._s.neighbours.items() if up))

    @property
    def clients(self) -> dict[str, ClientLink]:
        return self._s.clients

    @property
    def topics(self) -> dict[str, Topic]:
        return self._topics

    def account(self) -> dict[str, float]:
        return dict(self._counts)

    # Links.

    def connect(self, neighbour: str, now: float) -> list[Effect]:
        """Begin a link to another broker; it is up when both have greeted each other."""
        if neighbour in self._s.neighbours or neighbour in self._s.clients:
            raise Misuse(f"{self.name} has a link to {neighbour} already")
        if self._overlay.clash((neighbour,)):
            raise Misuse(f"a link from {self.name} to {neighbour} would close a cycle")
        self._s.neighbours[neighbour] = False
        return [Send(neighbour, Hello(self._overlay.beyond(neighbour)))]

    def recover(self, neighbours: tuple[str, ...], clients: tuple[str, ...]) -> list[Effect]:
        """After a crash, before anything else: who must be asked what this broker has forgotten."""
        self._s.neighbours.update(dict.fromkeys(sorted(neighbours), False))
        return self.repair.recover(neighbours, clients)

    def renew(self, neighbour: str, now: float) -> list[Effect]:
        """A link to another broker begins anew: one end may have forgotten everything."""
        if neighbour not in self._s.neighbours:
            return self.connect(neighbour, now)
        self._s.neighbours[neighbour] = False
        for name in self._topics:
            self._due.pop((name, neighbour), None)
        effects = self.repair.renew(neighbour)
        hello = Hello(self._overlay.beyond(neighbour), again=True)
        return [*effects, Send(neighbour, hello), *self._settle(now)]

    def disconnect(self, link: str, now: float) -> list[Effect]:
        """A link, to a broker or a client, is lost: forget what came by it."""
        if link not in self._s.neighbours and link not in self._s.clients:
            raise Misuse(f"{self.name} has no link to {link}")
        return [*self._drop(link), *self._settle(now)]

    def _drop(self, link: str) -> list[Effect]:
        self._s.clients.pop(link, None)
        self._s.neighbours.pop(link, None)
        self.forgive(link)
        self.repair.drop(link)
        for name, topic in self._topics.items():
            topic.silenced(link)
            self._due.pop((name, link), None)
            topic.s.asked.pop(link, None)
            topic.forget(link)
            self._dirty[name] = None
        return self.lose_members(link)

    def lose_members(self, link: str) -> list[Effect]:
        """Nothing is known any more of what is behind a link."""
        left = self._overlay.behind(link)
        self._overlay.remove(left)
        return self._tell(News(left=left), link) if left else []

    def _tell(self, news: News, but: str = "") -> list[Effect]:
        """Also those who have not answered the greeting yet: what it said is out of date now."""
        return [Send(one, news) for one in sorted(self._s.neighbours) if one != but]

    def _on_hello(self, source: str, message: Hello, now: float) -> list[Effect]:
        s = self._s
        if s.neighbours.get(source) or source in s.clients:
            raise BadMessage(source, "greets twice")
        if source not in message.members or len({*message.members}) != len(message.members):
            raise BadMessage(source, "greets without its own name, or with one twice")
        greeted = source in s.neighbours
        if (clash := self._overlay.clash(message.members)) is not None:
            s.neighbours.pop(source, None)
            self._count("cycles_refused")
            reason = f"{clash} is in both trees"
            return [Send(source, Bye(reason)), Note("cycle_refused", f"{source}: {reason}")]
        if len(self._overlay) + len(message.members) > CONTENT_TREE_MEMBERS_MAX:
            raise BadMessage(source, f"makes a tree of more than {CONTENT_TREE_MEMBERS_MAX}")
        mine = Hello(self._overlay.beyond(source))
        s.neighbours[source] = True
        if message.again:
            self.repair.s.asking[source] = True
        self._overlay.add(source, message.members)
        self._dirty.update(dict.fromkeys(self._topics))
        effects: list[Effect] = [] if greeted else [Send(source, mine)]
        return [*effects, *self._tell(News(message.members), source)]

    def _on_news(self, source: str, message: News, now: float) -> list[Effect]:
        behind = {*self._overlay.behind(source)}
        if any(one not in behind for one in message.left) or source in message.left:
            raise BadMessage(source, "takes leave for brokers that are not behind it")
        if (clash := self._overlay.clash(message.joined)) is not None:
            self._count("cycles_cut")
            reason = f"{clash} is on two sides of {self.name}"
            cut: list[Effect] = [Send(source, Bye(reason)), Note("cycle_cut", reason)]
            return [*cut, *self._drop(source)]
        if len(self._overlay) + len(message.joined) > CONTENT_TREE_MEMBERS_MAX:
            raise BadMessage(source, f"makes a tree of more than {CONTENT_TREE_MEMBERS_MAX}")
        self._overlay.remove(message.left)
        self._overlay.add(source, message.joined)
        return self._tell(message, source)

    # Inputs.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        effects = self._handle(source, message, now)
        return [*effects, *self._settle(now)]

    def receive_all(self, inbox: Iterable[tuple[str, Any]], now: float) -> list[Effect]:
        """A whole inbox at once: settled once. Broken messages are left out and noted."""
        effects: list[Effect] = []
        for source, message in inbox:
            try:
                effects += self._handle(source, message, now)
            except PeerFault as error:
                effects.append(Note("bad_message", str(error)))
        return [*effects, *self._settle(now)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        if timer == PATIENCE:
            lost = [Note("client_given_up", client) for client in self.repair.give_up()]
            return [*lost, *self._settle(now)]
        assert timer == TIMER, f"no timer {timer!r} is ever set"
        # The timer has run: what rounding, or a clock set back, says cannot be earlier than that.
        now = now if self._s.alarm is None else max(now, self._s.alarm)
        self._s.alarm = None
        self._dirty.update(dict.fromkeys(name for name, _ in self._due))
        return self._settle(now)

    def _handle(self, source: str, message: Any, now: float) -> list[Effect]:
        kind = type(message)
        if kind is Hello:
            return self._on_hello(source, message, now)
        if kind is Bye and source not in self._s.clients:
            return [Note("bye", f"{source}: {message.reason}"), *self._drop(source)]
        if self._s.neighbours.get(source):
            handler = self._on.get(kind)
            if handler is None:
                raise BadMessage(source, f"{kind.__name__} is nothing a broker says to another")
            return handler(source, message, now)
        if source in self._s.neighbours:
            raise BadMessage(source, f"{kind.__name__} before a greeting")
        return self._edge.handle(source, message)

    def _on_said(self, source: str, message: Said, now: float) -> list[Effect]:
        self.repair.said(source)
        return []

    def _on_adv(self, source: str, message: Adv, now: float) -> list[Effect]:
        if trouble := topic_problem(message.topic):
            raise BadMessage(source, trouble)
        known = self._topics.get(message.topic)
        session = known.s.advertisers.get(source) if known else None
        if self.repair.is_stale(source, message.topic):
            session = None  # of the link as it was before
        if message.on:
            if session is not None or message.session < 1:
                raise BadMessage(source, f"advertises {message.topic!r} twice, or in no session")
            self.topic(message.topic, source).advertised(source, message.session, True)
            self.repair.advertised(source, message.topic)
        elif known is None or session != message.session:
            raise BadMessage(source, f"takes back {message.topic!r}, which it did not advertise")
        else:
            known.silenced(source)
            self._due.pop((message.topic, source), None)
        self.touch(message.topic)
        return []

    def _on_flt(self, source: str, message: Flt, now: float) -> list[Effect]:
        topic = self._topics.get(message.topic)
        if topic is None or not topic.is_current(source, message.session):
            if not 1 <= message.session <= self._s.sessions:
                raise BadMessage(source, f"answers session {message.session}, which never was")
            self._count("filters_stale")
            return [Note("stale_filter", source)]
        asked = topic.s.asked[source]
        if message.version != asked.version + 1 or message.reset != (asked.version == 0):
            problem = f"sends version {message.version} after {asked.version}"
            raise BadMessage(source, f"{problem} (reset: {message.reset})")
        known = topic.s.entries.get(source, {})
        if trouble := delta_problem(message.delta, known, message.reset):
            raise BadMessage(source, trouble)
        self.owe(topic, source, 0, message.version)
        asked.version = message.version
        topic.apply(source, message)
        return []

    def _on_fack(self, source: str, message: Fack, now: float) -> list[Effect]:
        topic = self._topics.get(message.topic)
        state = topic.s.filters.get(source) if topic else None
        if state is None or state.session != message.session:
            return [Note("stale_confirmation", source)]
        if not state.acked < message.version <= state.sent:
            problem = f"confirms {message.version} of {state.acked + 1}..{state.sent}"
            raise BadMessage(source, problem)
        state.acked = message.version
        self.touch(message.topic)
        return []

    def _on_pub(self, source: str, message: Pub, now: float) -> list[Effect]:
        topic = self._topics.get(message.topic)
        if topic is None or source not in topic.s.advertisers:
            raise BadMessage(source, f"publishes on {message.topic!r}, which it did not advertise")
        return self.forward(source, message)

    def forward(self, source: str, pub: Pub) -> list[Effect]:
        """Send an event once to every other link that wants it."""
        origin = self._recent.origin(pub)
        if origin is not None and origin != source:
            self._count("events_on_two_links")
            return [Note("event_on_two_links", f"{pub.publisher}:{pub.seq} {origin} {source}")]
        self._recent.add(pub, source)
        self._count("events")
        back = source in self._s.clients and self._s.settings.echo
        links = self._topics[pub.topic].wanting(pub.attributes)
        effects: list[Effect] = [Send(one, pub) for one in links if one != source or back]
        self._count("events_sent", len(effects))
        return effects

    # What the edge uses too.

    def topic(self, name: str, source: str) -> Topic:
        """The topic of a message that was found in order; its first mention makes it."""
        if name not in self._topics:
            self.require_room([name], source)
            self._s.topics[name] = TopicState(name)
            self._topics[name] = self._topic_of(self._s.topics[name])
            self.repair.look_at(self._topics[name])
        return self._topics[name]

    def require_room(self, names: Iterable[str], source: str) -> None:
        new = sum(name not in self._topics for name in names)
        if len(self._topics) + new > CONTENT_BROKER_TOPICS_MAX:
            raise BadMessage(source, f"makes more than {CONTENT_BROKER_TOPICS_MAX} topics")

    def touch(self, topic: str) -> None:
        self._dirty[topic] = None

    def forgive(self, link: str) -> None:
        """A client begins anew: what it waited for before is not confirmed to it any more."""
        self._owed = [each for each in self._owed if each[1] != link]
        for topic in self._topics.values():
            topic.s.duties.pop(link, None)

    def owe(self, topic: Topic, link: str, number: int, version: int) -> None:
        """A change is confirmed to its link when it is in force; to be called before the change."""
        if len(topic.s.duties.get(link, ())) >= CONTENT_UNCONFIRMED_MAX:
            raise BadMessage(link, f"has {CONTENT_UNCONFIRMED_MAX} changes unconfirmed")
        self._owed.append((topic.s.name, link, number, version))
        self.touch(topic.s.name)

    def _topic_of(self, state: TopicState) -> Topic:
        return Topic(state, self._make_engine(), self._filter_of)

    def _filter_of(self, topic: str, state: FilterState) -> Filter:
        s = self._s.settings
        return Filter(
            topic, state, self._make_summary(), s.smoothing, s.min_interval, CONTENT_UNCONFIRMED_MAX
        )

    def _count(self, name: str, by: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + by

    # Settling.

    def _settle(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        dirty, self._dirty = sorted(self._dirty), {}
        owed, self._owed = self._owed, []
        for name in dirty:
            effects += self._advertise(self._topics[name])
        for name in dirty:
            for neighbour, one in sorted(self._topics[name].filters.items()):
                withheld, sent = one.s.withheld, one.s.sent
                messages = one.step(now)
                if withheld and len(messages) > 1:
                    # Whoever waits for what was withheld waits for the last piece of it.
                    self._topics[name].postpone(neighbour, sent + 1, one.s.sent)
                self._count("filters_sent", len(messages))
                effects += [Send(neighbour, message) for message in messages]
        self.repair.resolve()
        for name, link, number, version in owed:
            if link in self._s.clients or link in self._topics[name].s.asked:
                self._topics[name].owe(link, number, version, self.repair.s.missing)
        for name in dirty:
            effects += self._confirm(self._topics[name])
            self._note_due(self._topics[name])
            if self._topics[name].idle:
                del self._topics[name], self._s.topics[name]
        return [*effects, *self.repair.say(), *self._set_alarm(now)]

    def _advertise(self, topic: Topic) -> list[Effect]:
        effects: list[Effect] = []
        self.repair.look_again(topic)
        for neighbour in self.neighbours:
            asked = topic.s.asked.get(neighbour)
            if topic.is_wanted_by(neighbour) == (asked is not None):
                if asked is None and topic.entry(neighbour, UNANSWERED):
                    topic.forget(neighbour)
                continue
            if asked is None:
                self.repair.opens(topic, neighbour)
                self._s.sessions += 1
                topic.s.asked[neighbour] = Asked(self._s.sessions)
                effects.append(Send(neighbour, Adv(topic.s.name, True, self._s.sessions)))
            else:
                del topic.s.asked[neighbour]
                topic.forget(neighbour)
                effects.append(Send(neighbour, Adv(topic.s.name, False, asked.session)))
        self._count("advertisements_sent", len(effects))
        return effects

    def _confirm(self, topic: Topic) -> list[Effect]:
        effects: list[Effect] = []
        for link, duty in topic.paid():
            if link in self._s.clients:
                life = self._s.clients[link].life
                effects.append(Send(link, Installed(duty.number, duty.version, life)))
            else:
                session = topic.s.asked[link].session
                effects.append(Send(link, Fack(topic.s.name, session, duty.version)))
        return effects

    def _note_due(self, topic: Topic) -> None:
        for neighbour, one in topic.filters.items():
            due = one.due()
            if due is None:
                self._due.pop((topic.s.name, neighbour), None)
            else:
                self._due[(topic.s.name, neighbour)] = due

    def _set_alarm(self, now: float) -> list[Effect]:
        """One timer for all filters that wait for something."""
        s = self._s
        earliest = min(self._due.values(), default=None)
        if earliest == s.alarm:
            return []
        s.alarm = earliest
        if earliest is None:
            return [CancelTimer(TIMER)]
        smoothing = s.settings.smoothing
        longest = max(s.settings.min_interval, smoothing.hold if smoothing else 0.0)
        return [SetTimer(TIMER, min(max(earliest - now, 0.0), longest))]

    def snapshot(self) -> bytes:
        self._s.seen = self._recent.state()
        return pack_state(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        broker = cls("")
        broker._become(_unpack(snapshot))
        return broker
