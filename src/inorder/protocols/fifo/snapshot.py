"""The whole state of a client as bytes, and back."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from inorder.core.event import Event
from inorder.core.member import Membership
from inorder.core.numbers import Numbers
from inorder.protocols.fifo.counters import Counters
from inorder.protocols.fifo.interests import InterestsState
from inorder.protocols.fifo.missing import Missing
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.past import Life
from inorder.protocols.fifo.receiver import Receiver


class ReceiverState(Struct, array_like=True):
    """One receiver, field by field."""

    estimator: bytes
    incarnation: int | None
    floor: int
    hi: int
    hi_departure_us: int
    delivered: bool
    seen: Numbers
    missing: tuple[list[int], list[int], list[float], list[bool]]
    pending: list[tuple[int, float, Event]]
    deadline: float | None
    backwards: list[int]
    fallen: list[int]
    latest: float
    unreadable: int
    asleep: bool
    past: list[Life]
    counters: Counters


class ClientState(Struct, array_like=True):
    """One client, its receivers included."""

    membership: Membership
    topics: tuple[str, ...]
    options: Options
    incarnation: int
    departure_us: int
    clock_offset_us: int
    record: list[bytes]
    record_last: bytes | None
    interests: InterestsState
    receivers: dict[str, ReceiverState]
    heard: dict[str, float]
    armed: dict[str, float]
    gone: dict[str, float]


def save_receiver(receiver: Receiver) -> ReceiverState:
    """A copy that shares nothing that moves: it is encoded at once."""
    return ReceiverState(
        msgspec.msgpack.encode(receiver.estimator),
        receiver.incarnation,
        receiver.floor,
        receiver.hi,
        receiver.hi_departure_us,
        receiver.delivered,
        receiver.seen,
        (
            receiver.missing.starts,
            receiver.missing.ends,
            receiver.missing.deadlines,
            receiver.missing.settled,
        ),
        [(seq, *receiver.pending[seq]) for seq in sorted(receiver.pending)],
        receiver.deadline,
        receiver.backwards,
        receiver.fallen,
        receiver.latest,
        receiver.unreadable,
        receiver.asleep,
        receiver.past.lives,
        receiver.counters,
    )


def load_receiver(receiver: Receiver, state: ReceiverState) -> None:
    receiver.incarnation = state.incarnation
    receiver.floor = state.floor
    receiver.hi = state.hi
    receiver.hi_departure_us = state.hi_departure_us
    receiver.delivered = state.delivered
    receiver.seen = state.seen
    receiver.missing = Missing(*state.missing)
    receiver.expect({seq: (arrived, event) for seq, arrived, event in state.pending})
    receiver.deadline = state.deadline
    receiver.backwards = state.backwards
    receiver.fallen = state.fallen
    receiver.latest = state.latest
    receiver.unreadable = state.unreadable
    receiver.asleep = state.asleep
    receiver.past.lives = state.past
    receiver.counters = state.counters
