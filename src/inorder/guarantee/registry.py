"""The one registry of guarantees: simulator, bus and Spark all look here.

A new guarantee is one more entry. No driver has a branch per guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from msgspec import Struct

from inorder.core.errors import Misuse, UnknownName
from inorder.core.event import Event
from inorder.core.machine import Builder, Client, Reader
from inorder.guarantee import none, promises
from inorder.guarantee.promises import Network
from inorder.protocols import causal, fifo, total
from inorder.protocols.fifo import reader as fifo_log
from inorder.protocols.fifo.header import Published as Headed
from inorder.protocols.session.account import describe as describe_sessions
from inorder.protocols.total import reader as total_log
from inorder.protocols.total.messages import Message as TotalMessage


class ClientClass(Protocol):
    """The class of the machine an application talks to."""

    def __call__(self, name: str, topics: Sequence[str], options: Any) -> Client: ...

    def restore(self, snapshot: bytes) -> Client: ...


class ReaderClass(Protocol):
    """The class of the machine that is fed from a log.

    `start` says how many events of a topic come before the first that will be given (0 if not
    named), and that it will be given: what names its events waits for them. With `from_first` a
    topic that is not named starts with the first event given.
    """

    def __call__(
        self,
        name: str,
        options: Any = None,
        start: Mapping[str, int] | None = None,
        from_first: bool = False,
    ) -> Reader: ...

    def restore(self, snapshot: bytes) -> Reader: ...


class Skimmer(Protocol):
    """The stamps of many rows of a log, read at once."""

    def skim(self, reader: Any, rows: Any) -> tuple[Any, Any, Any, Any, list[Event]] | None:
        """Let a reader receive these rows (their places, as they arrived) at once.

        What it delivers, in that order (-1 - n is the n-th of the events that waited), whether each
        is in order, the rows that are duplicates, the rows still to be received one by one, and
        the events that waited. None, and nothing has changed, if they must all go one by one.
        """


class Log(Struct, frozen=True):
    """How a guarantee's diffusions are kept in a log, and read from it.

    `messages` is the union of all its machines say to each other (wire.Decoder). `stamped` takes a
    diffused message apart into events and their stamps as text; `restamped` is the way back for
    one event and raises `BadFrame` for a text that is no stamp. `options` fits the options to a
    network that is a log. `events` are those a message holds, `source` is the machine that may
    have diffused it. `is_snapshot` says of a service's record whether it makes the earlier ones
    superfluous; of a client's records the last one always does. `reads_any`: the guarantee needs no
    stamps, so it can read any topic. `wants_all`: with these options a reader waits for numbers, so
    it must also be told of events that a filter keeps back. `skimmer` reads the stamps of many rows
    at once, from the names of their topics, the place of each row's
    topic among these, and a JSON array of the stamps; None if any is odd. It only saves time.
    `by_topic`: a log may be handed over topic by topic, since readers put that right, or promise
    nothing about it; False: as it was written. `placeholder` is a stamp for an event of which only
    topic and offset are known, so that nobody waits for it; None if places are not by topic.
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
    by_topic: bool = True
    wants_all: Callable[[Any], bool] = lambda options: False
    skimmer: Callable[[Sequence[str], Any, bytes], Skimmer | None] | None = None
    placeholder: Callable[[str, int], str | None] = lambda topic, offset: None


def _refuse(*given: Any, **named: Any) -> Any:
    raise Misuse("this guarantee runs in the simulator only: it says nothing about logs")


NO_LOG = Log(None, _refuse, _refuse, cast(Any, _refuse), _refuse)


class Guarantee(Struct, frozen=True):
    """How a guarantee is built, and which promises (checks) it claims to keep.

    `client` builds the machine an application talks to, from its name and all topics. `services`
    says how the machines are built that must run besides the clients (a topic manager, say), by
    name, for the given topics. `claims` says what it promises with these options over that kind of
    network (promises.py). `describe` tells people what the summed accounts of all machines mean
    (machine.Accountable).
    """

    name: str
    options: type[Struct]
    client: ClientClass
    services: Callable[[Sequence[str], Any], dict[str, Builder]]
    claims: Callable[[Any, Network], tuple[str, ...]]
    log: Log = NO_LOG
    describe: Callable[[dict[str, float], Any], list[str]] = lambda account, options: []
    # Whether each diffusion is one event, so that a network can match its content on the way.
    single_events: bool = True
    # Whether it needs a network that gives places (core/place.py): a log does not yet.
    needs_places: bool = False
    # The union of all that its machines say to each other, if it has no log that says so.
    speaks: Any = None

    @property
    def messages(self) -> Any:
        """The union of all that its machines say to each other (wire.Decoder)."""
        return self.speaks if self.log is NO_LOG else self.log.messages

    def promises(self, options: Any, network: Network = "network") -> tuple[str, ...]:
        """What is promised with these options over that kind of network.

        >>> guarantee("none").promises(None)
        ('accepted',)
        """
        return self.claims(options, network)


def _no_services(topics: Sequence[str], options: Any) -> dict[str, Builder]:
    return {}


class _AllAtOnce:
    """For readers that deliver whatever comes."""

    def skim(self, reader: Any, rows: Any) -> tuple[Any, Any, Any, Any, list[Event]] | None:
        return rows, rows >= 0, rows[:0], rows[:0], []


def _all_at_once(names: Sequence[str], codes: Any, stamps: bytes) -> Skimmer:
    return _AllAtOnce()


GUARANTEES: dict[str, Guarantee] = {
    "none": Guarantee(
        "none", none.Options, none.Client, _no_services, promises.of_none,
        Log(none.Published, none.stamped, none.restamped, none.Reader, reads_any=True,
            skimmer=_all_at_once),
    ),
    "fifo": Guarantee(
        "fifo", fifo.Options, fifo.Client, _no_services, promises.of_fifo,
        Log(Headed, fifo_log.stamped, fifo_log.restamped, fifo_log.Reader,
            wants_all=lambda options: True, by_topic=False),
        fifo.describe,
    ),
    "total": Guarantee(
        "total", total.Options, total.Client, total.services, promises.of_total,
        Log(TotalMessage, total_log.stamped, total_log.restamped, total_log.Reader, total.on_log,
            total_log.events, total_log.source, total.is_snapshot,
            wants_all=lambda options: total_log.for_reader(options).buffered,
            skimmer=total_log.skimmer, placeholder=total_log.placeholder),
        lambda account, options: describe_sessions(account),
        single_events=False,
    ),
    # Over logs it would have the same three verbs: a log is an origin, an offset its number.
    "causal": Guarantee(
        "causal", causal.Options, causal.Client, _no_services, promises.of_causal,
        needs_places=True, speaks=causal.Published,
    ),
}  # fmt: skip


def guarantee(name: str) -> Guarantee:
    """The guarantee of that name.

    >>> guarantee("none").name
    'none'
    """
    try:
        return GUARANTEES[name]
    except KeyError:
        raise UnknownName("guarantee", name, sorted(GUARANTEES)) from None
