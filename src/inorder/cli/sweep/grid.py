"""What a sweep runs: every combination of the grid's values, with every seed.

    seeds = 20                           a number: 1, 2, ..., 20; or a list
    judge = true                         judge every run by the promises (check/)
    [simulate]                           a scenario (docs/scenarios.md)
    [grid]                               dotted keys of the scenario, each with a list of values
    "order.guarantee" = ["none", "total"]
    "subscribers[1].count" = [4, 40]     groups are counted from 1
    [run]
    out = "out/sweep"

All combinations are validated before anything runs. A point's digest names its file, and is made of
all that decides its row: the scenario after substitution, the seed, whether it is judged, and our
version. The same point of another file or another day is the same file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

import msgspec
from msgspec import Struct

import inorder
from inorder.core.errors import BadScenario, TooLarge
from inorder.core.limits import SWEEP_POINTS_MAX
from inorder.core.settings import convert
from inorder.sim.scenario import from_table

VERSION = inorder.__version__

_STEP = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?")


class RunTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    out: str = "out/sweep"


class SweepTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole file."""

    simulate: dict[str, Any]
    grid: dict[str, Any] = {}
    seeds: int | tuple[int, ...] = 1
    judge: bool = False
    run: RunTable = RunTable()


class Point(Struct, frozen=True):
    """One run: `number` counts combinations, `values` are those of the grid."""

    number: int
    values: dict[str, Any]
    scenario: dict[str, Any]
    seed: int
    judge: bool
    digest: str
    version: str = VERSION


def points(table: SweepTable, seeds: int | Sequence[int] | None = None) -> list[Point]:
    """Every point, validated; combinations in the order of the file, their seeds together.

    >>> some = SweepTable(simulate={}, grid={"publishers.rate": [1, 5]}, seeds=2)
    >>> [(point.values, point.seed) for point in points(some)][1:3]
    [({'publishers.rate': 1}, 2), ({'publishers.rate': 5}, 1)]
    """
    chosen = seeds_of(table.seeds if seeds is None else seeds)
    grid = dict(_flat(table.grid, ""))
    if (count := prod(map(len, grid.values())) * len(chosen)) > SWEEP_POINTS_MAX:
        raise TooLarge("the number of points of a sweep", count, SWEEP_POINTS_MAX)
    found: list[Point] = []
    seen: dict[str, dict[str, Any]] = {}
    for number, combination in enumerate(product(*grid.values()), 1):
        values = dict(zip(grid, combination, strict=True))
        scenario, meaning = _substituted(table.simulate, values)
        for seed in chosen:
            text = msgspec.msgpack.encode([meaning, seed, table.judge, VERSION], order="sorted")
            digest = sha256(text).hexdigest()[:32]
            if digest in seen:
                raise BadScenario("grid", f"{values} and {seen[digest]} are the same point")
            seen[digest] = values
            found.append(Point(number, values, scenario, seed, table.judge, digest))
    return found


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """A number of seeds, or the seeds themselves."""
    if isinstance(seeds, int):
        if seeds < 1:
            raise BadScenario("seeds", f"is {seeds}, it must be at least 1")
        if seeds > SWEEP_POINTS_MAX:
            raise TooLarge("the number of points of a sweep", seeds, SWEEP_POINTS_MAX)
        return list(range(1, seeds + 1))
    chosen = list(seeds)
    if not chosen:
        raise BadScenario("seeds", "is empty")
    for seed in chosen:
        if chosen.count(seed) > 1:
            raise BadScenario("seeds", f"{seed} occurs twice")
    return chosen


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Sequence[Any]]]:
    """Dotted keys and their values: TOML reads `a.b = [1]` as tables, `"a.b" = [1]` as one key."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{key}.")
        elif not isinstance(value, list | tuple) or not value:
            raise BadScenario(f"grid.{key}", "needs a list of values")
        else:
            yield key, value


def _substituted(simulate: dict[str, Any], values: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The scenario with these values: as a table to be sent, and as what it means."""
    table = deepcopy(simulate)
    order = table.get("order")
    named = values.get("order.guarantee")
    if isinstance(order, dict) and named is not None and named != order.get("guarantee"):
        table["order"] = {}  # another guarantee has options of its own
    for key, value in values.items():
        _put(table, key, deepcopy(value))
    try:
        return table, from_table(table)
    except BadScenario as error:
        with_values = ", ".join(f"{key} = {value!r}" for key, value in values.items())
        where = next((key for key in values if _touches(key, error.key)), None)
        told = f"{error.problem} (with {with_values})" if values else error.problem
        place = f"simulate.{error.key}" if where is None else f"grid.{error.key}"
        raise BadScenario(place, told) from None


def _touches(key: str, culprit: str) -> bool:
    return culprit == key or culprit.startswith((f"{key}.", f"{key}["))


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    """Set what a dotted key names; tables on the way are made, members of lists must be there."""
    steps = _STEP.findall(key)
    if not steps or ".".join(name + (f"[{n}]" if n else "") for name, n in steps) != key:
        raise BadScenario(f"grid.{key}", "is no dotted key")
    place: Any = table
    for depth, (name, number) in enumerate(steps, 1):
        so_far = ".".join(step[0] for step in steps[: depth - 1]) or "the scenario"
        if not isinstance(place, dict):
            raise BadScenario(f"grid.{key}", f"{so_far} is no table")
        if depth == len(steps) and not number:
            place[name] = value
            return
        if not number:
            place = place.setdefault(name, {})
            continue
        members = place.get(name, [])
        if not isinstance(members, list) or not 1 <= int(number) <= len(members):
            size = len(members) if isinstance(members, list) else 0
            raise BadScenario(f"grid.{key}", f"{name} has {size} members, counted from 1")
        if depth == len(steps):
            members[int(number) - 1] = value
        else:
            place = members[int(number) - 1]


def read(text: bytes, name: str) -> SweepTable:
    """The table of a sweep file."""
    try:
        table = msgspec.toml.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadScenario(name, f"is not TOML: {error}") from None
    checked: SweepTable = convert(table, SweepTable, "")
    return checked
