"""No planted error goes unseen, and no right history is accused.

A judge that never complains passes every other test. Here each kind of error is planted into
histories that keep all promises, and the named promise must break with a witness that names it.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from inorder.check import BROKE, judge

from .random_history import right_history
from .spoil import SPOILERS, Planted, Spoiler

SEEDS = 120
DRAWS_MAX = 500


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_right_history_keeps_every_promise(seed: int) -> None:
    for verdict in judge(right_history(random.Random(seed))).values():
        for one in (verdict, *verdict.also.values()):
            assert one.judged, one.why
            assert one.kept, (BROKE[one.promise], one.witness)
            assert one.violations == 0
            assert one.witness is None


@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda spoil: spoil.__name__)
def test_a_planted_error_is_seen_and_named(spoil: Spoiler) -> None:
    for seed in range(SEEDS):
        planted = plant(spoil, random.Random(seed))
        verdict = planted.verdict()
        assert verdict.judged, verdict.why
        assert not verdict.kept, f"{spoil.__name__}, seed {seed}: unseen"
        assert verdict.violations >= 1
        assert verdict.witness is not None
        named = [event for event in planted.named if event in words(verdict.witness)]
        assert named, f"{spoil.__name__}, seed {seed}: {verdict.witness}"
        if planted.exact:
            assert named == planted.named, f"{spoil.__name__}, seed {seed}: {verdict.witness}"


def plant(spoil: Spoiler, rng: random.Random) -> Planted:
    for _ in range(DRAWS_MAX):
        planted = spoil(rng, right_history(rng))
        if planted is not None:
            return planted
    raise AssertionError(f"{spoil.__name__} found no occasion in {DRAWS_MAX} histories")


def words(value: Any) -> list[Any]:
    """Every plain value of a witness."""
    if isinstance(value, dict):
        return words(list(value.values()))
    if isinstance(value, list):
        return [word for part in value for word in words(part)]
    return [value]
