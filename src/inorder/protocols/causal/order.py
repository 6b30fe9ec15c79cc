"""Whose turn it is: events go when all that they rest on has gone.

Peer 0 asks, peer 1 answers, and peer 2 gets the answer first. Peer 2 knows that peer 0 begins
with 1, and the answer names peer 0's 1: the answer waits. Had peer 0 begun with 2, peer 0
would never send 1 to peer 2, and the answer would go at once.

Rule 1: an event goes when it is its publisher's next one, and every place that it names has been
        taken in, or belongs to an origin that has not begun, or to a topic that is not joined.
Rule 2: an event whose turn has come is handed over if its number counts and the application holds
        the topic. Otherwise it only sets the order: its past becomes part of this client's (P14).
Rule 3: an event that waits waits for one place at a time (core/waiting.py). The index is no part of
        the state: events released together go in the order of their places, so that an index
        built again behaves alike.
Rule 4: an event that rests on a lost one is discarded, wherever in the chain the loss is. The
        application hears of it once for each loss and topic that it costs an event (`gap`).
Rule 5: nothing that waits is dropped for want of room. A network looks at `waiting`, and delays its
        acknowledgements, so that publishers stop at their windows.

Theory. Numbers have no holes for a receiver from where an origin begins, so everything that is
waited for is on its way, or lost: the wait ends. What counts was published after everybody had
begun to address this client, so that a chain of direct causes between two such events has no
middle that was addressed to others only.
"""

from __future__ import annotations

from collections.abc import Iterable

from inorder.core.effect import Answer, Deliver, Effect, Note
from inorder.core.place import Origin, Place, Places
from inorder.core.waiting import Waiting
from inorder.protocols.causal.messages import Published
from inorder.protocols.causal.session import Session
from inorder.protocols.causal.stamp import Stamps


class Order:
    """All topics of a client; `out` collects the effects of the input in progress."""

    def __init__(self, stamps: Stamps) -> None:
        self.stamps = stamps
        self.sessions: dict[str, Session] = {}
        self.held: dict[Place, Published] = {}
        # Topics on which the application has heard of the last loss.
        self.announced: list[str] = []
        self.out: list[Effect] = []
        self._index: Waiting[Place, Place] = Waiting()
        # When events began to wait: only to report it, hence no part of the state.
        self._since: dict[Place, float] = {}
        # Whether any session has gaps: if not, an event is not compared with them.
        self._gaps = False

    # Topics.

    def open(self, topic: str) -> None:
        self.sessions.setdefault(topic, Session())

    def hold(self, topics: Iterable[str]) -> None:
        """The topics whose events the application gets from now on."""
        active = {*topics}
        for topic, session in self.sessions.items():
            session.active = topic in active

    def begins(self, origin: Origin, start: int, counts: int) -> None:
        session = self.sessions.get(origin[0])
        if session is None:
            return  # left meanwhile
        session.begins(origin[1], start, counts)

    def join(self, topic: str, now: float) -> None:
        """All origins have begun: look at what came too early."""
        session = self.sessions.get(topic)
        if session is None or session.joined:
            return
        session.joined = True
        for peer, number in self.stamps.reached(topic):
            if 0 < session.due[peer] <= number:
                session.counts[peer] = max(session.counts.get(peer, 0), number + 1)
        early = sorted(place for place in self.held if place[0][0] == topic)
        freed: list[Place] = []
        for place in early:
            message = self.held[place]
            if self._is_new(session, place, message):
                self._settle(session, place, message, now, freed)
            else:
                self._forget(place)
        self._go_on(freed, now)

    def leave(self, topics: Iterable[str], now: float) -> None:
        """Forget these topics; what waited for something of theirs may go."""
        left = {*topics}
        for topic in sorted(left):
            self.sessions.pop(topic, None)
        for place in [place for place in self.held if place[0][0] in left]:
            self._forget(place)
        self._gaps = any(session.gaps for session in self.sessions.values())
        self._look_again(now)

    def forget(self, stamps: Stamps) -> None:
        """Everything begins anew, but which topics there are, and which the application holds."""
        self.stamps = stamps
        self.held.clear()
        self._since.clear()
        self._index = Waiting()
        self.announced = []
        self._gaps = False
        for topic, former in self.sessions.items():
            session = self.sessions[topic] = Session()
            session.active = former.active

    # Events.

    def launched(self, place: Place, message: Published, now: float) -> None:
        """An event of one's own: all that it rests on has been taken in."""
        origin, number = place
        self.stamps.launched(origin, number)
        session = self.sessions.get(origin[0])
        if session is None:
            return
        session.pass_by(origin[1], number)
        if session.active:
            self.out.append(Deliver(message.event))
        self._go_on([place], now)

    def arrive(self, place: Place, message: Published, now: float) -> None:
        """An event of another publisher."""
        session = self.sessions.get(place[0][0])
        if session is None:
            return  # left meanwhile
        if place in self.held:
            self.out.append(Note("duplicate", message.event.id))
        elif self._gaps and self._rests_on_lost(place, message):
            self._discard(place, message)
            if not session.is_lost(place[0][1], place[1]):
                self._doom([place], now)
        elif not session.joined:
            self._hold(place, message, now)
        elif self._is_new(session, place, message):
            freed: list[Place] = []
            self._settle(session, place, message, now, freed)
            if freed:
                self._go_on(freed, now)

    def _is_new(self, session: Session, place: Place, message: Published) -> bool:
        """Whether an event is addressed to this session, and for the first time."""
        due = session.due[place[0][1]]
        if 0 < due <= place[1]:
            return True
        self.out.append(Note("duplicate" if due else "unannounced", message.event.id))
        return False

    def missing(self, session: Session, place: Place, message: Published) -> Place | None:
        """The first thing that an event has to wait for. It changes nothing, least of all the
        stamp (P10)."""
        origin, number = place
        topic, peer = origin
        due = session.due
        if number > due[peer]:
            return origin, number - 1
        for cause, last in message.places:
            if 0 < due[cause] <= last:
                return (topic, cause), last
        for other, places in message.others:
            there = self.sessions.get(other)
            if there is not None and there.joined:
                for cause, last in places:
                    if 0 < there.due[cause] <= last:
                        return (other, cause), last
        return None

    def _settle(
        self, session: Session, place: Place, message: Published, now: float, freed: list[Place]
    ) -> None:
        """Take an event in, or let it wait; `freed` grows by what it sets free."""
        missing = self.missing(session, place, message)
        if missing is not None:
            if place not in self.held:
                self._hold(place, message, now)
            self._index.wait(place, missing)
            return
        origin, number = place
        counts = session.pass_by(origin[1], number)
        self.stamps.taken_in(origin, number, message)
        since = self._forget(place) if self.held else None
        if counts and session.active:
            self.out.append(Deliver(message.event, True, 0.0 if since is None else now - since))
        freed.append(place)
        if session.gaps and (end := session.leap(origin[1])):
            freed.append((origin, end))

    def _go_on(self, freed: list[Place], now: float) -> None:
        """Look again at whatever waited for these; the list grows while it is walked."""
        for place in freed:
            if not self._index:
                return
            for waiter in sorted(self._index.release(place)):
                session = self.sessions[waiter[0][0]]
                self._settle(session, waiter, self.held[waiter], now, freed)

    def _look_again(self, now: float) -> None:
        """Build the index from what waits, and let go what waits for nothing."""
        self._index = Waiting()
        freed: list[Place] = []
        for place in sorted(self.held):
            session = self.sessions[place[0][0]]
            if session.joined:
                self._settle(session, place, self.held[place], now, freed)
        self._go_on(freed, now)

    def _hold(self, place: Place, message: Published, now: float) -> None:
        self.held[place] = message
        self._since[place] = now

    def _forget(self, place: Place) -> float | None:
        """An event waits no longer; since when it has, if it has."""
        self.held.pop(place, None)
        return self._since.pop(place, None)

    # Losses.

    def lost(self, place: Place, now: float) -> None:
        origin, number = place
        session = self.sessions.get(origin[0])
        if session is None or not session.due[origin[1]]:
            return
        firsts: list[Place] = []
        for missing in session.lives(origin[1]):
            while (origin, missing) in self.held:
                missing += 1
            if missing <= number and not session.is_lost(origin[1], missing):
                firsts.append((origin, missing))
        if firsts:
            self.announced = []
            self._doom(firsts, now)

    def _doom(self, firsts: list[Place], now: float) -> None:
        """These places will not be taken in: open their gaps, and discard what rests on them."""
        resting = self._resting()
        for origin, number in firsts:  # grows while it is walked
            session = self.sessions[origin[0]]
            if session.is_lost(origin[1], number):
                continue
            session.open_gap(origin[1], number)
            self._gaps = True
            for place in resting.get(origin, ()):
                message = self.held.get(place)
                if message is not None and self._rests_on_lost(place, message):
                    self._discard(place, message)
                    firsts.append(place)
        for origin, _ in firsts:
            self.sessions[origin[0]].leap(origin[1])
        self._look_again(now)

    def _resting(self) -> dict[Origin, list[Place]]:
        """By origin, what waits and is of it or names it."""
        resting: dict[Origin, list[Place]] = {}
        for place in sorted(self.held):
            message = self.held[place]
            topic = place[0][0]
            resting.setdefault(place[0], []).append(place)
            for named, places in ((topic, message.places), *message.others):
                for cause, _ in places:
                    resting.setdefault((named, cause), []).append(place)
        return resting

    def _rests_on_lost(self, place: Place, message: Published) -> bool:
        """Whether an event is lost, or rests on a lost one, as far as its own stamp tells."""
        (topic, peer), number = place
        if self.sessions[topic].is_lost(peer, number):
            return True
        for named, places in ((topic, message.places), *message.others):
            session = self.sessions.get(named)
            if session is not None and any(session.is_lost(*cause) for cause in places):
                return True
        return False

    def _discard(self, place: Place, message: Published) -> None:
        self._forget(place)
        self.out.append(Note("discarded", message.event.id))
        self._announce(place[0][0])

    def _announce(self, topic: str) -> None:
        """Tell the application that events of this topic are gone for good."""
        if topic not in self.announced and self.sessions[topic].active:
            self.announced = sorted([*self.announced, topic])
            self.out.append(Answer(f"gap/{topic}", "gap", f"events of {topic} are lost"))

    # For the network, and for snapshots.

    def expanded(self, place: Place) -> Places | None:
        """See `Client.expanded`."""
        origin, number = place
        session = self.sessions.get(origin[0])
        due = session.due[origin[1]] if session is not None else 0
        if session is None or not due:
            return None
        if number < due:
            return ()
        wanted: dict[int, int] = {}
        for earlier in range(due if self.stamps.chained else number, number + 1):
            message = self.held.get((origin, earlier))
            if message is None:
                return None
            for cause, last in message.places:
                if 0 < session.due[cause] <= last:
                    wanted[cause] = max(last, wanted.get(cause, 0))
        if number > due:
            wanted[origin[1]] = number - 1
        return tuple(sorted(wanted.items()))

    def become(self, sessions: dict[str, Session], held: Iterable[tuple[Place, Published]]) -> None:
        """Take over a state; nothing of what waits is due."""
        self.sessions = sessions
        self.held = dict(held)
        self._gaps = any(session.gaps for session in sessions.values())
        self._look_again(0.0)
