"""A tree message on its way through a peer: whom it waits for, and what it will answer.

Rule 1: the set of children is fixed when their copies leave; views may change meanwhile. An
        acknowledgement takes its child out, once.
Rule 2: the part given to each child is kept until it is acknowledged, or has been given to another
        one because the child is suspected (trees.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic

from msgspec import Struct

from inorder.core.effect import Answer
from inorder.protocols.cube.messages import Act, Body, Kept, Pub, Standing, Sub, Tree, Uns

# Kind (its place in messages.KINDS), topic, source, and its number: that of a publication, or of a
# change.
Key = tuple[int, str, int, int]

# A message and the number of its task at a peer, from 0.
Task = tuple[Key, int]

# The parent of a wave at its source.
ROOT = -1


class Wave(Struct, Generic[Body], array_like=True, gc=False):
    """What a peer remembers until a part is acknowledged."""

    parent: int
    # By child, what it has to reach.
    parts: dict[int, bytes]
    tree: Sub | Act | Uns | Pub[Body] | Kept[Body]
    standings: tuple[Standing, ...] = ()
    # At the source: what its application will be answered.
    answer: Answer | None = None
    # When a part was first given to another child, 0 if none was.
    repaired_at: float = 0.0


class KeptWave(Struct, Generic[Body], array_like=True):
    """A wave in a snapshot: MessagePack sorts no dictionary of numbers."""

    parent: int
    parts: list[tuple[int, bytes]]
    tree: Sub | Act | Uns | Pub[Body] | Kept[Body]
    standings: tuple[Standing, ...]
    answer: Answer | None
    repaired_at: float

    @classmethod
    def of(cls, wave: Wave[Body]) -> KeptWave[Body]:
        parts = sorted(wave.parts.items())
        return cls(wave.parent, parts, wave.tree, wave.standings, wave.answer, wave.repaired_at)

    @property
    def wave(self) -> Wave[Body]:
        return Wave(
            self.parent, dict(self.parts), self.tree, self.standings, self.answer,
            self.repaired_at,
        )  # fmt: skip


def copies(tree: Tree, parts: Mapping[int, bytes], again: int) -> Iterator[tuple[int, Tree]]:
    """The message for each child."""
    for child, to in parts.items():
        if type(tree) is Pub:
            yield (
                child,
                Pub(
                    tree.topic,
                    tree.source,
                    tree.number,
                    to,
                    tree.body,
                    tree.life,
                    tree.stable,
                    again,
                ),
            )
        elif isinstance(tree, Sub):
            yield (
                child,
                Sub(
                    tree.topic, tree.source, tree.change, tree.role, tree.base, to, tree.life, again
                ),
            )
        elif isinstance(tree, Kept):
            yield (
                child,
                Kept(tree.topic, tree.source, tree.number, to, tree.body, tree.fence, again),
            )
        else:
            assert isinstance(tree, Act | Uns)
            yield child, type(tree)(tree.topic, tree.source, tree.change, to, tree.life, again)
