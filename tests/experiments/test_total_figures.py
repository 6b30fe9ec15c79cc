"""The parts the report's figures are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.machines import play
from experiments.points import Store, run_all, shown
from experiments.total import overhead
from experiments.total.__main__ import FIGURES
from experiments.total.laws import STEEP, generator, pareto, subscriptions
from experiments.total.patterns import agreement, find_adjacent, find_next
from experiments.total.published import infinite_buffer
from experiments.total.swaps import Order

from experiments import sequencer


def test_the_shapes_of_the_report_are_pareto_laws() -> None:
    # 0.5 % and 40 % of 1000 topics with a probability of 80 %, before the tail is cut.
    assert pytest.approx(0.80, abs=0.005) == 1 - 6**-STEEP
    assert pytest.approx(0.80, abs=0.005) == 1 - 401**-0.269
    assert pareto(1000, STEEP)[:5].sum() == pytest.approx(0.80, abs=0.005)


def test_subscribers_hold_as_many_topics_as_asked_and_popular_ones_more_often() -> None:
    held = subscriptions(pareto(50, STEEP), 400, 5, generator("test"))
    assert (held.sum(axis=1) == 5).all()
    assert held[:, 0].mean() > 0.9
    assert held[:, 0].sum() > held[:, 10].sum() > held[:, 45].sum()


def test_finished_points_are_not_run_again(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []

    def run(x: int, seed: int) -> dict[str, float]:
        calls.append((x, seed))
        if x == 2 and len(calls) == 2:
            raise KeyboardInterrupt
        return {"y": 10.0 * x + seed}

    points = [{"x": 1}, {"x": 2}]
    with pytest.raises(KeyboardInterrupt):
        run_all(Store(tmp_path), points, 2, run, "test", "v1")
    again = run_all(Store(tmp_path), points, 2, run, "test", "v1")
    assert again == [[{"y": 11.0}, {"y": 12.0}], [{"y": 21.0}, {"y": 22.0}]]
    assert calls == [(1, 1), (2, 1), (2, 1), (1, 2), (2, 2)]
    run_all(Store(tmp_path), points, 1, run, "test", "v2")
    assert len(calls) == 7, "changed code is another point"


def test_a_table_shows_mean_and_spread() -> None:
    assert shown([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert shown([4.0], 1) == "4.0 ± 0.0"


def test_the_detectors_find_what_they_say() -> None:
    seen = [("1", "a"), ("2", "c"), ("3", "b"), ("4", "a"), ("5", "b"), ("6", "c")]
    assert find_next(seen) == {("1", "3", "6")}
    assert find_adjacent(seen) == {("4", "5", "6")}
    swapped = [seen[3], *seen[:3], *seen[4:]]
    assert agreement(find_next, [seen, seen]) == 1.0
    assert agreement(find_next, [seen, swapped]) == 0.0


def test_compact_stamps_tag_even_with_an_infinite_buffer() -> None:
    # Errata R7: e2 < e1, but e1's stamp does not say so, and e1 comes first.
    stamps = {"e1": ("t1", {"t1": 1}), "e2": ("t2", {"t1": 0, "t2": 1})}
    assert infinite_buffer([("e1", True), ("e2", True)], stamps) == [("e1", True), ("e2", False)]
    assert infinite_buffer([("e2", True), ("e1", True)], stamps) == [("e2", True), ("e1", True)]


def test_a_compact_stamp_waits_for_the_higher_event_it_names() -> None:
    stamps = {"e1": ("t1", {"t1": 1}), "e2": ("t2", {"t1": 1, "t2": 1})}
    assert infinite_buffer([("e2", True), ("e1", True)], stamps) == [("e1", True), ("e2", True)]


def test_all_members_of_the_sequencers_group_deliver_in_one_order() -> None:
    sequencer.register()
    trace, _ = play(
        {
            "duration": 20.0,
            "topics": 3,
            "order": {"guarantee": "sequencer"},
            "network": {"model": "wan", "fifo": False},
            "publishers": {"count": 3, "rate": 5.0},
            "subscribers": [{"count": 4}],
        },
        1,
    )
    orders = {tuple(row.event for row in rows[-200:]) for rows in trace.by_subscriber().values()}
    assert len(orders) == 1
    assert len(next(iter(orders))) == 200


def test_a_swap_exchanges_two_ranks_and_nothing_else() -> None:
    order = Order(np.arange(5), ~np.eye(5, dtype=bool), 0)
    for _ in range(6):
        order.publish(4, 0.0)
    order.adapt(order.climb(4), "f", 0.1, 0.2, "highest", 0.0)
    assert order.order.tolist() == [4, 1, 2, 3, 0]
    assert order.rank.tolist() == [4, 1, 2, 3, 0]
    assert order.climb(0).tolist() == [0, 3, 2, 1, 4]
    assert order.swaps == 1


def test_a_good_order_makes_small_stamps() -> None:
    best, worst = (overhead.run(case, 20, 1)["bytes"] for case in ("best", "worst"))
    assert best < 0.05 * worst


def test_every_figure_says_what_it_depends_on() -> None:
    numbers = [number for figure in FIGURES for number in figure.numbers]
    assert sorted(numbers) == [*range(9, 25)]
    for figure in FIGURES:
        assert figure.code
        assert figure.points(True)
        assert len(figure.points(False)) >= len(figure.points(True))
