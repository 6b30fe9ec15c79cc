"""The one registry of guarantees: simulator, bus and Spark all look here.

A new guarantee is one more entry. No driver has a branch per guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from inorder import fifo, none, total
from inorder.errors import UnknownName
from inorder.machine import Client, Machine


class Guarantee(Struct, frozen=True):
    """How a guarantee is built, and which promises (checks) it claims to keep.

    `client` builds the machine an application talks to, from its name and all topics. `services`
    builds the machines that must run besides the clients (a topic manager, say), by name, for the
    given topics. `promises` may depend on the options. `describe` tells people what the summed
    accounts of all machines mean (machine.Accountable).
    """

    name: str
    options: type[Struct]
    client: Callable[[str, Sequence[str], Any], Client]
    services: Callable[[Sequence[str], Any], dict[str, Machine]]
    promises: Callable[[Any], tuple[str, ...]]
    describe: Callable[[dict[str, float], Any], list[str]] = lambda account, options: []


def _none_client(name: str, topics: Sequence[str], options: Any) -> Client:
    return none.Client(name)


def _no_services(topics: Sequence[str], options: Any) -> dict[str, Machine]:
    return {}


def _no_promises(options: Any) -> tuple[str, ...]:
    return ()


GUARANTEES: dict[str, Guarantee] = {
    "none": Guarantee("none", none.Options, _none_client, _no_services, _no_promises),
    "fifo": Guarantee(
        "fifo", fifo.Options, fifo.Client, _no_services, fifo.promises, fifo.describe
    ),
    "total": Guarantee("total", total.Options, total.Client, total.services, total.promises),
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
