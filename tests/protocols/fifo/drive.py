"""Drives one receiver by hand: arrivals and timers, everything visible.

Timers fire exactly at their deadline; an arrival of the same instant goes first. After every step
the rules that hold for any input are checked: a deadline stands if and only if something waits, no
deadline of a missing event grows, nobody waits longer than `tau_max`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from inorder.core.effect import Deliver
from inorder.core.event import Event
from inorder.protocols.fifo.estimator import estimator_class
from inorder.protocols.fifo.header import Header
from inorder.protocols.fifo.interests import Interests
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.receiver import Receiver
from inorder.protocols.fifo.record import RecordWriter
from inorder.protocols.fifo.summary import TOPIC_SUMMARY_BYTES, topic_summary

# Rounding of a deadline minus an arrival.
ULPS = 1e-9
GAP_US = 10_000


def receiver(topics: Sequence[str] = ("t",), **options: Any) -> Receiver:
    chosen = Options(**options)
    interests = Interests(chosen.interest_window)
    interests.hold(tuple(topics))
    return Receiver(chosen, estimator_class(chosen.estimator).from_options(chosen), interests)


def shown(deliveries: Iterable[Deliver]) -> str:
    """Like "1 2 3*": a star behind what came too late, a dash for every former restart."""
    return " ".join(
        f"{each.event.seq}{each.event.value.get('life', '')}{'' if each.in_order else '*'}"
        for each in deliveries
    )


def stream(topics: Sequence[str], record: int = 0, gap_us: int = GAP_US) -> list[Header]:
    """The headers of a publisher's events of these topics; the first departs after one gap."""
    writer = RecordWriter(record, TOPIC_SUMMARY_BYTES, 0)
    return [
        Header(
            0, number, number * gap_us, gap_us if number > 1 else 0,
            writer.next(gap_us if number > 1 else 0, topic_summary(topic)),
        )
        for number, topic in enumerate(topics, 1)
    ]  # fmt: skip


class Drive:
    """One receiver, its clock and what came out of it."""

    def __init__(self, topics: Sequence[str] = ("t",), **options: Any) -> None:
        self.receiver = receiver(topics, **options)
        self.now = 0.0
        self.fired = 0
        self.out: list[Deliver] = []
        self._deadlines: dict[int, float] = {}
        self._restarts = 0

    @property
    def said(self) -> str:
        return shown(self.out)

    @property
    def counters(self) -> Any:
        return self.receiver.counters

    @property
    def waits(self) -> list[float]:
        """How long each delivery was held back, in whole milliseconds."""
        return [round(each.waited_s * 1e3) for each in self.out]

    def arrive(self, seq: int, at: float, life: int | None = 0, **header: Any) -> str:
        """An event arrives; by default it departed `seq` gaps after the start."""
        header.setdefault("departure_us", seq * GAP_US)
        header.setdefault("prev_gap_us", GAP_US)
        return self.take(Header(life, seq, **header), at)

    def take(self, header: Header, at: float) -> str:
        self.run(at)
        self.now = at
        mark = "'" * min(header.incarnation or 0, 9)
        event = Event("p", header.seq, "t", {"life": mark} if mark else {})
        return self._note(self.receiver.receive(header, event, at))

    def run(self, until: float, including: bool = False) -> str:
        """Fire every timer before that instant."""
        before = len(self.out)
        while (due := self.receiver.deadline) is not None:
            if due > until or (due == until and not including):
                break
            self.now = max(self.now, due)
            self.fire(self.now)
        return shown(self.out[before:])

    def fire(self, at: float) -> str:
        self.fired += 1
        return self._note(self.receiver.fire(at))

    def finish(self) -> str:
        """No more arrivals: whatever waits is let go."""
        return self.run(float("inf"))

    def warm(self, count: int = 50, delay_s: float = 0.02, jitter_s: float = 0.001) -> int:
        """An orderly start, delays going up and down a little; the next number."""
        for seq in range(1, count + 1):
            late_s = jitter_s * ((seq * 7) % 11 - 5) / 5
            self.arrive(seq, seq * GAP_US * 1e-6 + delay_s + late_s)
        return count + 1

    def _note(self, deliveries: list[Deliver]) -> str:
        held = self.receiver
        assert (held.deadline is None) == (not held.pending)
        missing = held.missing
        if held.counters.restarts > self._restarts:
            self._restarts = held.counters.restarts
            self._deadlines = {}
        for start, deadline in zip(missing.starts, missing.deadlines, strict=True):
            assert deadline <= self._deadlines.get(start, float("inf")), "a deadline grew"
            assert deadline <= self.now + held.options.tau_max + ULPS
        self._deadlines = dict(zip(missing.starts, missing.deadlines, strict=True))
        for each in deliveries:
            assert 0.0 <= each.waited_s <= held.options.tau_max + ULPS
        self.out += deliveries
        return shown(deliveries)
