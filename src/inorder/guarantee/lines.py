"""Links of machines that forget: sessions between two lives, that end with either of them.

p sends e1 to broker b, b passes it on to c and crashes before c has it. p still has e1, because b
has not acknowledged it; b comes back in another life, and p sends e1 again.

Rule 1: a session between two machines is named by the lives of both (session/lives.py), so it
        cannot outlive one of them. A greeting tells the other end one's life until it is known.
Rule 2: an event is acknowledged when everybody to whom it had to be passed on has acknowledged it:
        until then it counts as come and kept. So no event is lost with one machine's memory.
Rule 3: events that were not acknowledged in one session come first in the next one, in their
        order. All else is not said again: what is true then is said anew (content/repair.py).
Rule 4: an event waits until the other end can take it (`gate`), and behind those that wait. So a
        link carries the events of each publisher in their order, and what comes behind a later one
        has come before, or was not wanted then: it is dropped.

What is not promised: behind an event that somebody does not acknowledge, CUSTODY_MAX messages of
its link are waited with; then it counts as passed on, and is lost if this machine crashes, too.
More than LINE_WAITING_MAX events for one peer are dropped, and counted.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from inorder.content.messages import Pub
from inorder.core.effect import CancelTimer, Effect, Note, Send, SetTimer
from inorder.core.errors import BadMessage
from inorder.core.limits import (
    CUSTODY_MAX,
    LINE_PUBLISHERS_MAX,
    LINE_WAITING_MAX,
    LINK_PEERS_MAX,
)
from inorder.protocols.session.book import RESEND
from inorder.protocols.session.links import Links
from inorder.protocols.session.lives import Greeting, Lives, Spoken
from inorder.protocols.session.messages import Ack, Frame

GREET = "greet"
CHANNEL = "content"
WAIT_S_MAX = 8.0


# Publisher, number, and whether it is an event: a publisher's other messages have numbers of their
# own (attach.py).
EventId = tuple[str, int, bool]


class Debt:
    """An event that has come from somebody, and how many copies of it are not acknowledged yet.
    `again` are those of the same event that has come again."""

    __slots__ = ("again", "copies", "event", "number", "source")

    def __init__(self, source: str, number: int, event: EventId) -> None:
        self.source = source
        self.number = number
        self.event = event
        self.copies = 0
        self.again: list[Debt] = []


class Line:
    """What is known of one peer."""

    __slots__ = ("debts", "highest", "open", "tries", "waiting")

    def __init__(self) -> None:
        # How often it was greeted in vain.
        self.tries = 0
        # The debts behind what was sent and not acknowledged, and behind what waits.
        self.debts: deque[Debt | None] = deque()
        self.waiting: deque[tuple[Pub, Debt | None]] = deque()
        # Events of this peer that are not passed on yet, oldest first.
        self.open: deque[Debt] = deque()
        # The highest number of each publisher that has come, those heard of last at the end.
        self.highest: OrderedDict[tuple[str, bool], int] = OrderedDict()


class Lines:
    """All links of one machine. `life` is above all earlier ones."""

    def __init__(
        self, name: str, life: int, resend_s: float, gate: Callable[[str, Pub], bool]
    ) -> None:
        self._lives = Lives(name, life)
        self._name = name
        self._resend_s = resend_s
        self._gate = gate
        self._links: Links[Any] = Links(resend_s, patient=True, channel=CHANNEL)
        self._lines: dict[str, Line] = {}
        # Of the input in progress: the event being passed on, and peers that may get another floor.
        self._cause: Debt | None = None
        # Events that are not passed on yet.
        self._open: dict[EventId, Debt] = {}
        self._settled: dict[str, None] = {}
        self.dropped = self.repeated = 0

    @property
    def life(self) -> int:
        return self._lives.life

    @life.setter
    def life(self, life: int) -> None:
        self._lives.life = life

    @property
    def idle(self) -> bool:
        return self._links.idle and not any(line.waiting for line in self._lines.values())

    def account(self) -> dict[str, float]:
        return {**self._links.account(), "events_dropped": float(self.dropped),
                "events_again": float(self.repeated)}  # fmt: skip

    # Greeting.

    def greet(self, peer: str) -> list[Effect]:
        """Make oneself known, until something comes that names the present lives of both."""
        line = self._line(peer)
        wait_s = min(self._resend_s * (1 << min(line.tries, 10)), max(WAIT_S_MAX, self._resend_s))
        line.tries += 1
        return [Send(peer, Greeting(self.life, 0)), SetTimer(f"{GREET}/{peer}", wait_s)]

    def rest(self, peer: str) -> list[Effect]:
        """Greet no more."""
        line = self._line(peer)
        if not line.tries:
            return []
        line.tries = 0
        return [CancelTimer(f"{GREET}/{peer}")]

    def _greeting(self, peer: str) -> Send:
        return Send(peer, Greeting(self.life, self._lives.of(peer)))

    def _line(self, peer: str) -> Line:
        line = self._lines.get(peer)
        if line is None:
            line = self._lines[peer] = Line()
        return line

    def _session(self, peer: str, theirs: int) -> int:
        return self._lives.session(peer, theirs)

    # Receiving.

    def hear(self, source: str, message: Spoken) -> tuple[bool, list[Effect]]:
        """To be called first. Whether a session begins with this message, and what to say."""
        lives = self._lives
        yours, theirs = lives.named(source, message)
        if source not in self._lines and len(self._lines) >= LINK_PEERS_MAX:
            raise BadMessage(source, f"is one more than {LINK_PEERS_MAX} peers")
        line = self._line(source)
        if yours > lives.life:
            return False, self._live_on(source, yours)
        heard = lives.hear(source, yours, theirs, isinstance(message, Greeting))
        if heard.begins:
            self._begin(source, line, theirs)
        effects = self.rest(source) if heard.mutual else []
        if heard.answers:
            effects.append(self._greeting(source))
        return heard.begins, effects

    def _live_on(self, source: str, life: int) -> list[Effect]:
        """Our disk was lost: nobody else would name a life that has not begun. All sessions that
        there are have the wrong name."""
        self._lives.live_on(life)
        known, self._lives.known = self._lives.known, {}
        effects: list[Effect] = [Note("life_lost", self._name)]
        for peer in self._lines:
            if peer in known or peer == source:
                effects += self.greet(peer)
        return effects

    def _begin(self, peer: str, line: Line, life: int) -> None:
        """A session with another life: events that it may lack wait to be sent again."""
        line.open = deque()
        old = self._links.s.peers.get(peer)
        unacked = old.out.unacked if old else []
        again = [(body, debt) for body, debt in zip(unacked, line.debts, strict=True)
                 if isinstance(body, Pub)]  # fmt: skip
        line.waiting.extendleft(reversed(again))
        line.debts = deque()
        self._links.begin(peer, self._session(peer, life), 0)

    def is_overfull(self, peer: str) -> bool:
        """Whether more is not acknowledged than events alone can be."""
        return peer in self._lines and len(self._lines[peer].debts) > LINE_WAITING_MAX

    def take(
        self, source: str, message: Spoken, now: float, listen: bool = True
    ) -> Iterator[tuple[int, Any]]:
        """The messages, by number, that are next in their session now. Who does not listen learns
        only what the other end has."""
        if isinstance(message, Greeting):
            return iter(())
        links, line = self._links, self._line(source)
        if message.session != self._session(source, self._lives.of(source)):
            return iter(())
        self._acknowledged(source, line, message, now)
        if isinstance(message, Ack) or not listen:
            return iter(())
        place = links.place(source, message)
        if place == "early":
            links.keep(source, message)
        elif place == "again":
            links.owe(source)
        if place != "next":
            return iter(())
        frames = [message, *links.followers(source, message)]
        for frame in frames:
            links.take(source, frame)
        self._settled[source] = None
        return self._bodies(source, line, frames)

    def _bodies(
        self, source: str, line: Line, frames: list[Frame[Any]]
    ) -> Iterator[tuple[int, Any]]:
        """One after the other: what an event is waited for must stand in the order of numbers."""
        for frame in frames:
            if not isinstance(frame.body, Pub) or self._is_next(source, line, frame):
                yield frame.number, frame.body

    def _is_next(self, source: str, line: Line, frame: Frame[Pub]) -> bool:
        """Whether an event is above all that have come on this link of its publisher."""
        publisher, seq, is_event = event = _id(frame.body)
        highest = line.highest
        if seq > highest.get((publisher, is_event), 0):
            highest[publisher, is_event] = seq
            highest.move_to_end((publisher, is_event))
            if len(highest) > LINE_PUBLISHERS_MAX:
                highest.popitem(last=False)
            return True
        self.repeated += 1
        before = self._open.get(event)
        if before is not None:
            debt = Debt(source, frame.number, event)
            debt.copies = 1
            before.again.append(debt)
            # Those before count as passed on, as what is that far behind always does.
            del before.again[:-CUSTODY_MAX]
            line.open.append(debt)
        return False

    def _acknowledged(self, source: str, line: Line, message: Frame[Any] | Ack, now: float) -> None:
        out = self._links.s.peers[source].out
        before = out.acked
        self._links.acknowledged(source, message, now)
        for _ in range(out.acked - before):
            self._pay(line.debts.popleft())

    def _pay(self, debt: Debt | None) -> None:
        if debt is not None:
            debt.copies -= 1
            self._settled[debt.source] = None
            if not debt.copies:
                if self._open.get(debt.event) is debt:
                    del self._open[debt.event]
                for other in debt.again:
                    self._pay(other)

    @contextmanager
    def passing(self, source: str, number: int, pub: Pub) -> Iterator[None]:
        """Around what an event causes: its copies are what it waits for."""
        debt = self._cause = Debt(source, number, _id(pub))
        try:
            yield
        finally:
            self._cause = None
        if debt.copies:
            self._line(source).open.append(debt)
            self._open[debt.event] = debt

    # Sending.

    def post(self, peer: str, body: Any) -> None:
        """Send in the session with a peer; an event may have to wait for its turn."""
        line = self._line(peer)
        if not isinstance(body, Pub):
            if self._lives.of(peer):
                self._links.post(peer, body)
                line.debts.append(None)
            return
        if len(line.waiting) + len(line.debts) >= LINE_WAITING_MAX:
            self.dropped += 1
            return
        if self._cause is not None:
            self._cause.copies += 1
        line.waiting.append((body, self._cause))
        self.drain(peer)

    def drain(self, peer: str) -> None:
        """Let those go that wait, as far as the gate is open."""
        line = self._line(peer)
        while self._lives.of(peer) and line.waiting and self._gate(peer, line.waiting[0][0]):
            body, debt = line.waiting.popleft()
            self._links.post(peer, body)
            line.debts.append(debt)

    def purge(self, peer: str, unwanted: Callable[[Pub], bool]) -> int:
        """Give up events that wait and will not be taken; how many. Those behind them go on."""
        line = self._line(peer)
        kept: deque[tuple[Pub, Debt | None]] = deque()
        for body, debt in line.waiting:
            if unwanted(body):
                self._pay(debt)
            else:
                kept.append((body, debt))
        given_up = len(line.waiting) - len(kept)
        line.waiting = kept
        self.drain(peer)
        return given_up

    def flush(self, now: float) -> list[Effect]:
        for source in self._settled:
            self._settle(source)
        self._settled = {}
        return self._links.flush(now)

    def _settle(self, source: str) -> None:
        """How much of what has come may be acknowledged."""
        line, link = self._lines[source], self._links.s.peers.get(source)
        if link is None:
            return
        into = link.into
        oldest = into.received - CUSTODY_MAX
        while line.open and (not line.open[0].copies or line.open[0].number <= oldest):
            line.open.popleft()
        safe = line.open[0].number - 1 if line.open else into.received
        if safe != into.safe:
            into.safe = safe
            self._links.owe(source)

    def fire(self, timer: str, now: float) -> list[Effect]:
        kind, _, peer = timer.partition("/")
        if kind == GREET:
            return self.greet(peer)
        assert kind == RESEND, f"no timer {timer!r} is ever set"
        return [*self._links.fire(peer, now), *self.flush(now)]


def _id(pub: Pub) -> EventId:
    return pub.publisher, pub.seq, pub.attributes is not None
