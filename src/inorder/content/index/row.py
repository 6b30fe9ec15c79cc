"""A form of a subscription as an index keeps it: what it says, and where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from inorder.content.box import Box
from inorder.content.skeleton import Vector

if TYPE_CHECKING:
    from inorder.content.index.block import Block
    from inorder.content.index.ends import Spot
    from inorder.content.index.sheet import Sheet

Bounds = tuple[float, ...]


class Bucket(Protocol):
    """Rows that share a skeleton and the values of its equalities."""

    def add(self, row: Row) -> None:
        """Take a row in by its `bounds`."""

    def drop(self, row: Row) -> None:
        """Give a row away."""

    def change(self, row: Row, bounds: Bounds) -> None:
        """Give a row other bounds."""

    def collect(self, lows: Sequence[Any], highs: Sequence[Any], found: list[int]) -> None:
        """Append the keys that hold the point; if it lies between floats, perhaps a few more."""

    def __len__(self) -> int:
        """How many rows."""


class Row:
    """The `bucket` is where it stands; a row with `boxes` stands beside, one with neither nowhere.

    A form with a set of several members stands in a bucket for each: the first is the row itself,
    the others are its `twins`.
    """

    __slots__ = (
        "block", "bounds", "boxes", "bucket", "cells", "corners", "key", "spot", "twins", "vector",
    )  # fmt: skip

    def __init__(self, key: int, block: Block, vector: Vector) -> None:
        self.key = key
        self.block = block
        self.vector = vector
        self.spot: Spot = None
        self.bucket: Bucket | None = None
        self.bounds: Bounds = ()
        self.boxes: tuple[Box, ...] = ()
        self.twins: tuple[Row, ...] = ()
        self.cells: tuple[Sheet, ...] = ()  # where it stands in a grid,
        self.corners: Bounds = ()  # and the numbers of the outermost of them
