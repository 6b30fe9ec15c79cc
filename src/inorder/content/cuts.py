"""Sets of values of one kind, as the places where they begin and end.

A cut is `(value, -1)`, just before the value, or `(value, +1)`, just after it. A set is its cuts in
rising order: outside before the first, inside after it, outside after the second, and so on. An odd
number of cuts means that the set runs on to the end of the line, so no value needs to be the last;
text has none. Tuples compare cuts rightly, whole numbers with floats exactly.

Each set has one spelling: a truth value's cuts stand before values only, numbers are `plain`, and
the end of the line is never a cut. Attributes that hold whole numbers by schema go further: all
their cuts stand before whole numbers, so that `3 < p AND p < 5` is seen to be `p = 4` (E-C13).
Otherwise a gap between neighbouring values (two floats one ulp apart) counts as not empty. That is
sound: covering then says "no" where "yes" were true, never the other way.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from math import ceil, floor, inf

from inorder.content.value import Kind, Value, plain
from inorder.core.limits import CONTENT_INT_MAX, CONTENT_INT_MIN

Cut = tuple[Value, int]
Cuts = tuple[Cut, ...]

LINE: dict[Kind, Cuts] = {
    "truth": ((False, -1),),
    "number": ((-inf, -1),),
    "text": (("", -1),),
}

# What of two sets to keep: indexed by "inside the first" + 2 * "inside the second".
_BOTH = (False, False, False, True)
_FIRST_ONLY = (False, True, False, False)


def holds(cuts: Cuts, value: Value) -> bool:
    """Whether a value of the same kind is inside.

    >>> [holds(((3, -1), (5, +1)), value) for value in (2.9, 3, 5.0, 5.1)]
    [False, True, True, False]
    """
    return bool(bisect(cuts, (value, 0)) & 1)


def both(a: Cuts, b: Cuts) -> Cuts:
    if len(a) <= 2 and len(b) <= 2 and a and b:
        low = max(a[0], b[0])
        ends = a[1:] + b[1:]
        if not ends:
            return (low,)
        high = min(ends)
        return (low, high) if low < high else ()
    return _swept(a, b, _BOTH)


def without(a: Cuts, b: Cuts) -> Cuts:
    return _swept(a, b, _FIRST_ONLY)


def within(inner: Cuts, outer: Cuts) -> bool:
    """Whether every value of `inner` is in `outer`."""
    if len(inner) <= 2 and len(outer) <= 2 and inner and outer:
        ends = len(outer) == 1 or (len(inner) == 2 and inner[1] <= outer[1])
        return outer[0] <= inner[0] and ends
    return not without(inner, outer)


def _swept(a: Cuts, b: Cuts, keep: tuple[bool, ...]) -> Cuts:
    kept: list[Cut] = []
    i = j = 0
    inside = False
    while i < len(a) or j < len(b):
        cut = a[i] if j == len(b) or (i < len(a) and a[i] <= b[j]) else b[j]
        i += i < len(a) and a[i] == cut
        j += j < len(b) and b[j] == cut
        if keep[(i & 1) + 2 * (j & 1)] != inside:
            inside = not inside
            kept.append(cut)
    return tuple(kept)


def span(kind: Kind, op: str, value: Value, whole: bool = False) -> Cuts:
    """The values of a kind that compare so with one of them.

    >>> span("number", "<=", 3), span("number", ">", 3, whole=True), span("truth", "=", True)
    (((-inf, -1), (3, 1)), ((4, -1),), ((True, -1),))
    """
    line = LINE[kind]
    before, after = _cut(kind, value, -1, whole), _cut(kind, value, +1, whole)
    if op == "=":
        return _from(before, after)
    if op == "<":
        return _from(line[0], before)
    if op == "<=":
        return _from(line[0], after)
    if op == ">":
        return _from(after, None)
    if op == ">=":
        return _from(before, None)
    return without(line, _from(before, after))


def points(kind: Kind, values: Iterable[Value], whole: bool = False) -> Cuts:
    """Exactly these values."""
    rising = sorted({*values})
    if kind != "truth" and not whole and (not rising or rising[-1] != inf):
        return tuple((plain(value), side) for value in rising for side in (-1, +1))
    cuts: list[Cut] = []
    for value in rising:
        found = span(kind, "=", value, whole)
        if cuts and found and cuts[-1] == found[0]:  # whole numbers or truth values in a row
            cuts.pop()
            found = found[1:]
        cuts += found
    return tuple(cuts)


def starting_with(prefix: str) -> Cuts:
    r"""All texts that begin so: up to the least text that is above them all.

    >>> starting_with("ab"), starting_with("a\U0010ffff"), starting_with("\ud7ff")[1][0] == "\ue000"
    ((('ab', -1), ('ac', -1)), (('a\U0010ffff', -1), ('b', -1)), True)
    """
    body = prefix.rstrip("\U0010ffff")
    if not body:
        return ((prefix, -1),)
    following = ord(body[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:  # surrogates are no characters
        following = 0xE000
    return ((prefix, -1), (body[:-1] + chr(following), -1))


def _from(low: Cut | None, high: Cut | None) -> Cuts:
    """None is the end of the line."""
    if low is None:
        return ()
    if high is None:
        return (low,)
    return (low, high) if low < high else ()


def _cut(kind: Kind, value: Value, side: int, whole: bool) -> Cut | None:
    value = plain(value)
    if kind == "truth":
        if side < 0:
            return (value, -1)
        return None if value else (True, -1)
    if kind == "text" or isinstance(value, str):
        return (value, side)
    if whole:
        return _whole_cut(value, side)
    return None if value == inf and side > 0 else (value, side)


def _whole_cut(value: int | float, side: int) -> Cut | None:
    """The same cut before a whole number, if that number is small enough to travel."""
    if value == inf:
        return None
    if value == -inf:
        return LINE["number"][0]
    number = ceil(value) if side < 0 else floor(value) + 1
    return (number, -1) if CONTENT_INT_MIN <= number <= CONTENT_INT_MAX else (value, side)
