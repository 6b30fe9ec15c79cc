"""The contract between a protocol and whatever drives it.

A machine is a protocol role without input, output, clock or chance: inputs in, effects out. The
simulator, the live runtime and Spark drive the same class.

Rule 1: an input returns its effects, or raises with the state unchanged.
Rule 2: `now` is the only clock, in seconds. Drivers give a monotonic one, but order must survive a
        clock that jumps either way or stands still: only lateness may suffer.
Rule 3: the same state and the same input always give the same effects in the same order, under any
        hash seed. Sets are for membership; whoever walks one sorts it first.
Rule 4: whatever can grow has a bound in `limits.py`.
Rule 5: `snapshot` holds the whole state. Two machines with equal snapshots behave alike for ever,
        so an explorer may merge them.

Recovery: a durable machine puts what it must not forget into `Persist` records. After a crash the
driver builds a new machine, feeds it all synced records through `replay`, then calls `resume`,
whose effects resend what may have been lost and set the timers anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Self, runtime_checkable

from msgspec import Struct

from inorder.core.effect import Effect
from inorder.core.event import Scalar, event_id


class Machine(Protocol):
    """Any role of any protocol."""

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        """A message arrived from another machine."""

    def fire(self, timer: str, now: float) -> list[Effect]:
        """A timer set earlier has run out."""

    def snapshot(self) -> bytes:
        """The whole state, as bytes that are equal when the states are."""

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """The machine that gave this snapshot."""


@runtime_checkable
class Durable(Machine, Protocol):
    """A role that survives a crash of its process."""

    def replay(self, record: bytes) -> None:
        """Take in one record this machine persisted in an earlier life."""

    def resume(self, now: float) -> list[Effect]:
        """All records are in: resend what may have been lost, set the timers."""


class Client(Machine, Protocol):
    """The role an application publishes and subscribes through."""

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        """Publish the next event; an `Answer` under its id tells its fate.

        Ids count from the machine's own sequence, so that a restarted client never reuses one.
        """

    @property
    def next_seq(self) -> int:
        """The sequence number the next publication will carry."""

    def subscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        """Add topics; `Answer(call, "done")` when every later publication is due."""

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        """Drop topics at once; `Answer(call, "done")` when everybody concerned knows."""

    def joined(self, topic: str, now: float) -> list[Effect]:
        """The network confirms a `Join`."""


@runtime_checkable
class Launching(Protocol):
    """A client whose publications may wait in it. `Launched` tells when one is made; the events of
    one topic are made in the order of their calls."""

    @property
    def next_call(self) -> str:
        """Under which name the next publication is answered until it is launched."""


def call_of(name: str, client: Client) -> str:
    """Under which name this client answers its next publication."""
    if isinstance(client, Launching):
        return client.next_call
    return event_id(name, client.next_seq)


class Reader(Machine, Protocol):
    """A subscriber fed from recorded rows: no calls, no network, nobody to ask again.

    Every event it is given leaves through a `Deliver`, or is a duplicate and leaves a
    `Note("duplicate", event.id)`. Timers are set and fired as for any machine; `now` is the time
    that the row tells.
    """

    def finish(self, now: float) -> list[Effect]:
        """Nothing will come any more: hand over what is held back."""

    @property
    def waiting(self) -> int:
        """Events held back."""


class Builder(Struct, frozen=True):
    """How a machine is made, once for each of its lives; `topic` is the one it lives with, where a
    network gives topics a place. `topics` are those that it diffuses on."""

    make: Callable[[], Machine]
    topic: str
    topics: tuple[str, ...] = ()


def make_all(builders: Mapping[str, Builder]) -> dict[str, Machine]:
    """The machines themselves, by name."""
    return {name: builder.make() for name, builder in builders.items()}


@runtime_checkable
class Accountable(Protocol):
    """A machine that counts what it does. Every figure can be summed over machines."""

    def account(self) -> dict[str, float]:
        """Counters by name, since the machine was built."""
