"""A tree message on its way through a peer: whom it waits for, and what it will answer.

Rule 1: the set of children is fixed when their copies leave; views may change meanwhile. An
        acknowledgement takes its child out, once.
Rule 2: the part given to each child is kept until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic

from msgspec import Struct

from inorder.core.effect import Answer
from inorder.protocols.cube.messages import Act, Body, Pub, Standing, Sub, Tree, Uns

# Kind (its place in messages.KINDS), topic, source, and its number: that of a publication, or of a
# change.
Key = tuple[int, str, int, int]

# The parent of a wave at its source.
ROOT = -1


class Wave(Struct, Generic[Body], array_like=True, gc=False):
    """What a peer remembers until a part is acknowledged."""

    parent: int
    # By child, what it has to reach.
    parts: dict[int, bytes]
    tree: Sub | Act | Uns | Pub[Body]
    standings: tuple[Standing, ...] = ()
    # At the source: what its application will be answered.
    answer: Answer | None = None


class Kept(Struct, Generic[Body], array_like=True):
    """A wave in a snapshot: MessagePack sorts no dictionary of numbers."""

    key: Key
    parent: int
    parts: list[tuple[int, bytes]]
    tree: Sub | Act | Uns | Pub[Body]
    standings: tuple[Standing, ...]
    answer: Answer | None

    @classmethod
    def of(cls, key: Key, wave: Wave[Body]) -> Kept[Body]:
        parts = sorted(wave.parts.items())
        return cls(key, wave.parent, parts, wave.tree, wave.standings, wave.answer)

    @property
    def wave(self) -> Wave[Body]:
        return Wave(self.parent, dict(self.parts), self.tree, self.standings, self.answer)


def copies(tree: Tree, parts: Mapping[int, bytes]) -> Iterator[tuple[int, Tree]]:
    """The message for each child."""
    for child, to in parts.items():
        if type(tree) is Pub:
            yield child, Pub(tree.topic, tree.source, tree.number, to, tree.body)
        elif isinstance(tree, Sub):
            sub = Sub(tree.topic, tree.source, tree.change, tree.role, tree.base, to)
            yield child, sub
        else:
            assert isinstance(tree, Act | Uns)
            yield child, type(tree)(tree.topic, tree.source, tree.change, to)
