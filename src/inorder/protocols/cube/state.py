"""A peer in a snapshot. `State[Body]` can be read back when it is known what the bodies are."""

from __future__ import annotations

from typing import Generic

from msgspec import Struct

from inorder.core.effect import Answer
from inorder.protocols.cube.bundler import BundlerState
from inorder.protocols.cube.detector import DetectorState
from inorder.protocols.cube.links import LinksState
from inorder.protocols.cube.messages import (
    Ack,
    Act,
    Body,
    Flush,
    Kept,
    Over,
    Packet,
    Pub,
    Sub,
    Uns,
    View,
)
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.topic import Packed
from inorder.protocols.cube.wave import KeptWave, Key, Task
from inorder.protocols.session.book import Sessions

Said = Sub | Act | Uns | Pub[Body] | Kept[Body] | Ack | Packet[Body] | Flush


class TreesState(Struct, Generic[Body]):
    """What is under way."""

    waves: list[tuple[Task, KeptWave[Body]]]
    withheld: list[tuple[int, Key, int]]
    roomy: bool
    sessions: Sessions[Said[Body]] | None
    links: LinksState | None
    bundler: BundlerState[Body] | None = None


class FlushState(Struct):
    """What a peer knows of who lives (flush.py)."""

    over: Over
    flushing: bool
    since: float
    words: list[tuple[int, Flush]]
    last: View | None
    met: list[tuple[int, int]]
    quiet_rounds: int


class SurvivalState(Struct):
    """What a peer has to survive with (surviving.py)."""

    flush: FlushState
    unsure: list[tuple[Key, Answer]]
    early: list[tuple[Key, Answer]]
    asked: list[tuple[int, Act, int]]
    detector: DetectorState


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
    survival: SurvivalState | None
