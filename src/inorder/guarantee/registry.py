"""The one registry of guarantees: simulator, peers and Spark all look here.

A new guarantee is one more entry. No driver has a branch per guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from inorder.core.errors import UnknownName
from inorder.core.machine import Builder, Client
from inorder.guarantee import none, promises
from inorder.guarantee.promises import OVER_A_LOG, Network
from inorder.guarantee.rows import Rows
from inorder.protocols import causal, fifo, total
from inorder.protocols.fifo import reader as fifo_reader
from inorder.protocols.fifo.header import Published as Headed
from inorder.protocols.session.account import describe as describe_sessions
from inorder.protocols.total import reader as total_reader
from inorder.protocols.total.messages import Message as TotalMessage


class ClientClass(Protocol):
    """The class of the machine an application talks to."""

    def __call__(self, name: str, topics: Sequence[str], options: Any) -> Client: ...

    def restore(self, snapshot: bytes) -> Client: ...


class Guarantee(Struct, frozen=True):
    """How a guarantee is built, and which promises (checks) it claims to keep.

    `client` builds the machine an application talks to, from its name and all topics. `messages` is
    the union of all that its machines say to each other (wire.Decoder). `services` says how the
    machines are built that must run besides the clients (a topic manager, say), by name, for the
    given topics. `claims` says what it promises with these options over a network or a cube
    (promises.py). `rows` puts recorded rows in order; None: it cannot yet. `describe` tells people
    what the summed accounts of all machines mean (machine.Accountable).
    """

    name: str
    options: type[Struct]
    client: ClientClass
    messages: Any
    services: Callable[[Sequence[str], Any], dict[str, Builder]]
    claims: Callable[[Any, Network], tuple[str, ...]]
    rows: Rows | None = None
    describe: Callable[[dict[str, float], Any], list[str]] = lambda account, options: []
    # Whether each diffusion is one event, so that a network can match its content on the way.
    single_events: bool = True
    # Whether it needs a network that gives places (core/place.py).
    needs_places: bool = False

    def promises(self, options: Any, network: Network = "network") -> tuple[str, ...]:
        """What is promised with these options over that kind of network.

        >>> guarantee("none").promises(None)
        ('accepted',)
        """
        return OVER_A_LOG if network == "log" else self.claims(options, network)


def _no_services(topics: Sequence[str], options: Any) -> dict[str, Builder]:
    return {}


GUARANTEES: dict[str, Guarantee] = {
    "none": Guarantee(
        "none", none.Options, none.Client, none.Published, _no_services, promises.of_none,
        none.Rows(),
    ),
    "fifo": Guarantee(
        "fifo", fifo.Options, fifo.Client, Headed, _no_services, promises.of_fifo,
        fifo_reader.Rows(), fifo.describe,
    ),
    "total": Guarantee(
        "total", total.Options, total.Client, TotalMessage, total.services, promises.of_total,
        total_reader.Rows(), lambda account, options: describe_sessions(account),
        single_events=False,
    ),
    "causal": Guarantee(
        "causal", causal.Options, causal.Client, causal.Published, _no_services,
        promises.of_causal, needs_places=True,
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
