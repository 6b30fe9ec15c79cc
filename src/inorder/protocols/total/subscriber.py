"""The subscribing half of a client: one change of its topics at a time, and repair.

Rule 1: changes are walks (path.py), one at a time; the others queue here (R9). The network joins
        a topic before the walk, so nothing numbered after the walk can be missed (R5).
Rule 2: a walk carries a version that only grows (groups.py).
Rule 3: leaving is immediate here, then told. So nothing of the topic is delivered that is ordered
        after the managers forgot us (S7, R3).
Rule 4: an event counts as received once, by topic and number; what is missing is asked for.
Rule 5: a batch that knows of more forgotten holders than we do may have been made without us. Its
        topic is held back until the manager has said whether we are still registered (lease.py).
Rule 6: what is gone for good is said aloud: a note, and an `Answer` named `gap/<topic>`. In hold
        mode the topic is then subscribed again, with a new start; in tag mode life goes on.

A walk marks a point of the total order: where it passed each manager is where the new topics
start (Figure 7 of the report, which raises the counter instead: R6, S3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct, field

from inorder.core.effect import Answer, Effect, Join, Leave, Note, Send, SetTimer
from inorder.core.errors import BadMessage, Misuse, TooLarge
from inorder.core.limits import (
    HELD_EVENTS_MAX,
    REPAIR_EVENTS_MAX,
    STAMP_ENTRIES_MAX,
    TOPICS_PER_SUBSCRIBER_MAX,
)
from inorder.core.numbers import Numbers
from inorder.protocols.session.links import Links
from inorder.protocols.total.directory import Directory
from inorder.protocols.total.engine import Engine, EngineState
from inorder.protocols.total.messages import (
    Events,
    Gone,
    Heartbeat,
    Renew,
    Renewed,
    Repair,
    Walk,
    WalkDone,
)
from inorder.protocols.total.options import Options
from inorder.protocols.total.version import version_of

# Asking again backs off to this many times the first wait.
BACK_OFF_MAX = 16


class Change(Struct):
    """A call that changes what is held; `renew` is our own, after a gap."""

    op: Literal["subscribe", "unsubscribe", "renew"]
    call: str
    topics: list[str]
    # renew: the first number the application will never get.
    first: int = 0


class SubscriberState(Struct):
    # Topics the application wants, with all its calls so far; the calls still to be served.
    wanted: set[str] = set()
    changes: list[Change] = []
    # The change under way: topics the network has not confirmed, then the walk.
    current: Change | None = None
    joining: set[str] = set()
    walking: list[str] | None = None
    count: int = 0
    # Topics whose managers may have us registered.
    registered: set[str] = set()
    engine: EngineState = field(default_factory=EngineState)
    # Which numbers of each topic have come, in order or not.
    numbers: dict[str, Numbers] = {}
    tries: int = 0
    timing: bool = False
    # How many holders each topic has forgotten, as far as its manager has told us, and as far as
    # batches have; the topics held back meanwhile.
    known: dict[str, int] = {}
    claimed: dict[str, int] = {}
    doubted: set[str] = set()
    renewing: bool = False


class Subscriber:
    """Holds topics and delivers their events."""

    def __init__(
        self,
        name: str,
        state: SubscriberState,
        directory: Directory,
        options: Options,
        links: Links[Any],
        life: int,
    ) -> None:
        self.s = state
        self.engine = Engine(state.engine, options)
        self._name = name
        self._directory = directory
        self._options = options
        self._links = links
        self._life = life

    @property
    def idle(self) -> bool:
        """No call under way, nothing held, nothing missing."""
        s = self.s
        missing = any(each.known > each.have for each in s.numbers.values())
        return not (s.current or s.changes or self.engine.held.size or missing or s.doubted)

    # Calls of the application.

    def to_subscribe(self, topics: Iterable[str]) -> list[str]:
        """What a subscribe would add, or an error that changes nothing."""
        named = sorted({*topics})
        for topic in named:
            self._directory.home(topic)  # raises for an unknown topic
        added = [topic for topic in named if topic not in self.s.wanted]
        if not added:
            raise Misuse("subscribe names no topic that is not held already")
        if (size := len(self.s.wanted) + len(added)) > TOPICS_PER_SUBSCRIBER_MAX:
            raise TooLarge("topics of one subscriber", size, TOPICS_PER_SUBSCRIBER_MAX)
        return added

    def subscribe(self, call: str, topics: list[str], now: float) -> list[Effect]:
        """Add topics that `to_subscribe` has found good."""
        self.s.wanted.update(topics)
        self.s.changes.append(Change("subscribe", call, topics))
        return self._next_change(now)

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        """Drop topics at once, also where a subscribe to them is still under way or queued; the
        walk that tells the managers takes its turn."""
        s = self.s
        dropped = sorted({*topics} & s.wanted)
        if not dropped:
            raise Misuse("unsubscribe names no topic that is held")
        s.wanted.difference_update(dropped)
        joined = [t for t in dropped if t in s.engine.active or t in s.engine.pending]
        for change in [*s.changes, *([s.current] if s.current else [])]:
            if change.op != "unsubscribe":
                change.topics = [t for t in change.topics if t not in dropped]
        self.engine.drop(dropped, now)
        for topic in dropped:
            s.numbers.pop(topic, None)
            s.known.pop(topic, None)
            s.claimed.pop(topic, None)
        s.doubted.difference_update(dropped)
        s.joining.difference_update(dropped)
        s.changes.append(Change("unsubscribe", call, dropped))
        effects: list[Effect] = [Leave(topic) for topic in joined]
        return [*effects, *self._take_out(), *self._go_on(now)]

    def joined(self, topic: str, now: float) -> list[Effect]:
        """The network has let us in."""
        self.s.joining.discard(topic)
        return self._go_on(now)

    # One change at a time.

    def _next_change(self, now: float) -> list[Effect]:
        """Begin the next change if none is under way. Its topics are pending from here on, and
        block: a walk may pass managers before we know where it did."""
        s = self.s
        effects: list[Effect] = []
        while s.current is None and s.changes:
            s.current = change = s.changes.pop(0)
            if change.op == "subscribe":
                self.engine.suspend(change.topics)
                s.joining = {*change.topics}
                effects += [Join(topic) for topic in change.topics]
            elif change.op == "renew":
                self.engine.suspend(change.topics)
            effects += self._go_on(now)
        return effects

    def _go_on(self, now: float) -> list[Effect]:
        """Start the walk of the current change once nothing is in its way."""
        s = self.s
        if s.current is None:
            return self._next_change(now)
        if s.joining or s.walking is not None:
            return []
        held = sorted(s.engine.active | s.engine.pending)
        visit = sorted({*held} | s.registered)
        begun = s.engine.pending - s.doubted
        if not visit or (not begun and s.registered <= {*held}):
            # Nobody has to be told anything: the topics were dropped before they were held.
            return self._finish_change(now)
        s.count += 1
        s.walking = held
        s.registered = {*visit}
        self._walk()
        return []

    def _walk(self) -> None:
        """The walk under way, from the lowest topic in the first order; if the order has changed,
        the stage passes it on."""
        s = self.s
        assert s.walking is not None
        visit = sorted(s.registered)
        version = version_of(self._life, s.count)
        walk = Walk(self._name, version, tuple(s.walking), tuple(visit))
        self._links.post(self._directory.home(self._directory.lowest(visit)), walk)

    def walk_again(self) -> None:
        """A stage has forgotten its session with us, perhaps with the end of our walk, and others
        may have forgotten that it passed: only a new version is registered everywhere."""
        if self.s.walking is not None:
            self.s.count += 1
            self._walk()

    def on_walk_done(self, source: str, done: WalkDone, now: float) -> list[Effect]:
        """The new topics start behind the walk. Old topics keep their clocks (S5, R4): what is in
        flight on them is still owed."""
        s = self.s
        current = version_of(self._life, s.count)
        if done.version < current or (done.version == current and s.walking is None):
            return [Note("old_walk")]
        if done.version > current:
            raise BadMessage(source, f"ends a walk that is not under way ({done.version})")
        if done.subscriber != self._name or not s.engine.pending <= {t for t, _ in done.stamp}:
            raise BadMessage(source, "ends a walk without saying where it started")
        assert s.walking is not None
        s.registered = {*s.walking}
        s.walking = None
        started = sorted(s.engine.pending - s.doubted - self._lapsed())
        self.engine.activate(started, done.stamp, now)
        forgotten = dict(done.forgotten)
        for topic in started:
            s.known[topic] = forgotten.get(topic, 0)
            s.numbers[topic] = Numbers.after(s.engine.start[topic])
            for _, number in self.engine.held.keys(topic):
                s.numbers[topic].add(number)
        effects = self._take_out()
        answer = self._finish_change(now)
        doubts = [each for topic in started for each in self._doubt(topic)]
        # The application learns that it holds the topics before it gets their events.
        self.engine.awaken([topic for topic in started if topic not in s.doubted], now)
        return [*effects, *answer, *self._take_out(), *doubts, *self._mind(started), *self._arm()]

    def _lapsed(self) -> set[str]:
        """The topics that wait for a walk of their own: one that was under way when they were
        forgotten may have passed their managers before."""
        return {
            topic for change in self.s.changes if change.op == "renew" for topic in change.topics
        }

    def _finish_change(self, now: float) -> list[Effect]:
        change = self.s.current
        assert change is not None
        self.s.current = None
        answers: list[Effect] = []
        if change.op != "renew":
            answers.append(Answer(change.call, "done"))
        for topic in change.topics if change.op == "renew" else ():
            # Only now is it known how far the gap reaches: what was held back is given up too.
            # (A topic that was left meanwhile is not in the list any more.)
            answers.append(_gap(topic, change.first, self.s.engine.start[topic]))
        return [*answers, *self._next_change(now)]

    # Events.

    def on_events(self, source: str, batch: Events, now: float) -> list[Effect]:
        """The network hands over a batch: diffused, repaired, or a copy of either."""
        self._check(source, batch)
        s = self.s
        topic = batch.topic
        if topic not in s.engine.active and topic not in s.engine.pending:
            return []  # left meanwhile (R8: not to be handed on as late)
        doubts: list[Effect] = []
        if batch.forgotten > s.claimed.get(topic, 0):
            s.claimed[topic] = batch.forgotten
            doubts = self._doubt(topic)
        active = topic in s.engine.active
        taken = (active and self._take_whole(batch, now)) or self._take_singly(batch, active, now)
        touched = [topic]
        for other, number in batch.stamp:
            if other in s.numbers and s.numbers[other].hear(number):
                touched.append(other)
        if active and s.numbers[topic].behind > HELD_EVENTS_MAX:
            # Tag only (hold stops reading before): a hole this old is not worth remembering.
            first, last = next(s.numbers[topic].holes(0, s.numbers[topic].top))
            s.numbers[topic].skip(last)
            self.engine.out += [Note("hole_given_up", topic), _gap(topic, first, last)]
            self.engine.give_up(topic, last, now)
        hurry = self._hurry() if taken else []
        return [*self._take_out(), *doubts, *self._mind(touched), *hurry]

    def _take_whole(self, batch: Events, now: float) -> bool:
        """The usual case: the next numbers of the topic, and nothing stands before them."""
        topic, first, epoch, stamp = batch.topic, batch.first, batch.epoch, batch.stamp
        if not self.engine.passes(topic, first, epoch, stamp):
            return False
        if not self.s.numbers[topic].extend(first, len(batch.events)):
            return False
        self.engine.deliver_batch(topic, first, epoch, stamp, batch.events, now)
        return True

    def _take_singly(self, batch: Events, active: bool, now: float) -> bool:
        """One by one: some we have, some must wait, some may be late. True if any was new."""
        topic = batch.topic
        taken = False
        start, numbers = self.s.engine.start, self.s.numbers
        counted = active or topic in self.s.doubted
        for number, event in enumerate(batch.events, batch.first):
            key = (topic, number)
            if counted:
                if number <= start[topic] or number in numbers[topic]:
                    continue
            elif key in self.engine.held:
                continue
            if not self.engine.arrive(key, batch.epoch, batch.stamp, event, now):
                if counted:
                    numbers[topic].hear(batch.first + len(batch.events) - 1)
                break  # no room: it and what follows will be asked for again
            taken = True
            if counted:
                numbers[topic].add(number)
        return taken

    def on_heartbeat(self, source: str, beat: Heartbeat, now: float) -> list[Effect]:
        """The topic has come so far and rests. What we have shows at our next renewal."""
        self._check_home(source, beat.topic)
        if beat.topic not in self.s.engine.active:
            return []  # left, or what we have is known when the walk is done
        self.s.numbers[beat.topic].hear(beat.number)
        return self._mind([beat.topic])

    def on_gone(self, source: str, gone: Gone, now: float) -> list[Effect]:
        """We were away for longer than the manager keeps events (section 8: retention)."""
        self._check_home(source, gone.topic)
        s = self.s
        topic = gone.topic
        if topic not in s.engine.active or gone.last <= s.numbers[topic].have:
            return []
        first = s.numbers[topic].have + 1
        s.numbers[topic].skip(gone.last)
        note = Note("gone", f"{topic} {first} to {gone.last} at the latest")
        if self._options.mode != "hold":
            self.engine.give_up(topic, gone.last, now)
            return [note, _gap(topic, first, gone.last), *self._take_out()]
        s.changes.append(Change("renew", "", [topic], s.engine.clock[topic] + 1))
        return [note, *self._next_change(now)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        kind, _, rest = timer.partition("/")
        if kind == "ttl":
            topic, _, number = rest.rpartition("/")
            self.engine.expire((topic, int(number)), now)
            return self._take_out()
        if kind == "renew":
            return self._renew()
        assert timer == "repair", timer
        return self._ask(now)

    # Leases.

    def _doubt(self, topic: str) -> list[Effect]:
        """Hold a topic back if its manager may have forgotten us, and ask."""
        s = self.s
        if s.claimed.get(topic, 0) <= s.known.get(topic, 0) or topic not in s.engine.active:
            return []
        self.engine.suspend([topic])
        s.doubted.add(topic)
        return [Note("doubt", topic), *self._renewals([topic])]

    def on_renewed(self, source: str, renewed: Renewed, now: float) -> list[Effect]:
        """What the manager says of topics that have forgotten somebody; old news change nothing."""
        s = self.s
        for topic, *_ in renewed.topics:
            self._check_home(source, topic)
        effects: list[Effect] = []
        for topic, known, forgotten, kept in renewed.topics:
            held = topic in s.engine.active or topic in s.doubted
            if not held or known != s.known[topic] or forgotten <= known:
                continue  # an answer to what we asked when we knew less, or held something else
            if not kept:
                effects += self._begin_again(topic, now)
                continue
            s.known[topic] = forgotten
            if topic in s.doubted and s.claimed.get(topic, 0) <= forgotten:
                s.doubted.discard(topic)
                self.engine.resume([topic])
                self.engine.awaken([topic], now)
                effects += self._take_out()
        return effects

    def _begin_again(self, topic: str, now: float) -> list[Effect]:
        """We were forgotten: what was published meanwhile is lost, and we walk anew."""
        s = self.s
        s.doubted.discard(topic)
        self.engine.suspend([topic])
        # The clock is ahead of what has come if stamps of other topics have raised it (tag).
        first = min(s.engine.clock[topic], s.numbers[topic].have) + 1
        s.changes.append(Change("renew", "", [topic], first))
        return [Note("lapsed", topic), *self._next_change(now)]

    def _arm(self) -> list[Effect]:
        s = self.s
        if s.renewing or not self._options.leased or not s.numbers:
            return []
        s.renewing = True
        return [SetTimer("renew", self._options.renew, background=True)]

    def _renew(self) -> list[Effect]:
        """Say that we are there, for as long as we hold anything."""
        s = self.s
        s.renewing = False
        return [*self._renewals(sorted(s.engine.active | s.doubted)), *self._arm()]

    def _renewals(self, topics: list[str]) -> list[Effect]:
        """One message to each stage, of what we hold there and how far it has come."""
        s = self.s
        homes: dict[str, list[tuple[str, int, int]]] = {}
        for topic in topics:
            standing = (topic, s.numbers[topic].have, s.known[topic])
            homes.setdefault(self._directory.home(topic), []).append(standing)
        return [Send(home, Renew(tuple(homes[home]))) for home in sorted(homes)]

    # Repair.

    def _mind(self, topics: Iterable[str]) -> list[Effect]:
        """Ask for what is missing, if it does not come by itself soon."""
        s = self.s
        if s.timing:
            return []
        for topic in topics:
            numbers = s.numbers.get(topic)
            if topic in s.doubted or (numbers is not None and numbers.known > numbers.have):
                s.timing = True
                s.tries = 0
                return [SetTimer("repair", self._options.repair)]
        return []

    def _hurry(self) -> list[Effect]:
        """Repair makes progress: ask for the rest soon, however patient we have become."""
        if not self.s.timing or not self.s.tries:
            return []
        self.s.tries = 0
        return [SetTimer("repair", self._options.repair)]

    def _ask(self, now: float) -> list[Effect]:
        s = self.s
        s.timing = False
        effects: list[Effect] = []
        for topic in sorted(s.engine.active):
            if hole := s.numbers[topic].missing(REPAIR_EVENTS_MAX):
                effects.append(Send(self._directory.home(topic), Repair(topic, *hole)))
        effects += self._renewals(sorted(s.doubted))
        if effects:
            s.timing = True
            s.tries += 1
            wait_s = self._options.repair * min(2**s.tries, BACK_OFF_MAX)
            effects += [Note("repair_asked"), SetTimer("repair", wait_s)]
        return effects

    def _check_home(self, source: str, topic: str) -> None:
        if topic not in self._directory or source != self._directory.home(topic):
            raise BadMessage(source, f"is not home to {topic}")

    def _check(self, source: str, batch: Events) -> None:
        """Raise unless the sender may diffuse this. A stamp from the future cannot be told from
        one whose predecessors are late: it waits (hold) or passes (tag), and is asked about."""
        foreign = [event for event in batch.events if event.publisher != source]
        if self._options.diffusion == "manager" or foreign or batch.topic not in self._directory:
            self._check_home(source, batch.topic)
        if batch.first < 1 or len(batch.stamp) > STAMP_ENTRIES_MAX:
            raise BadMessage(source, f"a stamp of {batch.topic} that nobody gave")
        if not batch.events:
            raise BadMessage(source, f"an empty batch of {batch.topic}")
        for event in batch.events:
            if event.topic != batch.topic:
                raise BadMessage(source, f"{event.id} is not on {batch.topic}")

    def _take_out(self) -> list[Effect]:
        effects, self.engine.out = self.engine.out, []
        return effects


def _gap(topic: str, first: int, last: int) -> Answer:
    """Tell the application, which did not ask, what it will not get."""
    return Answer(f"gap/{topic}", "gap", f"{topic} {first} to {last} at the latest")
