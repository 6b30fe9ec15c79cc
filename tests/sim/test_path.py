"""Streams of one path: the right delays, the right share of late messages, nothing shared."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from inorder.core.errors import Misuse, TooLarge
from inorder.sim import path as path_module
from inorder.sim.laws import Wave
from inorder.sim.path import OTHER, STREAMS, WANTED, Path, stream

# The shares of the reference model, in per cent; S8 and S9 are ours alone.
LATE = {
    "S1": 50.6, "S2": 19.0, "S3": 26.0, "S4": 41.6, "S5": 37.2, "S6": 25.1, "S7": 19.1,
    "S8": 29.4, "S9": 28.4, "S10": 19.0,
}  # fmt: skip


def check_late_shares() -> None:
    assert STREAMS.keys() == LATE.keys()
    for name, path in STREAMS.items():
        drawn = [100 * stream(path, 150_000, seed).late_share for seed in (1, 2)]
        assert drawn == pytest.approx([LATE[name]] * 2, abs=1.5), name


def test_the_ten_streams_are_as_disordered_as_the_reference() -> None:
    check_late_shares()


def test_a_hop_too_few_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    means_s = Path.means_s.fget
    monkeypatch.setattr(Path, "means_s", property(lambda self: means_s(self)[1:]))
    monkeypatch.setattr(path_module, "check", lambda path, count: None)
    with pytest.raises(AssertionError, match="S1"):
        check_late_shares()


def slow_late_share(numbers: list[int]) -> float:
    late = sum(any(before > number for before in numbers[:place])
               for place, number in enumerate(numbers))  # fmt: skip
    return late / len(numbers)


PATHS = st.builds(
    Path,
    hops=st.integers(1, 6),
    law=st.sampled_from(["exponential", "lognormal", "constant"]),
    arrivals=st.sampled_from(["poisson", "periodic"]),
    match=st.floats(0.0, 1.0),
    loss=st.floats(0.0, 0.5),
    burst=st.integers(1, 7),
    rush=st.sampled_from([0.1, 1.0, 10.0]),
    drift=st.sampled_from([1.0, 5.0]),
    congestion=st.sampled_from([None, Wave(period=30.0, height=1.4)]),
)


@settings(max_examples=80, deadline=None)
@given(PATHS, st.integers(0, 200), st.integers(0, 10**9))
def test_what_holds_for_every_stream(path: Path, count: int, seed: int) -> None:
    drawn = stream(path, count, seed)
    published = list(drawn.published())
    received = list(drawn.received())
    assert [passage.seq for passage in published] == list(range(1, count + 1))
    assert all(one.departure_s <= other.departure_s for one, other in pairwise(published))
    # The received are exactly those that match and are not lost, in order of arrival.
    arrived = [(p.arrived_s, p.seq) for p in published if p.matches and p.arrived_s is not None]
    assert [(p.arrived_s, p.seq) for p in received] == sorted(arrived)
    assert {passage.seq: passage for passage in published} | {p.seq: p for p in received} == {
        passage.seq: passage for passage in published
    }
    for passage in published:
        assert passage.topic == (WANTED if passage.matches else OTHER)
        assert passage.arrived_s is None or passage.arrived_s >= passage.departure_s
    if received:
        assert drawn.late_share == slow_late_share([passage.seq for passage in received])
    again = stream(path, count, seed)
    assert list(again.published()) == published


def delays(path: Path, count: int = 100_000) -> Any:
    drawn = stream(path, count, 1)
    return drawn.arrived_s - drawn.sent_s


def test_constant_hops_add_up_exactly() -> None:
    path = Path(hops=4, mean_s=(0.01, 0.02, 0.03, 0.04), law="constant", fixed_s=0.2)
    assert delays(path, 1000) == pytest.approx(0.3)


def test_exponential_hops_have_the_moments_of_their_sum() -> None:
    means = (0.004, 0.006, 0.008, 0.01, 0.022)
    drawn = delays(Path(mean_s=means, fixed_s=0.1))
    # Standard errors are 0.1 % of the mean delay and 0.9 % of the variance.
    assert drawn.mean() == pytest.approx(0.1 + sum(means), rel=0.005)
    assert drawn.var() == pytest.approx(sum(mean**2 for mean in means), rel=0.04)


def test_lognormal_hops_have_the_mean_that_was_asked_for() -> None:
    drawn = delays(Path(hops=2, mean_s=0.05, law="lognormal", sigma=0.7))
    assert drawn.mean() == pytest.approx(0.1, rel=0.01)
    assert drawn.var() == pytest.approx(2 * 0.05**2 * (exp(0.49) - 1), rel=0.06)


def test_drift_and_congestion_move_delays_in_waves() -> None:
    still = Path(law="constant", rate=100.0, arrivals="periodic")
    drifting = delays(structs.replace(still, drift=5.0), 20_000)
    assert (drifting.min(), drifting.max()) == pytest.approx((0.05, 0.25))
    assert drifting.argmax() % 10_000 == pytest.approx(5000, abs=2)
    wave = structs.replace(still, congestion=Wave(period=30.0, height=1.4))
    jammed = stream(wave, 20_000, 1)
    delay = jammed.arrived_s - jammed.sent_s
    assert (delay.min(), delay.max()) == pytest.approx((0.05, 1.45), abs=1e-4)
    assert jammed.late_share == 0.0, "congestion alone keeps the order"


def test_the_rate_is_what_was_asked_for() -> None:
    gaps = np.diff(stream(Path(), 100_000, 1).sent_s)
    assert gaps.mean() == pytest.approx(0.01, rel=0.02)
    assert gaps.std() == pytest.approx(0.01, rel=0.02)
    assert np.diff(stream(Path(arrivals="periodic"), 1000, 1).sent_s) == pytest.approx(0.01)
    bursts = stream(Path(burst=5, arrivals="periodic"), 10_000, 1).sent_s
    assert bursts[-1] == pytest.approx(100.0, rel=0.01)
    groups = bursts.reshape(-1, 5)
    assert (groups[:, -1] - groups[:, 0]).max() <= 0.001
    rushed = stream(Path(rate=20.0, rush=10.0, rush_period_s=20.0), 50_000, 1).sent_s
    slow = np.count_nonzero(rushed[rushed < 400.0] % 20.0 < 10.0)
    fast = np.count_nonzero(rushed[rushed < 400.0] % 20.0 >= 10.0)
    assert slow == pytest.approx(20 * 10 * 20, rel=0.05)
    assert fast == pytest.approx(200 * 10 * 20, rel=0.02)


def test_shares_of_matching_and_lost_are_those_asked_for() -> None:
    drawn = stream(Path(match=0.3, loss=0.02), 100_000, 1)
    assert drawn.matches.mean() == pytest.approx(0.3, abs=0.006)
    assert np.isinf(drawn.arrived_s).mean() == pytest.approx(0.02, abs=0.002)
    assert len(drawn.order) == pytest.approx(0.3 * 0.98 * 100_000, rel=0.02)


def test_clock_steps_change_what_the_publisher_says_and_nothing_else() -> None:
    plain, stepped = (stream(STREAMS[name], 30_000, 1) for name in ("S2", "S10"))
    assert (plain.order == stepped.order).all()
    assert (plain.arrived_s == stepped.arrived_s).all()
    off = stepped.departure_s - plain.departure_s
    assert np.unique(off.round(6)).tolist() == [-2.0, 0.0, 2.0]
    assert (off[9_999], off[10_000], off[19_999], off[20_000]) == pytest.approx((0, 2, 2, -2))


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"loss": 0.5}, "sent_s"),
        ({"match": 0.9}, "arrived_s"),
        ({"hops": 6}, "matches"),
        ({"arrivals": "periodic"}, "matches"),
        ({"law": "lognormal"}, "sent_s"),
    ],
)
def test_changing_one_thing_leaves_the_other_draws_alone(
    change: dict[str, Any], column: str
) -> None:
    one, other = (stream(path, 500, 3) for path in (Path(), structs.replace(Path(), **change)))
    assert (getattr(one, column) == getattr(other, column)).all()
    assert list(one.published()) != list(other.published())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hops": 0}, "hops: 0 is not between 1"),
        ({"hops": 4, "mean_s": (0.1, 0.2)}, "mean_s: 2 means for 4 hops"),
        ({"mean_s": -0.1}, "mean_s: -0.1 is not"),
        ({"mean_s": 0.0, "law": "lognormal"}, "mean_s: a lognormal hop"),
        ({"rate": 0.0}, "rate: 0 is not"),
        ({"rate": float("nan")}, "rate: nan is not"),
        ({"match": 1.5}, "match: 1.5 is not"),
        ({"loss": -1.0}, "loss: -1 is not"),
        ({"burst": 0}, "burst: 0 is not"),
        ({"congestion": Wave(period=1.0, height=1.0)}, "congestion: 1 s within 1 s"),
        ({"clock_steps": ((1.5, 2.0),)}, "clock_steps: 1.5 is not"),
    ],
)
def test_an_impossible_path_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        stream(structs.replace(Path(), **change), 10, 1)


@pytest.mark.parametrize(
    ("draw", "error"),
    [
        (lambda: stream(Path(), -1, 1), Misuse),
        (lambda: stream(Path(), 10, -1), Misuse),
        (lambda: stream(Path(), 10**9, 1), TooLarge),
    ],
)
def test_an_impossible_number_is_refused(draw: Callable[[], Any], error: type[Misuse]) -> None:
    with pytest.raises(error):
        draw()


def test_no_publications_are_no_late_ones() -> None:
    assert stream(Path(), 0, 1).late_share == 0.0
