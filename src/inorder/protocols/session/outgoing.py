"""The sending end: what the peer may still lack, and when it is sent again.

Frames 1, 2 and 3 leave together; the acknowledgement of 3 comes, then 2 is sent again at once if it
left at least a quarter of a round trip before 3. What leaves last has no successor to prove its
loss: for that tail there is a timer.

Rule 1: at most WINDOW_FRAMES frames are on their way. The rest waits here, so that the peer has
        room for what comes early.
Rule 2: evidence. A frame is missing if one that was sent a quarter of a round trip later has come.
        What was sent again waits twice as long for the next evidence, four times for the one after.
        A frame that was sent twice proves nothing: nobody knows which copy has come.
Rule 3: what the peer keeps early is a promise only of its present owner (`renege`).

Why a quarter: links that reorder by less than that cause nothing to be sent again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

from msgspec import Struct, field

from inorder.core.limits import LINK_RESEND_BURST, LINK_WINDOW_FRAMES
from inorder.core.numbers import Numbers
from inorder.protocols.session.messages import Body, Runs
from inorder.protocols.session.trip import Trip

RUNS_MAX = 8


class Flight(Struct, gc=False, array_like=True):
    """When a frame was last sent, and how often it was sent again."""

    at: float
    tries: int = 0


class Outgoing(Struct, Generic[Body], array_like=True):
    """One direction of a session, as its sender sees it."""

    # The last number given; the messages not yet acknowledged, oldest first.
    sent: int = 0
    unacked: list[Body] = []
    # What the peer has: the floor was taken, the runs above it wait there.
    reached: Numbers = field(default_factory=Numbers)
    # Of those that have left, oldest first: the first belongs to number `reached.floor + 1`.
    flights: list[Flight] = []
    trip: Trip = field(default_factory=Trip)
    # How often the timer has found nothing; whether it runs; whether it has been overtaken.
    tries: int = 0
    timing: bool = False
    later: bool = False
    newest: float = 0.0
    # Whether an acknowledgement is asked for next, because nothing is missing.
    asking: bool = False

    @property
    def lacks(self) -> bool:
        """Whether the peer lacks anything that has left."""
        last = self.acked + len(self.flights)
        return next(self.reached.holes(self.acked + 1, last), None) is not None

    @property
    def acked(self) -> int:
        return self.reached.floor

    @property
    def given_up(self) -> bool:
        """Whether something has left, and nobody waits for its acknowledgement any more."""
        return bool(self.flights) and not self.timing

    def post(self, body: Body) -> None:
        self.sent += 1
        self.unacked.append(body)

    def body(self, number: int) -> Body:
        return self.unacked[number - self.acked - 1]

    def launch(self, now: float) -> range:
        """The numbers that leave for the first time."""
        first = self.acked + len(self.flights) + 1
        last = min(self.sent, self.acked + LINK_WINDOW_FRAMES)
        for _ in range(first, last + 1):
            self.flights.append(Flight(now))
        if first <= last:
            self.newest = now
            self.later = self.timing
            self.asking = False
        return range(first, last + 1)

    def believable(self, number: int, runs: Runs) -> bool:
        """Whether an acknowledgement names only numbers that were given, in a few runs. A former
        owner may have sent more of them than this one."""
        if number > self.sent or len(runs) > RUNS_MAX:
            return False
        return all(number < first <= last <= self.sent for first, last in runs)

    def acknowledge(self, number: int, runs: Runs, now: float) -> list[int]:
        """Take in what the peer has; returns the numbers that are proved to be missing."""
        reached = self.reached
        floor = self.acked
        news, proof = self._news(number, runs)
        flight = self.flights[proof - floor - 1] if proof else None
        for first, last in runs:
            reached.cover(first, last)
        if (done := number - floor) > 0:
            del self.unacked[:done], self.flights[:done]
            reached.skip(number)
        if news:
            self.tries = 0
        if flight is None:
            return []
        self.trip.measure(now - flight.at)
        return list(self._missing(proof, flight.at, now))

    def _news(self, number: int, runs: Runs) -> tuple[bool, int]:
        """Whether anything is acknowledged for the first time, and of that the last number that
        was sent only once (or 0)."""
        floor = self.acked
        news, proof = False, 0
        for low, high in ((floor + 1, number), *runs):
            for first, last in self.reached.holes(low, high):
                news = True
                left = min(last, floor + len(self.flights))
                for candidate in range(left, max(first - 1, proof), -1):
                    if self.flights[candidate - floor - 1].tries == 0:
                        proof = candidate
                        break
        return news, proof

    def _missing(self, proof: int, at: float, now: float) -> Iterator[int]:
        """What left long enough before the frame `proof`, which left at `at` and has come."""
        floor = self.acked
        spacing_s = self.trip.mean_s / 4
        again = 0
        for first, last in self.reached.holes(floor + 1, proof - 1):
            for number in range(first, last + 1):
                flight = self.flights[number - floor - 1]
                # What was sent again left later than its number says.
                behind = flight.tries and flight.at >= at
                if behind or at - flight.at < spacing_s * (1 << min(flight.tries, 32)):
                    continue
                self._relaunch(number, now)
                yield number
                again += 1
                if again >= LINK_RESEND_BURST:
                    return

    def overdue(self, now: float) -> list[int]:
        """The timer found no news: the oldest that the peer does not have. If it has them all, and
        does not acknowledge them, the first asks for an acknowledgement that may be lost."""
        self.tries += 1
        floor = self.acked
        numbers: list[int] = []
        for first, last in self.reached.holes(floor + 1, floor + len(self.flights)):
            room = LINK_RESEND_BURST - len(numbers)
            numbers += range(first, min(last + 1, first + room))
        if not numbers and self.flights:
            numbers = [floor + 1]
        for number in numbers:
            self._relaunch(number, now)
        return numbers

    def _relaunch(self, number: int, now: float) -> None:
        flight = self.flights[number - self.acked - 1]
        flight.at = now
        flight.tries += 1
        self.newest = now

    def renege(self) -> None:
        """The peer has a new owner, who knows nothing of what came early."""
        self.reached = Numbers.after(self.acked)

    def land(self) -> None:
        """All that is on its way may be lost, with every measurement: begin as if newly posted."""
        self.renege()
        self.flights.clear()
        self.trip = Trip()
        self.tries = 0
        self.timing = self.later = self.asking = False
        self.newest = 0.0

    def replay(self, number: int) -> None:
        """An acknowledgement of the past: nothing is on its way, nothing is measured."""
        if self.acked < number <= self.sent:
            del self.unacked[: number - self.acked]
            self.reached.skip(number)
