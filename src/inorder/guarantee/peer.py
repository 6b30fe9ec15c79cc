"""A machine of a guarantee as a peer of the hypercube: which one is inside, and how it is rebuilt.

Any guarantee runs over the cube. Its clients publish by launching a wave, unless services number
its events: then the services launch the waves, and a client's publication goes to them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from inorder.core.machine import Machine
from inorder.core.pack import pack, unpacker
from inorder.guarantee.cells.grid import Grid
from inorder.guarantee.cells.holder import celled
from inorder.guarantee.compose import filtering
from inorder.guarantee.registry import Guarantee, guarantee
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peer import Peer
from inorder.protocols.cube.peers import Peers
from inorder.protocols.cube.state import State


class Order(Struct, frozen=True):
    """What all peers of a cube are configured with, besides the cube itself."""

    guarantee: str
    options: dict[str, Any]
    topics: tuple[str, ...]
    filtered: bool = False
    # Where topics have places (cells/): a holder stands before the client in place of a filter.
    cells: Grid | None = None

    @property
    def ordered(self) -> Guarantee:
        return guarantee(self.guarantee)

    @property
    def chosen(self) -> Struct:
        options: Struct = msgspec.convert(self.options, self.ordered.options)
        return options

    def inside(self, name: str) -> Machine:
        """The machine of this name: a service, or a client."""
        services = self.ordered.services(self.topics, self.chosen)
        if name in services:
            return services[name].make()
        client = self.ordered.client(name, self.topics, self.chosen)
        if self.cells is not None:
            return celled(self.ordered, client, self.cells)
        return filtering(self.ordered, client) if self.filtered else client

    @property
    def launches(self) -> bool:
        """Whether clients diffuse what they publish."""
        return not self.ordered.services(self.topics, self.chosen)


def order_of(
    ordered: Guarantee,
    options: Struct,
    topics: Sequence[str],
    filtered: bool = False,
    cells: Grid | None = None,
) -> Order:
    return Order(ordered.name, msgspec.to_builtins(options), tuple(topics), filtered, cells)


class _Snapshot(Struct):
    order: Order
    state: bytes


_unpack = unpacker(_Snapshot)


@cache
def _unpack_state(name: str) -> Any:
    return unpacker(State[guarantee(name).messages])  # type: ignore[misc]


class Peered(Peer):
    """A peer around the machine that its name has in this order."""

    def __init__(self, name: str, peers: Peers, options: Options, order: Order) -> None:
        self.order = order
        super().__init__(name, peers, options, order.inside(name), order.launches)

    def snapshot(self) -> bytes:
        return pack(_Snapshot(self.order, pack(self.packed())))

    @classmethod
    def restore(cls, snapshot: bytes) -> Peered:
        seen: _Snapshot = _unpack(snapshot)
        state: State[Any] = _unpack_state(seen.order.guarantee)(seen.state)
        peer = cls(state.name, Peers(state.names, mapped=True), state.options, seen.order)
        peer.set_inner(type(peer.inner).restore(state.inner))
        peer.become(state)
        return peer
