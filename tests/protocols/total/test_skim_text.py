"""Stamps read at once: the decoder is the slow twin, and no spoilt text gets through."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inorder.protocols.total.skim import _read_each
from inorder.protocols.total.skim_text import read_alike

TOPICS = ["a", "b", "t1", "t10", "2024-01", "7", 'quo"te', "back\\slash", "ü", "\x01", "a{b", ","]
NUMBERS = st.one_of(st.integers(0, 30), st.integers(0, 10**18 - 1))

encode = msgspec.json.Encoder().encode


def by_topic(found: tuple[list[str], Any]) -> dict[str, list[int]]:
    return dict(zip(found[0], found[1].tolist(), strict=True))


def decoded(text: bytes, count: int) -> dict[str, list[int]] | None:
    found = _read_each([], count, text)
    return None if found is None else by_topic(found)


@st.composite
def arrays(draw: Any) -> tuple[bytes, int]:
    topics = draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.lists(NUMBERS, min_size=len(topics), max_size=len(topics)),
                         min_size=1, max_size=6))  # fmt: skip
    return encode([dict(zip(topics, row, strict=True)) for row in rows]), len(rows)


@given(arrays())
def test_it_reads_what_the_decoder_reads(array):
    text, count = array
    found = read_alike(text, count)
    assert found is not None
    assert by_topic(found) == decoded(text, count)


@settings(max_examples=400)
@given(arrays(), st.data())
def test_a_spoilt_text_is_left_to_the_decoder(array, data):
    text, count = array
    spoilt = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(1, len(spoilt) - 1))
        kind = data.draw(st.sampled_from(["put", "drop", "change", "swap"]))
        byte = data.draw(st.sampled_from(list(b'0123456789-+.e"{}[],: \\a')))
        if kind == "put":
            spoilt.insert(place, byte)
        elif kind == "drop" and place < len(spoilt) - 1:
            del spoilt[place]
        elif kind == "change":
            spoilt[place] = byte
        else:
            spoilt[place - 1], spoilt[place] = spoilt[place], spoilt[place - 1]
    found = read_alike(bytes(spoilt), count)
    if found is not None and spoilt.endswith(b"]"):
        assert by_topic(found) == decoded(bytes(spoilt), count)


@pytest.mark.parametrize(
    "rows",
    [
        ['{"a":1}', '{"a":01}'],
        ['{"t1":1}', '{"t2":1}'],
        ['{"t1":1}', '{"t01":1}'],
        ['{"a":1,"b":2}', '{"b":2,"a":1}'],
        ['{"a":-1}', '{"a":-2}'],
        ['{"a":1}', '{"a":1.5}'],
        ['{"a":1,"a":2}', '{"a":1,"a":2}'],
        ['{"a": 1}', '{"a": 2}'],
        ['{"a":9999999999999999999}', '{"a":1}'],
        ["{}", "{}"],
        ['{"a}":1}', '{"a}":2}'],
        ['{"a":1}', '{"a":}'],
        ['{"a":1}1', '{"a":}'],
    ],
)
def test_what_is_not_alike_or_not_plain_is_not_read(rows):
    assert read_alike(f"[{','.join(rows)}]".encode(), len(rows)) is None


@pytest.mark.parametrize("text", [b"", b"[]", b"[", b"{}", b'["a"]', b'{"a":1}', b"[1,2]"])
def test_what_is_no_array_of_stamps_is_not_read(text):
    assert read_alike(text, 1) is None
