"""1,500 random adversarial runs, the receiver's twin, and defects that must be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inorder.core.effect import Deliver
from inorder.core.numbers import Numbers
from inorder.protocols.fifo import interests, missing, past, receiver
from tests.protocols.fifo import runs

RUNS = 1500


@pytest.mark.parametrize("block", range(10))
def test_every_property_holds_in_every_run(block):
    for seed in range(block * RUNS // 10, (block + 1) * RUNS // 10):
        run = runs.play(runs.draw(seed))
        assert runs.problems(run) == [], f"seed {seed}"


@pytest.mark.parametrize("block", range(5))
def test_the_receiver_does_what_its_twin_does(block):
    for seed in range(block * 100, (block + 1) * 100):
        assert runs.differs_from_twin(runs.draw(seed)) == "", f"seed {seed}"


def test_the_same_run_gives_the_same_deliveries():
    for seed in range(50):
        once, again = (runs.play(runs.draw(seed)) for _ in range(2))
        assert once.deliveries == again.deliveries


def test_the_runs_are_hostile_enough():
    """Guards the guards: late, held, doubled, restarted and stepped events all occur."""
    total: dict[str, float] = {}
    for seed in range(300):
        run = runs.draw(seed)
        hears = runs.build(run.options)
        runs.play(run, hears)
        for name, count in hears.counters.as_dict().items():
            total[name] = total.get(name, 0) + count
    for name in (
        "late", "held", "held_useful", "expired", "irrelevant", "duplicates", "restarts",
        "clock_steps", "overflow", "header_errors",
    ):  # fmt: skip
        assert total[name] > 10, name


# Defects, each put in alone. Every one must break a property in some of the runs.


def no_duplicate_window(patch: pytest.MonkeyPatch) -> None:
    """Duplicates are not recognised."""
    add = Numbers.add

    def forgetful(self: Any, number: int) -> str:
        add(self, number)
        return "new"

    patch.setattr(Numbers, "add", forgetful)
    patch.setattr(Numbers, "look", lambda self, number: "new")


def no_former_window(patch: pytest.MonkeyPatch) -> None:
    """The numbers of the previous incarnation are forgotten with it."""

    def forgetful(self: Any, life: Any) -> None:
        self.lives = [past.Life(life.incarnation, life.floor)]

    patch.setattr(past.Past, "keep", forgetful)


def one_latch(patch: pytest.MonkeyPatch) -> None:
    """One latch for the latest missing number, as the paper has it: the others are not waited for
    once it has come or run out."""

    def only_the_last(self: Any, number: int) -> float:
        below = [each for each, start in enumerate(self.starts) if start < number]
        if not below or self.ends[below[-1]] != number - 1:
            return float("-inf")
        return self.deadlines[below[-1]]

    patch.setattr(missing.Missing, "until", only_the_last)


def deadlines_grow(patch: pytest.MonkeyPatch) -> None:
    """Later information may also lengthen a wait."""

    def settle(self: Any, number: int, deadline: float) -> None:
        if self.remove(number):
            place = missing.bisect_right(self.starts, number)
            self._insert(place, number, number, deadline + 0.5, False)

    patch.setattr(missing.Missing, "settle", settle)


def no_tag(patch: pytest.MonkeyPatch) -> None:
    """What comes too late is delivered as if nothing were."""

    def silent(self: Any, event: Any) -> list[Deliver]:
        return [Deliver(event)]

    patch.setattr(receiver.Receiver, "_late", silent)


def drops_late(patch: pytest.MonkeyPatch) -> None:
    """What comes too late is dropped without being asked."""
    patch.setattr(receiver.Receiver, "_late", lambda self, event: [])


def no_tau_max(patch: pytest.MonkeyPatch) -> None:
    """Nothing bounds the estimator (E-F22)."""

    def unbounded(self: Any, departure_us: int, header: Any, now: float) -> float:
        if not self.estimator.warm:
            return now + self.options.initial_latch
        until: float = self.estimator.deadline(departure_us * 1e-6, header.departure_us * 1e-6, now)
        return until

    patch.setattr(receiver.Receiver, "_deadline", unbounded)


def restart_forgets_pending(patch: pytest.MonkeyPatch) -> None:
    """A restart of the publisher throws away what waits."""

    def forget(self: Any, now: float) -> list[Deliver]:
        self.pending.clear()
        self._heap.clear()
        self.deadline = None
        self.past.keep(past.Life(self.incarnation, self.floor, self.seen))
        return []

    patch.setattr(receiver.Receiver, "_restart", forget)


DEFECTS = [
    no_duplicate_window, no_former_window, one_latch, deadlines_grow, no_tag, drops_late,
    no_tau_max, restart_forgets_pending,
]  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_defect_is_found(defect: Callable[[pytest.MonkeyPatch], None], monkeypatch):
    defect(monkeypatch)
    assert any(
        runs.problems(runs.play(run)) or runs.differs_from_twin(run)
        for run in map(runs.draw, range(300))
    )


def test_an_uncovered_number_must_not_be_called_irrelevant(monkeypatch):
    """The twin sees it: a receiver that waits only for what a record names."""

    def nothing(
        self: Any, start: int, end: int, departure_us: int, exact: bool, *rest: Any
    ) -> None:
        if exact:
            original(self, start, end, departure_us, exact, *rest)

    original = receiver.Receiver._open_run
    monkeypatch.setattr(receiver.Receiver, "_open_run", nothing)
    assert any(runs.differs_from_twin(runs.draw(seed)) for seed in range(100))


def test_interest_in_nothing_must_not_hide_events(monkeypatch):
    """The twin shares the interests, so the properties must see it: with a false negative, an
    event is not waited for and comes late though it was in time."""
    lates = []
    for blind in (False, True):
        if blind:
            monkeypatch.setattr(interests.Interests, "concern", lambda *_: False)
        late = 0
        for seed in range(200):
            run = runs.draw(seed)
            if run.options.estimator == "predictive" and run.options.record == 25:
                late += sum(not each.in_order for each in runs.play(run).deliveries)
        lates.append(late)
    assert lates[1] > 1.25 * lates[0]
