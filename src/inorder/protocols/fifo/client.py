"""Publishes with order headers, and puts what it receives into each publisher's order.

Rule 1: the departure of an event never lies before that of the one before it, even if the clock is
        set back: the publisher goes on from where it was.
Rule 2: one publisher's gap never delays another's events.
Rule 3: an event of a topic left meanwhile is not delivered any more, though it kept its place.

The publisher's incarnation is the last number it had reserved when it started (member.py): larger
after every life in which it published anything.

A subscriber's memory ends with its process. One that crashed and came back begins anew, like
everybody who subscribes: its first event of a publisher is taken as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

import msgspec

from inorder.core.effect import Answer, CancelTimer, Deliver, Diffuse, Effect, Note, SetTimer
from inorder.core.errors import BadFrame, Misuse, UnknownName
from inorder.core.event import Event, Scalar, event_id
from inorder.core.limits import PUBLISHERS_PER_SUBSCRIBER_MAX
from inorder.core.member import Member
from inorder.core.pack import pack, unpacker
from inorder.protocols.fifo import dial
from inorder.protocols.fifo.counters import Counters
from inorder.protocols.fifo.estimator import Estimator, estimator_class
from inorder.protocols.fifo.header import NUMBER_MAX, Header, Published, unpack
from inorder.protocols.fifo.header import pack as pack_header
from inorder.protocols.fifo.interests import Interests
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.receiver import Receiver
from inorder.protocols.fifo.record import RecordWriter
from inorder.protocols.fifo.snapshot import ClientState, ReceiverState, load_receiver, save_receiver
from inorder.protocols.fifo.summary import (
    TOPIC_SUMMARY_BYTES,
    Conjunction,
    content_summary,
    elements,
    topic_summary,
)

_unpack_state = unpacker(ClientState)


class Client(Member):
    """Publisher and subscriber of one process."""

    def __init__(self, name: str, topics: Sequence[str], options: Options) -> None:
        super().__init__(name)
        self.options = options
        self._topics = tuple(topics)
        self._estimator = estimator_class(options.estimator)
        by_topic = options.summary == "topic"
        self._record = RecordWriter(
            options.record,
            TOPIC_SUMMARY_BYTES if by_topic else options.summary_bytes,
            0 if by_topic else options.hashes,
        )
        # The publisher: its incarnation, and the departure of its last event.
        self._incarnation = 0
        self._departure_us = 0
        self._clock_offset_us = 0
        self._interests = Interests(options.interest_window)
        self._receivers: dict[str, Receiver] = {}
        self._heard: dict[str, float] = {}
        # The deadline each publisher's timer is set to.
        self._armed: dict[str, float] = {}
        # What those counted that made room.
        self._gone: dict[str, float] = {}

    # Publishing.

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        # Whatever can be wrong with a call is found before anything changes.
        departure_us = self._departs(now)
        summary = self._summary(topic, value) if self._record.size else b""
        effects: list[Effect] = []
        event = Event(self._m.name, self._number(effects), topic, value, now)
        header = self._header(event.seq - self._incarnation, departure_us, summary)
        effects.append(Diffuse(topic, Published(event, pack_header(header))))
        effects.append(Answer(event_id(event.publisher, event.seq), "accepted"))
        return effects

    def _departs(self, now: float) -> int:
        if not abs(now) < NUMBER_MAX * 1e-7:
            raise Misuse(f"a clock cannot say {now}")
        return int(now * 1e6) + self._clock_offset_us

    def _header(self, seq: int, departure_us: int, summary: bytes) -> Header:
        if departure_us < self._departure_us:
            self._clock_offset_us += self._departure_us - departure_us
            departure_us = self._departure_us
        gap_us = departure_us - self._departure_us if seq > 1 else 0
        self._departure_us = departure_us
        record = self._record.next(gap_us, summary) if self._record.size else b""
        return Header(self._incarnation, seq, departure_us, gap_us, record)

    def _summary(self, topic: str, value: dict[str, Scalar]) -> bytes:
        if self.options.summary == "topic":
            return topic_summary(topic)
        shown = elements(topic, value)
        return content_summary(shown, self.options.summary_bytes, self.options.hashes)

    def replay(self, record: bytes) -> None:
        super().replay(record)
        self._incarnation = self._m.reserved

    # Subscribing.

    def joined(self, topic: str, now: float) -> list[Effect]:
        effects = super().joined(topic, now)
        self._interests.hold(tuple(self._m.active))
        return effects

    def unsubscribe(self, call: str, topics: Any, now: float) -> list[Effect]:
        effects = super().unsubscribe(call, topics, now)
        self._interests.hold(tuple(self._m.active))
        return effects

    def want(self, conjunctions: tuple[Conjunction, ...], now: float) -> None:
        """Say what content is wanted (summary.py): what cannot match is not waited for.

        For whoever filters in front of this machine; by default all of the topics is wanted.
        """
        self._interests.want(conjunctions, now)

    # Receiving.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        event = message.event
        publisher = event.publisher
        receiver = self._receivers.get(publisher)
        effects: list[Effect] = []
        if receiver is None:
            if event.topic not in self._m.active:
                return []
            receiver = self._meet(publisher, now, effects)
        self._heard[publisher] = now
        errors = receiver.counters.header_errors
        try:
            deliveries = receiver.receive(unpack(message.header), event, now)
        except BadFrame:
            receiver.counters.received += 1
            deliveries = receiver.fail_open(event)
        if receiver.counters.header_errors > errors:
            effects.append(Note("no-order-header", event.id))
        return effects + self._effects(publisher, receiver, deliveries, now)

    def fire(self, timer: str, now: float) -> list[Effect]:
        receiver = self._receivers[timer]
        self._armed.pop(timer, None)
        return self._effects(timer, receiver, receiver.fire(now), now)

    def _effects(
        self, publisher: str, receiver: Receiver, deliveries: list[Deliver], now: float
    ) -> list[Effect]:
        active = self._m.active
        effects: list[Effect] = [each for each in deliveries if each.event.topic in active]
        deadline = receiver.deadline
        if deadline is None:
            if self._armed.pop(publisher, None) is not None:
                effects.append(CancelTimer(publisher))
        elif self._armed.get(publisher) != deadline:
            self._armed[publisher] = deadline
            # Never longer than tau_max: a clock that was set back must not freeze anybody.
            after_s = min(max(0.0, deadline - now), self.options.tau_max)
            effects.append(SetTimer(publisher, after_s))
        return effects

    def _meet(self, publisher: str, now: float, effects: list[Effect]) -> Receiver:
        """Begin to listen to a publisher; those silent longest make room, idle ones first."""
        if len(self._receivers) >= PUBLISHERS_PER_SUBSCRIBER_MAX:
            few = PUBLISHERS_PER_SUBSCRIBER_MAX // 100 + 1

            def rank(name: str) -> tuple[bool, float, str]:
                return bool(self._receivers[name].pending), self._heard[name], name

            for name in nsmallest(few, list(self._receivers), key=rank):
                effects += self._forget(name, now)
        estimator = self._estimator.from_options(self.options)
        receiver = Receiver(self.options, estimator, self._interests)
        self._receivers[publisher] = receiver
        return receiver

    def _forget(self, publisher: str, now: float) -> list[Effect]:
        receiver = self._receivers[publisher]
        effects = self._effects(publisher, receiver, receiver.let_go(now), now)
        self._gone = self.account([publisher])
        del self._receivers[publisher], self._heard[publisher]
        return effects

    def let_go(self, now: float) -> list[Effect]:
        """Nothing will come any more: hand over what is held back."""
        effects: list[Effect] = []
        for publisher, receiver in sorted(self._receivers.items()):
            effects += self._effects(publisher, receiver, receiver.let_go(now), now)
        return effects

    @property
    def pending(self) -> int:
        """Events held back."""
        return sum(len(receiver.pending) for receiver in self._receivers.values())

    # For summaries and operators.

    def duplicates(self, publisher: str) -> int:
        receiver = self._receivers.get(publisher)
        return receiver.counters.duplicates if receiver else 0

    def account(self, publishers: Sequence[str] | None = None) -> dict[str, float]:
        """Counters over all publishers (or some, and those forgotten), and the dial: what was
        predicted, what was measured."""
        names = list(self._receivers) if publishers is None else publishers
        total = Counters()
        heard = []
        for receiver in map(self._receivers.__getitem__, names):
            total.add(receiver.counters)
            total.clock_steps += receiver.estimator.steps
            heard.append((receiver.counters.received, receiver.estimator))
        account = dial.account(total, heard, self.options.late)
        return {name: figure + self._gone.get(name, 0.0) for name, figure in account.items()}

    def estimator(self, publisher: str) -> Estimator:
        """What is known of one publisher's delays: its gauges and its dial."""
        try:
            return self._receivers[publisher].estimator
        except KeyError:
            raise UnknownName("publisher", publisher, sorted(self._receivers)) from None

    # Snapshots.

    def snapshot(self) -> bytes:
        entries, last = self._record.state()
        state = ClientState(
            self._m, self._topics, self.options, self._incarnation, self._departure_us,
            self._clock_offset_us, entries, last, self._interests.s,
            {name: save_receiver(each) for name, each in self._receivers.items()},
            self._heard, self._armed, self._gone,
        )  # fmt: skip
        return pack(state)

    @classmethod
    def restore(cls, snapshot: bytes) -> Client:
        state: ClientState = _unpack_state(snapshot)
        client = cls(state.membership.name, state.topics, state.options)
        client._m = state.membership
        client._incarnation = state.incarnation
        client._departure_us = state.departure_us
        client._clock_offset_us = state.clock_offset_us
        client._record.load(state.record, state.record_last)
        client._interests = Interests(state.options.interest_window, state.interests)
        for name, receiver in state.receivers.items():
            client._receivers[name] = client._load(receiver)
        client._heard, client._armed, client._gone = state.heard, state.armed, state.gone
        return client

    def _load(self, state: ReceiverState) -> Receiver:
        estimator = msgspec.msgpack.decode(state.estimator, type=self._estimator)
        receiver = Receiver(self.options, estimator, self._interests)
        load_receiver(receiver, state)
        return receiver
