"""A peer in a snapshot. `State[Body]` can be read back when it is known what the bodies are."""

from __future__ import annotations

from typing import Generic

from msgspec import Struct

from inorder.protocols.cube.bundler import BundlerState
from inorder.protocols.cube.messages import Ack, Act, Body, Packet, Pub, Sub, Uns
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.topic import Packed
from inorder.protocols.cube.wave import Kept, Key
from inorder.protocols.session.book import Sessions


class TreesState(Struct, Generic[Body]):
    """What is under way."""

    waves: list[Kept[Body]]
    withheld: list[tuple[int, Key]]
    roomy: bool
    sessions: Sessions[Sub | Act | Uns | Pub[Body] | Ack | Packet[Body]] | None
    bundler: BundlerState[Body] | None = None


class State(Struct, Generic[Body]):
    """All of it; `inner` is the snapshot of the machine inside."""

    name: str
    names: tuple[str, ...]
    options: Options
    launches: bool
    topics: dict[str, Packed[Body]]
    calls: int
    trees: TreesState[Body]
    inner: bytes
