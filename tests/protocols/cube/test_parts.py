"""Parts: one spelling for each set, small, and split exactly as the tree is."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.errors import BadFrame
from inorder.core.limits import CUBE_SPLITS_KEPT
from inorder.protocols.cube.parts import decode, encode, relative, resplit, split, split_mask
from inorder.protocols.cube.topology import children_down, cluster, dimensions, first_child


def mask_of(members):
    return sum(1 << j for j in members)


def bits_of(mask):
    return [m for m in range(mask.bit_length()) if mask >> m & 1]


# Slow twins: sets of offsets, one peer at a time.


def slow_split(offsets, h):
    """By cluster of the receiver: the nearest offset, and the others as seen from there."""
    parts = {}
    for s in range(1, h + 1):
        inside = sorted(m for m in offsets if m.bit_length() == s)
        if inside:
            parts[inside[0]] = {m ^ inside[0] for m in inside}
    return parts


def slow_resplit(offsets, dead, link, h):
    """The one nearest to the parent, who is at offset `link` from the dead child."""
    left = {m ^ link for m in offsets if m != 0 and m not in dead}
    if not left:
        return None
    return min(left), {m ^ min(left) for m in left}


@st.composite
def subcubes(draw, dimensions_max=8):
    """A number of dimensions and a set of offsets, sparse ones as often as dense ones."""
    h = draw(st.integers(0, dimensions_max))
    if draw(st.booleans()):
        offsets = draw(st.sets(st.integers(0, 2**h - 1), max_size=12))
    else:
        offsets = set(bits_of(draw(st.integers(0, 2 ** (2**h) - 1))))
    return h, offsets


# Spelling.


@given(subcubes())
def test_what_is_encoded_is_decoded(drawn):
    h, offsets = drawn
    part = encode(mask_of(offsets), h)
    assert bits_of(decode(part, h)) == sorted({0, *offsets})
    assert encode(mask_of({0, *offsets}), h) == part


@given(subcubes(dimensions_max=11))
def test_a_part_is_never_longer_than_a_bitmap_nor_than_a_list(drawn):
    h, offsets = drawn
    part = encode(mask_of(offsets), h)
    inside = sorted(offsets - {0})
    gaps = [high - low for low, high in itertools.pairwise([0, *inside])]
    listed = sum(1 if gap < 128 else 2 for gap in gaps)
    bitmap = -(-(2**h) // 8)
    assert len(part) == (min(listed, bitmap) if inside else 0)


@pytest.mark.parametrize("h", range(5))
def test_every_set_has_one_spelling_and_no_other_bytes_are_any(h):
    size = -(-(2**h) // 8)
    spellings = {encode(mask, h): mask for mask in range(1, 2 ** (2**h), 2)}
    assert len(spellings) == 2 ** (2**h - 1)
    for length in range(size + 1):
        for content in itertools.product(range(256), repeat=length):
            part = bytes(content)
            if part in spellings:
                assert decode(part, h) == spellings[part]
            else:
                with pytest.raises(BadFrame):
                    decode(part, h)


@given(st.binary(max_size=40), st.integers(0, 8))
def test_bytes_are_a_part_or_a_bad_frame(part, h):
    try:
        mask = decode(part, h)
    except BadFrame:
        with pytest.raises(BadFrame):
            split(part, h)
        with pytest.raises(BadFrame):
            resplit(part, h, 0)
    else:
        assert encode(mask, h) == part
        assert split(part, h) == split_mask(mask, h)


MALFORMED = {
    "an offset beyond the sub-cube": (b"\x20", 5),
    "a second offset beyond the sub-cube": (b"\x1f\x01", 5),
    "an offset that stands still": (b"\x05\x00", 8),
    "a difference cut short": (b"\x05\x80", 8),
    "a difference with a needless byte": (b"\x85\x00", 8),
    "an endless difference": (b"\xff" * 31, 8),
    "a list as long as the bitmap": (b"\x02\x02", 4),
    "a bitmap without the receiver": (b"\xfe\xff", 4),
    "a bitmap where a list is shorter": (b"\x01\x80", 4),
    "a bitmap where nothing is shorter": (b"\x01\x00", 4),
    "a bitmap with a bit beyond the sub-cube": (b"\x13", 2),
    "more bytes than the bitmap": (b"\xff\xff\x00", 4),
    "a leaf with bytes": (b"\x01", 0),
    "a leaf with a neighbour": (b"\x02", 0),
}


@pytest.mark.parametrize(("part", "h"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_bytes_are_refused(part, h):
    for read in (decode, split, lambda part, h: resplit(part, h, 0)):
        with pytest.raises(BadFrame):
            read(part, h)


def test_their_well_formed_neighbours_are_read():
    assert bits_of(decode(b"\x1f", 5)) == [0, 31]
    assert bits_of(decode(b"\x1e\x01", 5)) == [0, 30, 31]
    assert bits_of(decode(b"\x05", 8)) == [0, 5]
    assert bits_of(decode(b"\x85\x01", 8)) == [0, 133]
    assert bits_of(decode(b"\x05\x80\x01", 8)) == [0, 5, 133]
    assert decode(b"\xff\xff", 4) == 0xFFFF
    assert decode(b"\x0f", 2) == 0xF
    assert decode(b"", 0) == 1


def test_a_malformed_part_is_refused_before_it_is_looked_through():
    with pytest.raises(BadFrame, match="257 bytes, 11 dimensions take 256 at most"):
        decode(b"\x00" * 257, 11)


def test_numbers_beyond_the_sub_cube_are_a_mistake_of_the_caller():
    for h in range(4):
        for call in (encode, split_mask):
            with pytest.raises(AssertionError):
                call(1 << 2**h, h)


def test_a_difference_of_128_takes_two_bytes():
    assert encode(1 << 127, 11) == b"\x7f"
    assert encode(1 << 128, 11) == b"\x80\x01"
    assert encode(mask_of({127, 254}), 11) == b"\x7f\x7f"


def test_a_list_is_taken_only_if_it_is_shorter():
    assert encode(1 << 9, 4) == b"\x09"
    assert encode(mask_of({0, 1, 9}), 4) == b"\x03\x02"
    assert encode(1 << 5, 3) == b"\x21"
    # 31 offsets that would take 32 bytes, as the bitmap does.
    offsets = mask_of({*range(1, 31), 200})
    assert encode(offsets, 8) == (offsets | 1).to_bytes(32, "little")
    assert encode(offsets & ~2, 8) == b"\x02" + b"\x01" * 28 + b"\xaa\x01"


# Splitting.


@given(subcubes())
def test_a_part_is_split_by_cluster_to_the_nearest(drawn):
    h, offsets = drawn
    pieces = split_mask(mask_of(offsets), h)
    expected = slow_split(offsets, h)
    assert [child for child, _ in pieces] == sorted(expected)
    for child, piece in pieces:
        assert set(bits_of(decode(piece, child.bit_length() - 1))) == expected[child]
    assert split(encode(mask_of(offsets), h), h) == pieces


def passed_on(root, members, d):
    """Edges with the parts on them, for a message from `root` to all members."""
    edges = []
    waiting = [(root, split_mask(relative(members, root, d), d))]
    while waiting:
        i, pieces = waiting.pop()
        for offset, part in pieces:
            child = i ^ offset
            edges.append((i, child, part))
            waiting.append((child, split(part, cluster(i, child) - 1)))
    return edges


def tree(root, members, d):
    edges = []
    waiting = [(root, d)]
    while waiting:
        i, h = waiting.pop()
        for child in children_down(i, h, members):
            edges.append((i, child))
            waiting.append((child, cluster(i, child) - 1))
    return edges


@pytest.mark.parametrize("count", range(1, 18))
def test_parts_travel_on_the_tree_of_their_source(count):
    rng = random.Random(count)
    d = dimensions(count)
    for root in range(count):
        for members in (2**count - 1, rng.getrandbits(count), rng.getrandbits(count), 0):
            edges = [(i, child) for i, child, _ in passed_on(root, members, d)]
            assert sorted(edges) == sorted(tree(root, members, d))


def test_a_part_says_who_is_below_the_edge():
    rng = random.Random(7)
    for _ in range(300):
        d = rng.randint(1, 7)
        members, root = rng.getrandbits(2**d), rng.randrange(2**d)
        edges = passed_on(root, members, d)
        for i, child, part in edges:
            h = cluster(i, child) - 1
            below = {j for j in bits_of(members) if j >> h == child >> h and j != root}
            assert {child ^ m for m in bits_of(decode(part, h))} == below


@pytest.mark.parametrize("d", range(1, 13))
def test_a_full_broadcast_carries_d_times_half_of_the_peers_bits(d):
    edges = passed_on(3 % 2**d, (1 << 2**d) - 1, d)
    bits = 0
    for i, child, part in edges:
        h = cluster(i, child) - 1
        assert decode(part, h) == (1 << 2**h) - 1
        assert len(part) == (max(2**h // 8, 1) if h else 0)
        bits += 2**h
    assert len(edges) == 2**d - 1
    assert bits == d * 2 ** (d - 1)
    assert max(len(part) for _, _, part in edges) == (2**d // 16 if d > 3 else d > 1)


def test_most_splits_of_a_broadcast_are_remembered_and_the_memory_is_bounded():
    split.cache_clear()
    passed_on(5, (1 << 256) - 1, 8)
    seen = split.cache_info()
    assert (seen.misses, seen.hits) == (8, 247)
    assert seen.maxsize == CUBE_SPLITS_KEPT


# Numbers of peers as offsets.


@given(st.integers(0, 2**64 - 1), st.integers(0, 63), st.integers(0, 6))
def test_numbers_become_offsets_within_the_sub_cube(mask, me, h):
    expected = sorted(j ^ me for j in bits_of(mask) if j >> h == me >> h)
    assert bits_of(relative(mask, me, h)) == expected


def test_offsets_of_4096_peers():
    rng = random.Random(8)
    for _ in range(5):
        members = sorted(rng.sample(range(4096), 700))
        me = rng.randrange(4096)
        assert bits_of(relative(mask_of(members), me, 12)) == sorted(j ^ me for j in members)


# After a crash.


@given(subcubes(dimensions_max=6), st.data())
def test_the_nearest_to_the_parent_takes_over_a_dead_child(drawn, data):
    h, offsets = drawn
    dead = data.draw(st.sets(st.integers(0, 2**h - 1)))
    link = data.draw(st.one_of(st.just(0), st.integers(2**h, 2 ** (h + 1) - 1)))
    successor = resplit(encode(mask_of(offsets), h), h, mask_of(dead), link)
    expected = slow_resplit(offsets, dead, link, h)
    if successor is None or expected is None:
        assert successor is expected
    else:
        assert successor[0] == expected[0]
        assert set(bits_of(decode(successor[1], h))) == expected[1]


def test_after_a_crash_the_tree_is_that_of_the_living():
    rng = random.Random(9)
    crashed_with_heirs = 0
    for _ in range(2000):
        d = rng.randint(1, 5)
        members, root = rng.getrandbits(2**d), rng.randrange(2**d)
        dead = rng.getrandbits(2**d)
        for offset, part in split_mask(relative(members, root, d), d):
            child = root ^ offset
            if dead >> child & 1:
                s = offset.bit_length()
                successor = resplit(part, s - 1, relative(dead, child, s - 1), offset)
                heir = first_child(root, s, members & ~dead)
                if successor is None:
                    assert heir is None
                    continue
                crashed_with_heirs += 1
                assert root ^ successor[0] == heir
                kept = dict(split_mask(relative(members & ~dead, root, d), d))
                assert kept[successor[0]] == successor[1]
    assert crashed_with_heirs > 500


def test_the_nearest_to_the_dead_child_is_another_one():
    """Peer 0 has given 5, 6 and 7 to 5, which dies. Without 5 its child would be 6, not 7."""
    part = encode(relative(mask_of({5, 6, 7}), 5, 2), 2)
    assert first_child(0, 3, mask_of({6, 7})) == 6
    with_link, without = resplit(part, 2, 0, link=5), resplit(part, 2, 0)
    assert with_link is not None
    assert without is not None
    assert 0 ^ with_link[0] == 6
    assert 5 ^ without[0] == 7


def test_a_successor_can_die_too():
    part = encode(0b1111, 2)
    first = resplit(part, 2, 0, link=4)
    assert first == (5, encode(0b1101, 2))
    second = resplit(first[1], 2, 0, link=first[0])
    assert second == (6, encode(0b11, 2))
    third = resplit(second[1], 2, 0, link=second[0])
    assert third == (7, b"")
    assert resplit(third[1], 2, 0, link=third[0]) is None
