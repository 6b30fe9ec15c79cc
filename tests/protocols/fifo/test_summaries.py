"""Summaries: never a false negative, and false positives as rare as promised."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inorder.protocols.fifo.summary as summary_module
from inorder.protocols.fifo.interests import Interests
from inorder.protocols.fifo.summary import (
    Conjunction,
    Interest,
    canonical,
    content_summary,
    elements,
    equals,
    has,
    mask,
    on_topic,
    topic_summary,
)

CASES = 100_000

NAMES = ("a", "b", "c", "d", "price", "firm", "1", "a:b")
VALUES: tuple[Any, ...] = (
    0, 1, 2, -1, 0.0, -0.0, 1.0, 0.5, 1e300, float("inf"), 2**53, 2**53 + 1, float(2**53),
    True, False, "", "1", "True", "IBM", "é", "e\u0301", "x" * 50, None, float("nan"),
)  # fmt: skip
Condition = tuple[str, str, Any]


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"


def holds(condition: Condition, event: dict[str, Any]) -> bool:
    """Three-valued logic in a few lines: absence satisfies IS NULL and nothing else."""
    name, operator, wanted = condition
    value = event.get(name)
    if value is None or value != value:
        return operator == "is null"
    if operator == "in":
        return any(kind(each) == kind(value) and each == value for each in wanted)
    if operator == "like":
        return isinstance(value, str) and value.startswith(wanted)
    if operator == "is null" or kind(value) != kind(wanted):
        return False
    return {"=": value == wanted, "<": value < wanted, "<>": value != wanted}[operator]


def requirements(conditions: list[Condition]) -> Conjunction:
    """What an event must show to satisfy all conditions."""
    needs: list[tuple[str, ...]] = []
    for name, operator, wanted in conditions:
        if operator == "is null":
            continue
        needs.append((has(name),))
        if operator == "=":
            needs.append((equals(name, wanted),))
        elif operator == "in":
            needs.append(tuple(equals(name, each) for each in wanted))
    return tuple(needs)


def random_condition(rng: random.Random) -> Condition:
    name = rng.choice(NAMES)
    operator = rng.choice(("=", "=", "in", "<", "<>", "like", "is null"))
    usable = [each for each in VALUES if each is not None and each == each]
    if operator == "in":
        return name, operator, tuple(rng.sample(usable, rng.randint(1, 4)))
    if operator == "like":
        return name, operator, rng.choice(("", "I", "IB", "x"))
    return name, operator, None if operator == "is null" else rng.choice(usable)


def false_negatives(cases: int) -> tuple[int, int]:
    """(matches, matches called irrelevant) over random events and interests."""
    rng = random.Random(2024)
    matches = missed = 0
    predicates = [
        [
            [random_condition(rng) for _ in range(rng.randint(0, 2))]
            for _ in range(rng.randint(1, 3))
        ]
        for _ in range(400)
    ]
    compiled = [tuple(requirements(each) for each in dnf) for dnf in predicates]
    for _ in range(cases):
        event = {name: rng.choice(VALUES) for name in rng.sample(NAMES, rng.randint(0, 6))}
        topic = rng.choice(("t", "u"))
        pick = rng.randrange(len(predicates))
        if not any(all(holds(each, event) for each in conj) for conj in predicates[pick]):
            continue
        matches += 1
        size, hashes = rng.choice(((16, 4), (16, 6), (1, 1), (32, 2)))
        summary = content_summary(elements(topic, event), size, hashes)
        missed += not Interest((topic, "v"), compiled[pick]).concerns(summary, hashes)
    return matches, missed


def test_an_event_that_matches_is_never_called_irrelevant():
    matches, missed = false_negatives(CASES)
    assert matches > CASES / 4
    assert missed == 0


def test_a_summary_that_spells_values_carelessly_is_found(monkeypatch):
    monkeypatch.setattr(summary_module, "canonical", repr)
    assert false_negatives(3000)[1] > 0


def test_a_summary_without_absence_is_found(monkeypatch):
    def every_name(conditions: list[Condition]) -> Conjunction:
        return tuple((has(name),) for name, _, _ in conditions)

    monkeypatch.setitem(globals(), "requirements", every_name)
    assert false_negatives(3000)[1] > 0


@pytest.mark.parametrize(
    ("shown", "low", "high"),
    [(8, 0.001, 0.005), (16, 0.015, 0.034), (24, 0.06, 0.11), (40, 0.21, 0.31)],
)
def test_false_positives_of_one_absent_equality(shown, low, high):
    """0.24, 2.4, 7.8 and 26 % with 16 bytes and four hash functions."""
    rng = random.Random(shown)
    trials, found = 20_000, 0
    for turn in range(trials):
        bits = 0
        for number in range(shown):
            bits |= mask.__wrapped__(f"{rng.random()}-{number}", 16, 4)
        need = mask.__wrapped__(equals("absent", turn), 16, 4)
        found += bits & need == need
    assert low <= found / trials <= high


def test_more_functions_are_better_for_few_elements_and_worse_for_many():
    def share(shown: int, hashes: int) -> float:
        found = 0
        for turn in range(4000):
            names = [f"{turn}-{number}" for number in range(shown)]
            bits = int.from_bytes(content_summary(names, 16, hashes), "little")
            need = mask.__wrapped__(f"absent{turn}", 16, hashes)
            found += bits & need == need
        return found / 4000

    assert share(10, 6) < share(10, 2)
    assert share(40, 2) < share(40, 6)


# Values.


@pytest.mark.parametrize(
    ("left", "right"), [(1, 1.0), (0, -0.0), (2**53, float(2**53)), (10**22, 1e22), (-3, -3.0)]
)
def test_equal_values_are_spelt_alike(left, right):
    assert left == right
    assert canonical(left) == canonical(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (0, False), (1, "1"), (True, "True"), (2**53 + 1, float(2**53)), (0.1, 0.2),
     (10**23, 1e23), ("é", "e\u0301"), (float("inf"), "inf"), ("n1", 1)],
)  # fmt: skip
def test_different_values_are_spelt_differently(left, right):
    assert canonical(left) != canonical(right)


scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)


@given(scalars, scalars)
def test_spelling_is_equality_within_a_kind(left, right):
    alike = kind(left) == kind(right) and left == right
    assert (canonical(left) == canonical(right)) == alike


@given(st.text(max_size=4), scalars, st.text(max_size=4), scalars)
def test_different_facts_are_different_elements(one, left, other, right):
    same = one == other and kind(left) == kind(right) and left == right
    assert (equals(one, left) == equals(other, right)) == same
    assert (has(one) == has(other)) == (one == other)
    assert len({has(one), equals(one, left), on_topic(one)}) == 3


def test_null_and_not_a_number_show_nothing():
    assert elements("t", {"x": None, "y": float("nan")}) == [on_topic("t")]


# Interest.


def test_an_interest_without_topic_or_conjunction_wants_nothing():
    summary = content_summary(elements("t", {"x": 1}), 16, 4)
    assert not Interest(()).concerns(summary, 4)
    assert not Interest(("t",), ()).concerns(summary, 4)
    assert Interest(("t",)).concerns(summary, 4)


def test_a_summary_of_an_unknown_length_may_concern_us():
    interests = Interests(10.0)
    interests.hold(("t",))
    assert interests.concern(topic_summary("t"), 0, 0.0)
    assert not interests.concern(topic_summary("u"), 0, 0.0)
    assert interests.concern(b"12345678", 0, 0.0)


def test_former_content_counts_for_the_window_and_no_longer():
    interests = Interests(10.0)
    interests.hold(("t",))
    old, new = ((((equals("x", each),),),) for each in (1, 2))
    interests.want(old, 0.0)
    interests.want(new, 100.0)
    shows_old = content_summary(elements("t", {"x": 1}), 16, 4)
    assert interests.concern(shows_old, 4, 109.9)
    assert not interests.concern(shows_old, 4, 110.0)
    assert interests.concern(content_summary(elements("t", {"x": 2}), 16, 4), 4, 110.0)
