"""The one registry of guarantees: simulator, bus and Spark all look here.

A new guarantee is one more entry. No driver has a branch per guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from inorder import fifo, none, total
from inorder.errors import UnknownName
from inorder.event import Event
from inorder.fifo import reader as fifo_log
from inorder.fifo.header import Published as Headed
from inorder.machine import Client, Machine, Reader
from inorder.total import reader as total_log
from inorder.total.messages import Message as TotalMessage


class ClientClass(Protocol):
    """The class of the machine an application talks to."""

    def __call__(self, name: str, topics: Sequence[str], options: Any) -> Client: ...

    def restore(self, snapshot: bytes) -> Client: ...


class ReaderClass(Protocol):
    """The class of the machine that is fed from a log.

    `start` says how many events of a topic come before the first that will be given (0 if not
    named); with `from_first` a topic that is not named starts with the first event given.
    """

    def __call__(
        self,
        name: str,
        options: Any = None,
        start: Mapping[str, int] | None = None,
        from_first: bool = False,
    ) -> Reader: ...

    def restore(self, snapshot: bytes) -> Reader: ...


class Log(Struct, frozen=True):
    """How a guarantee's diffusions are kept in a log, and read from it.

    `messages` is the union of all its machines say to each other (wire.Decoder). `stamped` takes a
    diffused message apart into events and their stamps as text; `restamped` is the way back for
    one event and raises `BadFrame` for a text that is no stamp. `options` fits the options to a
    network that is a log. `events` are those a message holds, `source` is the machine that may
    have diffused it. `is_snapshot` says of a
    service's record whether it makes the earlier ones superfluous; of a client's records the last
    one always does. `reads_any`: the guarantee needs no stamps, so it can read any topic.
    """

    messages: Any
    stamped: Callable[[Any], list[tuple[Event, str]]]
    restamped: Callable[[Event, str], Any]
    reader: ReaderClass
    options: Callable[[Any], Any] = lambda options: options
    events: Callable[[Any], Sequence[Event]] = lambda message: (message.event,)
    source: Callable[[Any], str] = lambda message: str(message.event.publisher)
    is_snapshot: Callable[[bytes], bool] = lambda record: False
    reads_any: bool = False


class Guarantee(Struct, frozen=True):
    """How a guarantee is built, and which promises (checks) it claims to keep.

    `client` builds the machine an application talks to, from its name and all topics. `services`
    builds the machines that must run besides the clients (a topic manager, say), by name, for the
    given topics. `promises` may depend on the options. `describe` tells people what the summed
    accounts of all machines mean (machine.Accountable).
    """

    name: str
    options: type[Struct]
    client: ClientClass
    services: Callable[[Sequence[str], Any], dict[str, Machine]]
    promises: Callable[[Any], tuple[str, ...]]
    log: Log
    describe: Callable[[dict[str, float], Any], list[str]] = lambda account, options: []
    # Whether each diffusion is one event, so that a network can match its content on the way.
    single_events: bool = True


def _no_services(topics: Sequence[str], options: Any) -> dict[str, Machine]:
    return {}


def _no_promises(options: Any) -> tuple[str, ...]:
    return ()


GUARANTEES: dict[str, Guarantee] = {
    "none": Guarantee(
        "none", none.Options, none.Client, _no_services, _no_promises,
        Log(none.Published, none.stamped, none.restamped, none.Reader, reads_any=True),
    ),
    "fifo": Guarantee(
        "fifo", fifo.Options, fifo.Client, _no_services, fifo.promises,
        Log(Headed, fifo_log.stamped, fifo_log.restamped, fifo_log.Reader), fifo.describe,
    ),
    "total": Guarantee(
        "total", total.Options, total.Client, total.services, total.promises,
        Log(TotalMessage, total_log.stamped, total_log.restamped, total_log.Reader, total.on_log,
            total_log.events, total_log.source, total.is_snapshot),
        single_events=False,
    ),
}  # fmt: skip


def guarantee(name: str) -> Guarantee:
    """The guarantee of that name.

    >>> guarantee("none").promises(None)
    ()
    """
    try:
        return GUARANTEES[name]
    except KeyError:
        raise UnknownName("guarantee", name, sorted(GUARANTEES)) from None
