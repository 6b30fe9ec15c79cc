"""Attributes of many events: JSON text in, one column for each attribute out.

Rule 1: an event's attributes are the truth values, numbers, texts and nulls at the top of a JSON
        object; what is nested in it, no filter sees. An empty text, like null, is an object without
        attributes. Python's NaN and Infinity are read, as the judges of traces read them. Anything
        else has a reason to be set aside, and the reason depends on the event alone.
Rule 2: columns hold the values exactly. Numbers become floats only where each of them stays itself;
        mixed columns stay lists of Python's values, which the index reads one by one.

All texts are decoded in one call, without the garbage collector: it would walk over the objects of
every batch several times, and over the index with them. pyarrow's reader is no faster, and takes
texts that look like dates for dates.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from inorder.core.event import Scalar
from inorder.core.limits import MATCH_ATTRIBUTES_BYTES_MAX

Attributes = Mapping[str, Scalar]

_NONE: Attributes = {}
_EXACT = 2.0**53  # whole numbers up to here are floats too
_decode = msgspec.json.Decoder(dict[str, Scalar]).decode
_decode_nested = msgspec.json.Decoder(dict[str, Any]).decode


def attributes_of(texts: Sequence[str]) -> tuple[list[Attributes], dict[int, str]]:
    """The attributes of each text, and the reasons of those that have none, by place.

    >>> attributes_of(['{"price": 9.5}', "", "[]"])
    ([{'price': 9.5}, {}, {}], {2: 'the attributes are not an object'})
    """
    with no_collection():
        try:
            if max(map(len, texts), default=0) * 4 <= MATCH_ATTRIBUTES_BYTES_MAX:
                return [*map(_decode, texts)], {}
        except (msgspec.MsgspecError, UnicodeError):
            pass  # not all of them are as they should be
        rows: list[Attributes] = []
        reasons: dict[int, str] = {}
        for place, text in enumerate(texts):
            found = _read(text) if text else _NONE
            if isinstance(found, str):
                reasons[place] = found
                found = _NONE
            rows.append(found)
        return rows, reasons


def _read(text: str) -> Attributes | str:
    """The attributes, or why there are none."""
    limit = MATCH_ATTRIBUTES_BYTES_MAX
    if len(text) * 4 > limit and (size := len(text.encode())) > limit:
        return f"the attributes have {size} bytes, the limit is {limit}"
    try:
        return _flat(_decode_nested(text))
    except (msgspec.MsgspecError, UnicodeError):
        pass  # perhaps NaN, half a surrogate pair, or a number beyond all floats
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "the attributes are not JSON"
    if not isinstance(value, dict):
        return "the attributes are not an object"
    return _flat(value)


def _flat(value: dict[str, Any]) -> Attributes:
    return {name: each for name, each in value.items() if not isinstance(each, dict | list)}


def column_of(rows: Sequence[Attributes], name: str) -> Any:
    """One attribute of all events, as the index reads it fastest.

    >>> column_of([{"n": 1}, {"n": 2.5}, {}], "n"), column_of([{"n": 1}, {"n": "x"}], "n")
    (array([1. , 2.5, nan]), [1, 'x'])
    """
    values = [row.get(name) for row in rows]
    kinds = {*map(type, values)}
    if not kinds <= {int, float, type(None)}:
        return values
    try:
        floats = np.array(values, dtype=np.float64)
    except OverflowError:
        return values
    if int in kinds and (np.abs(floats) >= _EXACT).any():
        return values
    return floats


@contextmanager
def no_collection() -> Iterator[None]:
    """Do without the garbage collector for a while."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
