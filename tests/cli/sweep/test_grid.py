"""The grid: what it means, what it refuses, and what a point is called. No Spark here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.cli.sweep import grid
from inorder.cli.sweep.grid import SweepTable, points, read
from inorder.cli.sweep.plan import Sweep
from inorder.core.errors import BadScenario, Misuse, TooLarge

SMALL: dict[str, Any] = {
    "duration": 1.0,
    "order": {"guarantee": "total", "mode": "tag"},
    "subscribers": [{"count": 2}, {"name": "x", "count": 1}],
}


def of(values: dict[str, Any], seeds: Any = 1, simulate: Any = SMALL, **more: Any) -> list[Any]:
    return points(SweepTable(simulate=simulate, grid=values, seeds=seeds, **more))


def test_every_combination_with_every_seed_in_the_order_of_the_file() -> None:
    found = of({"publishers.rate": [1, 5], "topics": [1, 2, 3]}, seeds=[7, 9])
    assert [(p.values["publishers.rate"], p.values["topics"], p.seed) for p in found] == [
        (rate, topics, seed) for rate in (1, 5) for topics in (1, 2, 3) for seed in (7, 9)
    ]
    assert [p.number for p in found] == [n for n in range(1, 7) for _ in range(2)]
    assert found[0].scenario["publishers"] == {"rate": 1}
    assert "publishers" not in SMALL


def test_dotted_keys_may_be_quoted_or_not() -> None:
    quoted = read(b'[simulate]\n[grid]\n"publishers.rate" = [1, 2]', "a")
    plain = read(b"[simulate]\n[grid]\npublishers.rate = [1, 2]", "a")
    assert points(quoted) == points(plain)


def test_members_of_lists_are_counted_from_one() -> None:
    found = of({"subscribers[2].count": [3]})[0].scenario["subscribers"]
    assert found == [{"count": 2}, {"name": "x", "count": 3}]


def test_another_guarantee_has_options_of_its_own() -> None:
    none, total = of({"order.guarantee": ["none", "total"]})
    assert none.scenario["order"] == {"guarantee": "none"}
    assert total.scenario["order"] == {"guarantee": "total", "mode": "tag"}


@pytest.mark.parametrize(
    ("values", "key", "words"),
    [
        ({"publishers.rat": [1]}, "grid.publishers.rat", "allowed: count, rate"),
        ({"publishers.rate": [1, "much"]}, "grid.publishers.rate", "'much'"),
        ({"publishers.rate": [-1]}, "grid.publishers.rate", "-1 is not between"),
        ({"network.model": ["wan", "warp"]}, "grid.network.model", "'warp' is not one of"),
        ({"order.guarantee": ["most"]}, "grid.order.guarantee", "unknown guarantee 'most'"),
        ({"subscribers[3].count": [1]}, "grid.subscribers[3].count", "has 2 members"),
        ({"duration.long": [1]}, "grid.duration.long", "duration is no table"),
        ({"publishers..rate": [1]}, "grid.publishers..rate", "is no dotted key"),
        ({"publishers.rate": 5}, "grid.publishers.rate", "needs a list of values"),
        ({"publishers.rate": []}, "grid.publishers.rate", "needs a list of values"),
        ({"publishers.rate": [1, 1.0]}, "grid", "are the same point"),
    ],
)
def test_a_wrong_key_or_value_is_one_sentence_with_the_dotted_key(
    values: dict[str, Any], key: str, words: str
) -> None:
    with pytest.raises(BadScenario) as told:
        of(values)
    assert told.value.key == key
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_the_fault_of_the_scenario_is_told_apart_from_the_grids() -> None:
    with pytest.raises(BadScenario, match=r"^simulate\.duration: .*publishers\.rate = 1"):
        of({"publishers.rate": [1]}, simulate={"duration": -1.0})


@pytest.mark.parametrize("seeds", [0, -1, (), (1, 2, 1)])
def test_seeds_are_checked(seeds: Any) -> None:
    with pytest.raises(BadScenario, match=r"^seeds:"):
        of({}, seeds=seeds)


def test_too_many_points_are_refused_before_they_are_made() -> None:
    with pytest.raises(TooLarge, match="is 1000000000, the limit is 100000"):
        of({"publishers.rate": list(range(1000)), "duration": list(range(1000))}, seeds=1000)


def test_files_are_checked() -> None:
    with pytest.raises(BadScenario, match=r"f\.toml: is not TOML"):
        read(b"[grid", "f.toml")
    with pytest.raises(BadScenario, match="sead: is not known here"):
        read(b"sead = 1\n[simulate]", "f.toml")
    with pytest.raises(Misuse, match="is a URL"):
        Sweep(SweepTable(simulate={}), out="s3a://bucket/sweep")


def test_the_digest_is_made_of_all_that_decides_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(**more: Any) -> set[str]:
        return {p.digest for p in of({"publishers.rate": [1.0]}, **more)}

    first = names()
    assert names() == first
    assert names(simulate={**SMALL, "settle": 10.0}) == first, "the default, said in words"
    assert names(run=grid.RunTable(out="elsewhere")) == first
    for other in ({"seeds": (2,)}, {"judge": True}, {"simulate": {**SMALL, "settle": 9.0}}):
        assert not names(**other) & first
    monkeypatch.setattr(grid, "VERSION", "9.9.9")
    assert not names() & first


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=5, unique=True),
    st.lists(st.floats(0.1, 100.0), min_size=1, max_size=4, unique=True),
    st.integers(1, 4),
)
def test_points_are_told_apart(counts: list[int], rates: list[float], seeds: int) -> None:
    found = of({"publishers.count": counts, "publishers.rate": rates}, seeds=seeds)
    assert len({p.digest for p in found}) == len(found) == len(counts) * len(rates) * seeds
    travelled = msgspec.msgpack.decode(msgspec.msgpack.encode(found[-1]), type=grid.Point)
    assert travelled == found[-1]
