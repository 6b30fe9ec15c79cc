"""Parts: whom a copy of a message is for, in a few bytes.

Peer 0 publishes for 2, 4, 5 and 7. Its copy for peer 4 says "and to the peers at offsets 1 and 3",
which are 4 xor 1 and 4 xor 3. Peer 4 splits that by cluster: peer 5 is in cluster 1 and gets an
empty part, peer 7 is alone in cluster 2 and gets an empty part, too.

Rule 1: an offset is a peer's number xor the receiver's. A part lies in a sub-cube of h dimensions
        below the receiver, h = cluster(parent, receiver) - 1; all its offsets are below 2^h.
Rule 2: offset 0, the receiver itself, is always meant and costs nothing: b"" means nobody else.
Rule 3: a part is a bitmap of 2^h bits (bit m of byte m // 8, bit 0 set), or the differences of the
        rising offsets above 0 as varints, if those take fewer bytes. So the length alone tells
        which it is.
Rule 4: a set has exactly one spelling, and any other bytes are a `BadFrame`. Peers that only pass
        on check what they pass on.

What is not covered: offsets of numbers that no peer has, where the count of peers is not a power of
two. Only who knows the count can refuse those.

Theory. XOR keeps clusters and their order (topology.py), so splitting needs no number of a peer:
the same bytes give the same parts at every peer, and most peers of a cube split bytes that another
one has split before. Passing from offsets of one peer to those of another permutes the bits of a
mask, bit m to bit m xor x. For each bit b of x that is a swap of neighbouring blocks of 2^b bits,
so it takes h steps on whole masks and none on single members.

A full broadcast carries d * 2^(d-1) bits over its 2^d - 1 edges: d/2 bits on an edge. The copy of
half of all peers is the fattest: 256 bytes of 4,096 peers. (The thesis has no parts: its peers pass
on by what each believes about the topic, and lose messages where that is behind: P2, P3, P4, P13.)
"""

from __future__ import annotations

from functools import lru_cache

from inorder.core.errors import BadFrame
from inorder.core.limits import CUBE_SPLITS_KEPT

# For each child its offset, nearest cluster first, and its part.
Children = tuple[tuple[int, bytes], ...]


def encode(offsets_mask: int, h: int) -> bytes:
    """The part for these offsets of a sub-cube of h dimensions, bit m of the mask for offset m.

    >>> encode(0b1, 3), encode(0b1011, 3), encode(1 << 70, 7)
    (b'', b'\\x0b', b'F')
    """
    assert 0 <= offsets_mask < 1 << (1 << h), f"offsets beyond {h} dimensions"
    rest = offsets_mask >> 1
    if not rest:
        return b""
    size = _bitmap_bytes(h)
    if rest.bit_count() < size:
        listed = _differences(rest, size)
        if len(listed) < size:
            return listed
    return (offsets_mask | 1).to_bytes(size, "little")


def decode(part: bytes, h: int) -> int:
    """The mask of offsets, bit 0 included.

    >>> bin(decode(b"", 3)), bin(decode(b"\\x0b", 3))
    ('0b1', '0b1011')
    """
    if not part:
        return 1
    size = _bitmap_bytes(h)
    if len(part) > size:
        raise BadFrame(f"part of {len(part)} bytes, {h} dimensions take {size} at most")
    mask = int.from_bytes(part, "little") if len(part) == size else _listed(part, 1 << h)
    if mask >> (1 << h) or encode(mask, h) != part:
        raise BadFrame(f"part of {len(part)} bytes is none of {h} dimensions")
    return mask


# A simulation of 4,096 peers splits at every hop, and the same few bytes most of the time: looking
# them up costs a tenth of a microsecond, splitting up to a hundred.
@lru_cache(maxsize=CUBE_SPLITS_KEPT)
def split(part: bytes, h: int) -> Children:
    """The children of the receiver of a part, each by its offset from the receiver, with its part.

    >>> split(encode(0b1011, 2), 2)
    ((1, b''), (3, b''))
    """
    return split_mask(decode(part, h), h)


def split_mask(mask: int, h: int) -> Children:
    """The same for offsets as a mask, as the source of a tree has them. Bit 0 does not matter.

    >>> split_mask(0b1010_1100, 3)
    ((2, b'\\x03'), (5, b'\\x05'))
    """
    assert 0 <= mask < 1 << (1 << h), f"offsets beyond {h} dimensions"
    children = []
    for s in range(h, 0, -1):
        # The upper half is cluster s. Its numbers, less the upper bit, are offsets from its head.
        block = mask >> (1 << (s - 1))
        if block:
            mask ^= block << (1 << (s - 1))
            near = (block & -block).bit_length() - 1
            children.append(((1 << (s - 1)) | near, encode(_permuted(block, near, s - 1), s - 1)))
    return tuple(reversed(children))


def resplit(part: bytes, h: int, dead: int, link: int = 0) -> tuple[int, bytes] | None:
    """Who takes over the part of a dead child, with its part; None if nobody is left in it.

    `dead` are further offsets from the child to be left out. `link` is the offset at which the
    child's parent had it in `split`; the answer counts from the parent then, and the nearest to
    *the parent* takes over, as if the dead had never been members. Without a link both count from
    the child. The successor has the same h.

    >>> resplit(encode(0b1101, 2), 2, dead=0b0000, link=5)
    (6, b'\\x03')
    >>> resplit(encode(0b1101, 2), 2, dead=0b1000, link=5), resplit(b"", 2, dead=0)
    ((7, b''), None)
    """
    size = 1 << h
    left = decode(part, h) & ~(dead | 1)
    if not left:
        return None
    # Seen from the head of the parent's cluster, the lowest bit is the nearest to the parent.
    left = _permuted(left, link & (size - 1), h)
    near = (left & -left).bit_length() - 1
    return (link & -size) | near, encode(_permuted(left, near, h), h)


def relative(mask: int, me: int, h: int) -> int:
    """Numbers of peers as offsets from peer `me`: those of its sub-cube of h dimensions.

    >>> bin(relative(0b1011_0000, 4, 2)), bin(relative(0b1011_0000, 6, 2))
    ('0b1011', '0b1110')
    """
    size = 1 << h
    block = (mask >> (me & -size)) & ((1 << size) - 1)
    return _permuted(block, me & (size - 1), h)


def _permuted(mask: int, x: int, h: int) -> int:
    """Bit m of a mask of 2^h bits becomes bit m xor x."""
    while x:
        step = x & -x
        x ^= step
        lower = _lower_blocks(step, h)
        mask = ((mask & lower) << step) | ((mask >> step) & lower)
    return mask


# One mask for each bit of a number and size of a sub-cube: 136 of them at 16 dimensions.
@lru_cache(maxsize=256)
def _lower_blocks(step: int, h: int) -> int:
    """Of 2^h bits every other block of `step` bits, the lowest first: 0011 for steps of two."""
    return ((1 << (1 << h)) - 1) // ((1 << step) + 1)


def _bitmap_bytes(h: int) -> int:
    return ((1 << h) + 7) // 8


def _differences(rest: int, size: int) -> bytes:
    """The varints for offsets above 0 (bit 0 of `rest` is offset 1); given up at `size` bytes."""
    out = bytearray()
    while rest and len(out) < size:
        step = (rest & -rest).bit_length()
        rest >>= step
        while step > 0x7F:
            out.append((step & 0x7F) | 0x80)
            step >>= 7
        out.append(step)
    return bytes(out)


def _listed(part: bytes, end: int) -> int:
    """The mask that a list of differences spells; offsets beyond the sub-cube are not made bits."""
    mask = 1
    offset = step = shift = 0
    for byte in part:
        step |= (byte & 0x7F) << shift
        shift += 7
        if byte <= 0x7F:
            offset += step
            if offset >= end:
                raise BadFrame(f"offset {offset} in a part of {end} peers")
            mask |= 1 << offset
            step = shift = 0
    return mask
