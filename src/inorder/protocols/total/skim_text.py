"""Stamps that are written alike, read at once.

Rule: only texts that are the first one with other numbers, character by character, are read here.
      Anything else is None, and is read in the usual way (skim.py).

Theory. Stamps of a log name all topics, so from one new topic to the next their texts differ in
their digits only. What is no digit must then be that of the first stamp, over and over; if each run
of digits is also as far from the one before as there, all of them stand where the first one has
its numbers, or digits in the names of topics, which must be the same.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

# Whole numbers of so many digits fit into 64 bits.
DIGITS_MAX = 18
_ZERO, _COMMA = b"0,"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, int]).decode


def read_alike(stamps: bytes, count: int) -> tuple[list[str], Any] | None:
    """The topics of a JSON array of so many stamps, and a table with a line for each topic.

    >>> topics, table = read_alike(b'[{"a1":7,"b":0},{"a1":18,"b":1}]', 2)
    >>> topics, table.tolist()
    (['a1', 'b'], [[7, 18], [0, 1]])
    """
    first = stamps[1 : stamps.find(b"}") + 1]
    try:
        entries = _decode(first)
    except Exception:
        return None
    if _encode(entries) != first or min(entries.values(), default=-1) < 0:
        return None
    text = np.frombuffer(stamps, np.uint8)[1:].copy()
    text[-1] = _COMMA
    runs = _Runs(text)
    like = _Runs(np.frombuffer(first + b",", np.uint8))
    if not runs.stand_like(like, count) or runs.lengths.max() > DIGITS_MAX:
        return None
    values = runs.values().reshape(count, -1)
    lengths = runs.lengths.reshape(count, -1)
    padded = (text[runs.starts] == _ZERO).reshape(count, -1) & (lengths > 1)
    numbers = _places_of_numbers([*entries])
    names = np.delete(np.arange(values.shape[1]), numbers)
    for each in (values[:, names], lengths[:, names]):
        if (each != each[0]).any():
            return None
    if padded[:, numbers].any():
        return None
    return [*entries], np.ascontiguousarray(values[:, numbers].T)


def _places_of_numbers(topics: list[str]) -> list[int]:
    """Which runs of digits of a stamp are its numbers: the others are in names."""
    places = []
    before = 0
    for topic in topics:
        before += len(_Runs(np.frombuffer(_encode(topic), np.uint8)).starts)
        places.append(before)
        before += 1
    return places


class _Runs:
    """The runs of digits in a text that neither begins nor ends with one."""

    def __init__(self, text: Any) -> None:
        self.text = text
        self.is_digit = (text - _ZERO) < 10  # below zero it wraps around
        edges = np.flatnonzero(self.is_digit[1:] != self.is_digit[:-1]) + 1
        self.starts, self.ends = edges[::2], edges[1::2]
        self.lengths = self.ends - self.starts

    def stand_like(self, like: _Runs, count: int) -> bool:
        """Whether this is so many times the other text, with other digits."""
        if len(self.starts) != count * len(like.starts):
            return False
        gaps = np.append(like.starts[1:], like.starts[0] + len(like.text)) - like.ends
        if (self.starts[1:] - self.ends[:-1] != np.tile(gaps, count)[:-1]).any():
            return False
        same_begin = self.starts[0] == like.starts[0]
        same_end = len(self.text) - self.ends[-1] == len(like.text) - like.ends[-1]
        rest, wanted = self.text[~self.is_digit], like.text[~like.is_digit]
        if not (same_begin and same_end) or len(rest) != count * len(wanted):
            return False
        return bool((rest.reshape(count, -1) == wanted).all())

    def values(self) -> Any:
        found = np.zeros(len(self.starts), np.int64)
        for place in range(int(self.lengths.max())):
            digits = self.text[np.maximum(self.ends - 1 - place, 0)].astype(np.int64) - _ZERO
            found += np.where(self.lengths > place, digits, 0) * 10**place
        return found
