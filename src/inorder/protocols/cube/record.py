"""What a peer must not forget: which life it is in, how often it has changed its membership, and
its numbers.

A peer that began again at number 1 would be taken for one that says everything twice.
"""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from inorder.core.pack import pack, unpacker
from inorder.protocols.cube.topic import Topic

# Before the peer's own records: no record of a machine begins with this byte, which MessagePack
# never uses. A life has it twice.
RECORD = b"\xc1"
LIFE = RECORD + RECORD


class Record(Struct, frozen=True, gc=False):
    """A topic's change number, and the last publication number that may be given away."""

    topic: str
    change: int
    reserved: int

    @classmethod
    def read(cls, record: bytes) -> Self:
        entry: Self = _unpack(record[len(RECORD) :])
        return entry


_unpack = unpacker(Record)
_unpack_life = unpacker(int)


def record_of(name: str, topic: Topic) -> bytes:
    return RECORD + pack(Record(name, topic.change, topic.reserved))


def record_of_life(life: int) -> bytes:
    return LIFE + pack(life)


def life_in(record: bytes) -> int | None:
    """The life that a record is about, if it is about one."""
    if not record.startswith(LIFE):
        return None
    life: int = _unpack_life(record[len(LIFE) :])
    return life
