"""Keys for lanes, such that Spark spreads the lanes evenly over its tasks.

Spark gives a key to the task of number hash(key) modulo the number of tasks. Few keys fall
unevenly: of the keys 0, 1, 2, 3 three go to the same one of four tasks. But the hash of a whole
number (Murmur3 of 32 bits, seed 42) loses nothing, so it can be turned back: the key of lane n is
the number whose hash is n, and goes to task n modulo the number of tasks, however many there are.
"""

from __future__ import annotations

_BITS = 32
_MASK = (1 << _BITS) - 1
_SEED = 42
_LENGTH = 4  # bytes of what is hashed


def lane_key(lane: int) -> int:
    """The whole number, signed, whose hash in Spark is `lane`.

    >>> [lane_key(lane) for lane in range(3)]
    [-1693959553, -1910889132, -1382833682]
    """
    state = _unshifted(lane & _MASK, 16)
    state = _divided(state, 0xC2B2AE35)
    state = _unshifted(state, 13)
    state = _divided(state, 0x85EBCA6B)
    state = _unshifted(state, 16) ^ _LENGTH
    state = _divided((state - 0xE6546B64) & _MASK, 5)
    word = _rotated(state, _BITS - 13) ^ _SEED
    word = _rotated(_divided(word, 0x1B873593), _BITS - 15)
    word = _divided(word, 0xCC9E2D51)
    return word - (1 << _BITS) if word >> (_BITS - 1) else word


def _divided(number: int, factor: int) -> int:
    """What was multiplied by an odd factor."""
    inverse: int = pow(factor, -1, 1 << _BITS)
    return number * inverse & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (_BITS - bits)) & _MASK


def _unshifted(number: int, bits: int) -> int:
    """What was combined with itself, shifted to the right by at least a third of its length."""
    once = number ^ number >> bits
    return number ^ once >> bits
