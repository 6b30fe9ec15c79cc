"""Building a world costs in proportion to what is in it: ten times the topics, ten times the work.

Work is counted, not timed: calls of functions, and what the ones that are given everything do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from inorder.check.trace import MessageRow
from inorder.core.machine import make_all
from inorder.protocols.total import Options, Stage, services
from inorder.protocols.total.directory import Directory, directory_of
from inorder.protocols.total.path import Path
from inorder.sim.scenario import from_table
from inorder.sim.simulate import build


class Nowhere:
    def write(self, table: str, row: MessageRow) -> None:
        raise AssertionError("nothing has happened yet")


def calls(job: Callable[[], Any]) -> int:
    """Functions called, those written in C with them."""
    counted = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        job()
    finally:
        sys.setprofile(None)
    return counted


def world(topics: int, order: dict[str, Any] | None = None, **more: Any) -> None:
    scenario = from_table(
        {
            "duration": 1.0,
            "topics": [f"{topics}/{number}" for number in range(topics)],
            "publishers": {"count": 3},
            "subscribers": [{"count": 5}],
            "order": {"guarantee": "total", **(order or {})},
            **more,
        }
    )
    build(scenario, 1, Nowhere())


WORLDS: dict[str, dict[str, Any]] = {
    "hold": {},
    "swaps": {"order": {"swaps": "on"}},
    "forest": {"order": {"path": "forest"}},
    "compact": {"order": {"mode": "tag", "stamp": "compact", "path": "sg"}},
    "scribe": {"network": {"model": "wan", "overlay": "scribe", "nodes": 50}},
}


@pytest.mark.parametrize("name", WORLDS)
def test_ten_times_the_topics_are_ten_times_the_calls(name: str) -> None:
    world(20, **WORLDS[name])  # whatever is done once for all
    few = calls(lambda: world(100, **WORLDS[name]))
    many = calls(lambda: world(1000, **WORLDS[name]))
    assert 5 * few < many <= 15 * few


@pytest.mark.parametrize("options", [{}, {"swaps": "on"}, {"path": "forest"}])
def test_all_stages_share_one_directory_and_one_path(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is as large as all topics: one a stage would be the square."""
    built: list[str] = []
    whole, way = Directory.__init__, Path.__init__
    monkeypatch.setattr(
        Directory, "__init__", lambda *args: built.append("directory") or whole(*args)
    )
    monkeypatch.setattr(Path, "__init__", lambda *args: built.append("path") or way(*args))
    names = [f"shared/{options}/{number}" for number in range(200)]
    machines = make_all(services(names, Options(**options)))
    assert sorted(built) == ["directory", "path"]
    stages = [machine for machine in machines.values() if isinstance(machine, Stage)]
    assert len({id(stage.path) for stage in stages}) == 1
    assert len({id(stage.directory) for stage in stages}) == 1


def test_no_stage_looks_at_all_names_to_find_its_path() -> None:
    """A lookup by an order of names hashes all of them, in one call that no counter sees."""

    class Name(str):
        hashed = 0

        def __hash__(self) -> int:
            Name.hashed += 1
            return super().__hash__()

    def hashes(topics: int) -> int:
        directory_of.cache_clear()
        names = [Name(f"hashed/{number}") for number in range(topics)]
        Name.hashed = 0
        make_all(services(names, Options()))
        return Name.hashed

    assert hashes(1000) <= 15 * hashes(100)
