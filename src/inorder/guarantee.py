"""The one registry of guarantees: simulator, bus and Spark all look here.

A new guarantee is one more entry. No driver has a branch per guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from inorder import fifo, none, total
from inorder.errors import UnknownName
from inorder.machine import Client, Machine


class ClientClass(Protocol):
    """The class of the machine an application talks to."""

    def __call__(self, name: str, topics: Sequence[str], options: Any) -> Client: ...

    def restore(self, snapshot: bytes) -> Client: ...


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
    describe: Callable[[dict[str, float], Any], list[str]] = lambda account, options: []
    # Whether each diffusion is one event, so that a network can match its content on the way.
    single_events: bool = True


def _no_services(topics: Sequence[str], options: Any) -> dict[str, Machine]:
    return {}


def _no_promises(options: Any) -> tuple[str, ...]:
    return ()


GUARANTEES: dict[str, Guarantee] = {
    "none": Guarantee("none", none.Options, none.Client, _no_services, _no_promises),
    "fifo": Guarantee(
        "fifo", fifo.Options, fifo.Client, _no_services, fifo.promises, fifo.describe
    ),
    "total": Guarantee(
        "total",
        total.Options,
        total.Client,
        total.services,
        total.promises,
        single_events=False,
    ),
}


def guarantee(name: str) -> Guarantee:
    """The guarantee of that name.

    >>> guarantee("none").promises(None)
    ()
    """
    try:
        return GUARANTEES[name]
    except KeyError:
        raise UnknownName("guarantee", name, sorted(GUARANTEES)) from None
