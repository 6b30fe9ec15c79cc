"""What a detector refuses, and what its state holds."""

from __future__ import annotations

import random

import pytest

from inorder.core import wire
from inorder.core.errors import BadMessage
from inorder.core.limits import CUBE_TURNS_MAX
from inorder.core.pack import pack, unpacker
from inorder.protocols.cube import detector as room
from inorder.protocols.cube.detector import (
    Detector,
    DetectorState,
)
from tests.protocols.cube.rounds import (
    TIMING,
    Timing,
    with_faulty,
)

unpack = unpacker(DetectorState)


# What may not be sent.


@pytest.mark.parametrize("source", [-1, 0, 4])
def test_a_stranger_is_refused(source):
    detector = Detector(0, 4, TIMING)
    for message in (room.Test(1), room.Tested(1)):
        with pytest.raises(BadMessage):
            detector.heard(source, message, 0.0)


@pytest.mark.parametrize(
    "rows",
    [
        ((4, 1),), ((-1, 1),), ((2, 1), (1, 1)), ((1, 1), (1, 3)), ((1, 0),), ((1, -1),),
        ((1, CUBE_TURNS_MAX + 1),), ((3, 1), (7, 1)),
    ],
)  # fmt: skip
def test_bad_rows_are_refused_and_change_nothing(rows):
    detector = Detector(0, 4, TIMING)
    detector.tick(0.0)
    before = pack(detector.state())
    with pytest.raises(BadMessage):
        detector.heard(2, room.Tested(1, rows), 0.1)
    assert pack(detector.state()) == before
    assert detector.correct == 0b1111


def test_the_largest_counter_is_taken():
    detector = Detector(0, 4, TIMING)
    detector.tick(0.0)
    detector.heard(2, room.Tested(1, ((3, CUBE_TURNS_MAX),)), 0.1)
    assert detector._counters == {3: CUBE_TURNS_MAX}


def test_messages_are_their_bytes():
    decoder = wire.Decoder(room.Test | room.Tested)
    for message in (
        room.Test(7),
        room.Test(7, b"12345678"),
        room.Tested(7),
        room.Tested(7, ((1, 1),)),
    ):
        assert decoder.decode(wire.encode(message)) == message


# State.


def test_the_state_is_all_there_is():
    """A detector that is packed and unpacked between any two inputs behaves as one that is not."""
    rng = random.Random(8)
    for _ in range(200):
        timing = Timing(1.0, 0.25, 3.0)
        kept, packed = Detector(3, 9, timing), Detector(3, 9, timing)
        now = 0.0
        for _ in range(40):
            now += rng.random()
            verb, *arguments = _draw_input(rng, kept.state().round)
            outs = getattr(kept, verb)(*arguments, now)
            packed = Detector(3, 9, timing, unpack(pack(packed.state())))
            assert getattr(packed, verb)(*arguments, now) == outs
            assert pack(packed.state()) == pack(kept.state())
            assert packed.correct == kept.correct


def _draw_input(rng, number):
    kind = rng.randrange(5)
    source = rng.choice([peer for peer in range(9) if peer != 3])
    if kind == 0:
        return ("expire",)
    if kind == 1:
        return ("heard", source, room.Test(rng.randint(1, 5)))
    if kind == 2:
        rows = tuple((peer, rng.randint(1, 4)) for peer in range(9) if rng.random() < 0.2)
        return ("heard", source, room.Tested(rng.randint(max(0, number - 3), number + 1), rows))
    return ("tick",)


def test_equal_states_have_equal_bytes():
    one, other = with_faulty(0, 8, {3, 6}), Detector(0, 8, TIMING)
    for peer in (6, 3):
        other._turn(peer, 1, 0.0)
    assert pack(one.state()) == pack(other.state())
    for peer in (6, 3):
        other.declare([peer])
    one.declare([3, 6])
    assert pack(one.state()) == pack(other.state())
