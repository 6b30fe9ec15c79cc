"""Variables that change fast: broaden at once, narrow lazily (the paper's future work, Sec. 6).

Rule 1: a bound that moves outwards past what the neighbour knows is sent at once, with `margin` of
        head-room. The neighbour therefore never knows less than what is wanted.
Rule 2: a bound that stays inside by more than twice the margin for `hold` seconds is drawn in to
        the outermost place it had during that time, plus the margin.
Rule 3: only the numbers of `<`, `<=`, `>`, `>=` and BETWEEN are smoothed. When anything else of an
        entry changes it is another region, and goes out as it is.

The margin is a share of the bound's magnitude. What comes too much is filtered by the clients; an
update that oscillates inside the hold costs no message at all.
"""

from __future__ import annotations

from msgspec import Struct

from inorder.content.skeleton import Skeleton, Vector
from inorder.content.value import fits, kind_of, plain

_SIDES = {"<": (1,), "<=": (1,), ">": (-1,), ">=": (-1,), "between": (-1, 1)}


class Smoothing(Struct, frozen=True, gc=False):
    """`hold` in seconds; twice the round trip of a link is a good choice."""

    hold: float
    margin: float = 0.0


class Window(Struct, gc=False):
    """An entry that could be narrower: since when, where it is, and where it was outermost."""

    since: float
    target: Vector
    peak: Vector


def sides(skeleton: Skeleton, vector: Vector) -> dict[int, int]:
    """The places that can be smoothed, with the direction that broadens them.

    >>> from inorder.content.skeleton import Condition
    >>> price = Skeleton(ranges=(Condition("price", "between", (0, 1)),))
    >>> sides(price, (1, 5)), sides(price, ("a", "b"))
    ({0: -1, 1: 1}, {})
    """
    uses: dict[int, int] = {}
    found: dict[int, int] = {}
    for condition in skeleton.conditions():
        for number, place in enumerate(condition.places):
            uses[place] = uses.get(place, 0) + 1
            if condition.op in _SIDES and kind_of(vector[place]) == "number":
                found[place] = _SIDES[condition.op][number]
    return {place: side for place, side in found.items() if uses[place] == 1}


def outermost(skeleton: Skeleton, a: Vector, b: Vector) -> Vector:
    """At each bound the broader of two; the rest is that of the second."""
    broader = dict(enumerate(b))
    for place, side in sides(skeleton, b).items():
        if kind_of(a[place]) == "number" and _beyond(a[place], b[place], side) > 0:
            broader[place] = a[place]
    return tuple(broader.values())


def broadened(skeleton: Skeleton, told: Vector, target: Vector, margin: float) -> Vector:
    """What a neighbour that knows `told` must know at once; `told` itself when that will do.

    >>> from inorder.content.skeleton import Condition
    >>> price = Skeleton(ranges=(Condition("price", "<", (0,)),))
    >>> [broadened(price, (10,), (target,), 0.1) for target in (8, 10, 20)]
    [(10,), (10,), (22,)]
    """
    bounds = sides(skeleton, target)
    if bounds != sides(skeleton, told) or any(
        told[place] != target[place] for place in range(len(target)) if place not in bounds
    ):
        return target
    result = dict(enumerate(told))
    for place, side in bounds.items():
        if _beyond(target[place], told[place], side) > 0:
            result[place] = _with_margin(target[place], side, margin)
    return tuple(result.values())


def narrowed(skeleton: Skeleton, told: Vector, peak: Vector, margin: float) -> Vector:
    """What a neighbour may be told after a hold; `told` itself when nothing is gained."""
    result = dict(enumerate(told))
    for place, side in sides(skeleton, told).items():
        slack = 2 * margin * abs(_number(peak[place]))
        if _beyond(told[place], peak[place], side) > slack:
            result[place] = _with_margin(peak[place], side, margin)
    return tuple(result.values())


def _beyond(a: object, b: object, side: int) -> float:
    """How far a lies outside b; whole numbers beyond floats are compared exactly first."""
    x, y = _number(a), _number(b)
    if x == y:
        return 0.0
    outside = x > y if side > 0 else x < y
    distance = abs(float(x) - float(y))
    return (distance or 5e-324) if outside else -(distance or 5e-324)


def _with_margin(value: object, side: int, margin: float) -> int | float:
    number = _number(value)
    if not margin:
        return number
    moved = plain(number + side * margin * abs(number))
    assert isinstance(moved, int | float)
    # Rounding must not draw the bound in.
    return moved if fits(moved) and _beyond(moved, number, side) >= 0 else number


def _number(value: object) -> int | float:
    assert isinstance(value, int | float), "only numbers are smoothed"
    return value
