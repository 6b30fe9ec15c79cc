"""How an event says that it stands in several cells, and what topics of cells are called.

The area from (8, 1) to (21, 2) on `ticks` is published as p1:7 in cell (0, 0), p1:8 in (1, 0) and
p1:9 in (2, 0). Each copy has an attribute more, which says: this is p1:7, and peer 5 has it at
number 3 of (0, 0), 12 of (1, 0) and 1 of (2, 0). Applications see p1:7, once, without it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from inorder.core.event import Scalar
from inorder.core.limits import (
    CUBE_CELL_INDEX_MAX,
    CUBE_COPIES_MAX,
    CUBE_PEERS_MAX,
    STAMP_NUMBER_MAX,
)
from inorder.core.place import Place
from inorder.guarantee.cells.grid import Cell

# The attribute; no application may have one of this name.
COPIES = "@copies"


class Copies(Struct, frozen=True, array_like=True):
    """The sequence number of the first copy, by which the event is known; the number of its
    publisher's peer; and for each cell the number of its copy there."""

    first: int
    peer: int
    cells: tuple[tuple[int, int, int], ...]

    def places(self, topic: str) -> list[Place]:
        """
        >>> Copies(7, 5, ((0, 0, 3),)).places("ticks")
        [(('ticks@0,0', 5), 3)]
        """
        return [((cell_topic(topic, (x, y)), self.peer), nth) for x, y, nth in self.cells]

    @property
    def is_sound(self) -> bool:
        """Whether this can be; it comes from elsewhere."""
        return (
            1 <= self.first <= STAMP_NUMBER_MAX
            and 0 <= self.peer < CUBE_PEERS_MAX
            and 2 <= len(self.cells) <= CUBE_COPIES_MAX
            and all(
                max(abs(x), abs(y)) <= CUBE_CELL_INDEX_MAX and 1 <= nth <= STAMP_NUMBER_MAX
                for x, y, nth in self.cells
            )
        )


_decoder = msgspec.json.Decoder(Copies)


def cell_topic(topic: str, cell: Cell) -> str:
    """
    >>> cell_topic("ticks", (3, -1)), topic_of("ticks@3,-1")
    ('ticks@3,-1', 'ticks')
    """
    return f"{topic}@{cell[0]},{cell[1]}"


def topic_of(cell: str) -> str:
    return cell.rpartition("@")[0]


def marked(value: Mapping[str, Scalar], copies: Copies) -> dict[str, Scalar]:
    """The attributes of a copy."""
    return {**value, COPIES: msgspec.json.encode(copies).decode()}


def shown(value: dict[str, Scalar]) -> tuple[dict[str, Scalar], Copies | None]:
    """What applications see of the attributes, and where the copies stand; None if there are none,
    or nothing that could be."""
    if COPIES not in value:
        return value, None
    rest = {name: each for name, each in value.items() if name != COPIES}
    text = value[COPIES]
    try:
        copies = _decoder.decode(text) if isinstance(text, str) else None
    except (msgspec.DecodeError, UnicodeError):
        return rest, None
    return rest, copies if copies is not None and copies.is_sound else None
