"""One path: the messages of one publisher as one subscriber gets them, without a world around.

Each hop is a broker that takes a random time over each message, independently of all others (see
sim/brokers.py, rule 3), so a message is late if it needs longer than one sent after it. A few lines
of NumPy draw a million passages in a second, which is what comparing receivers needs.

Everything has a random stream of its own: a path with loss, or with one hop more, keeps all other
draws. The clock steps are the publisher's: they show in `departure_s`, not in when things happen.

`STREAMS` are ten paths to compare receivers on. The raw late share is that of the received messages
that arrive after one of a higher number; wanted is the figure of the design's reference model,
which states hardly more than the name. What is not stated there was found by trying. Drawn: the
mean over seeds 1 to 5 with 150,000 publications each.

| name | what                              | chosen here                          | wanted | drawn |
|------|-----------------------------------|--------------------------------------|--------|-------|
| S1   | all messages match                | 5 hops of 10 ms, Poisson, 100/s      | 50.6%  | 50.6% |
| S2   | every fifth matches, at random    | the same; also for S3 to S10         | 19.0%  | 19.1% |
| S3   | 15 hops                           | of 8.3 ms (10 ms would give 29.6 %)  | 26.0%  | 25.8% |
| S4   | one slow broker                   | the third one ten times as slow      | 41.6%  | 41.8% |
| S5   | the load drifts                   | hops 1 to 5 times as slow, in 100 s  | 37.2%  | 37.3% |
| S6   | lognormal hops                    | mean 10.5 ms, sigma 1.8: heavy tails | 25.1%  | 25.0% |
| S7   | congestion adds 0 to 1.4 s        | one wave in 30 s                     | 19.1%  | 19.1% |
| S8   | bursts                            | 5 publications within 1 ms           | -      | 29.4% |
| S9   | the rate jumps, messages are lost | 20/s and 200/s, 10 s each; 2 % lost  | -      | 28.4% |
| S10  | the publisher's clock steps       | +2 s, -4 s after 1/3, 2/3 of the run | 19.0%  | 19.1% |
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import STREAM_PUBLICATIONS_MAX
from inorder.sim.laws import Wave

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# The topic of what the subscriber wants, and of everything else.
WANTED = "t1"
OTHER = "t2"


class Path(Struct, frozen=True, kw_only=True):
    """What a stream is drawn from. A list of `mean_s` has one entry for each hop."""

    hops: int = 5
    mean_s: float | tuple[float, ...] = 0.01
    law: Literal["exponential", "lognormal", "constant"] = "exponential"
    # The standard deviation of the logarithm; lognormal hops only.
    sigma: float = 1.0
    # What links take, all together.
    fixed_s: float = 0.0
    rate: float = 100.0
    arrivals: Literal["poisson", "periodic"] = "poisson"
    # The share of publications that the subscriber wants.
    match: float = 0.2
    loss: float = 0.0
    # Publications that come together within `burst_s`; `rate` stays what it is.
    burst: int = 1
    burst_s: float = 0.001
    # Every other half period publications come this many times as fast.
    rush: float = 1.0
    rush_period_s: float = 20.0
    # All hops together become this many times as slow and quick again, once in a period.
    drift: float = 1.0
    drift_period_s: float = 100.0
    congestion: Wave | None = None
    # (share of the run, seconds): from then on the publisher's clock is that much further.
    clock_steps: tuple[tuple[float, float], ...] = ()

    @property
    def means_s(self) -> tuple[float, ...]:
        return self.mean_s if isinstance(self.mean_s, tuple) else (self.mean_s,) * self.hops


_S2 = Path()

STREAMS: dict[str, Path] = {
    "S1": structs.replace(_S2, match=1.0),
    "S2": _S2,
    "S3": structs.replace(_S2, hops=15, mean_s=0.0083),
    "S4": structs.replace(_S2, mean_s=(0.01, 0.01, 0.1, 0.01, 0.01)),
    "S5": structs.replace(_S2, drift=5.0),
    "S6": structs.replace(_S2, law="lognormal", mean_s=0.0105, sigma=1.8),
    "S7": structs.replace(_S2, congestion=Wave(period=30.0, height=1.4)),
    "S8": structs.replace(_S2, burst=5),
    "S9": structs.replace(_S2, rate=20.0, rush=10.0, loss=0.02),
    "S10": structs.replace(_S2, clock_steps=((1 / 3, 2.0), (2 / 3, -4.0))),
}


class Passage(Struct, frozen=True, gc=False):
    """One publication: by the publisher's clock when it left, by the receiver's when it came."""

    seq: int
    departure_s: float
    arrived_s: float | None
    matches: bool
    topic: str


class Stream(Struct, frozen=True, eq=False):
    """All publications as columns, the one of sequence number n at place n - 1.

    `sent_s` is true time, `departure_s` the publisher's; a lost publication's `arrived_s` is
    infinite. `order` has the places of those that the subscriber gets, as they come.
    """

    sent_s: Floats
    departure_s: Floats
    arrived_s: Floats
    matches: NDArray[np.bool_]
    order: NDArray[np.int64]

    @property
    def late_share(self) -> float:
        """The share of the received messages that come after one of a higher number."""
        import numpy as np

        if not len(self.order):
            return 0.0
        return float(np.mean(self.order < np.maximum.accumulate(self.order)))

    def published(self) -> Iterator[Passage]:
        """Every publication, as sent: what publication records are made of."""
        return self._passages(range(len(self.sent_s)))

    def received(self) -> Iterator[Passage]:
        """Those that match and are not lost, as they come."""
        return self._passages(self.order.tolist())

    def _passages(self, places: Any) -> Iterator[Passage]:
        departure_s, arrived_s = self.departure_s.tolist(), self.arrived_s.tolist()
        matches = self.matches.tolist()
        for place in places:
            arrived = arrived_s[place] if arrived_s[place] < inf else None
            topic = WANTED if matches[place] else OTHER
            yield Passage(place + 1, departure_s[place], arrived, matches[place], topic)


def stream(path: Path, count: int, seed: int) -> Stream:
    """Draw `count` publications and what becomes of them.

    >>> drawn = stream(Path(hops=3, law="constant", match=1.0, arrivals="periodic"), 2, seed=1)
    >>> [round(passage.arrived_s - passage.departure_s, 6) for passage in drawn.received()]
    [0.03, 0.03]
    """
    import numpy as np

    check(path, count)
    if seed < 0:
        raise Misuse(f"seed: {seed} is below 0")
    sent_s = _sent(path, count, seed)
    matches = _rng(seed, "match").random(count) < path.match
    lost = _rng(seed, "loss").random(count) < path.loss
    arrived_s = sent_s + _delays(path, sent_s, seed)
    if path.congestion:
        # Behind the hops, and by the time: it keeps whatever order they made.
        wave = path.congestion
        swell = (1.0 - np.cos(2.0 * np.pi * arrived_s / wave.period)) / 2.0
        arrived_s = arrived_s + wave.height * swell
    arrived_s[lost] = inf
    departure_s = sent_s.copy()
    for share, jump_s in path.clock_steps:
        departure_s[round(share * count) :] += jump_s
    got = np.flatnonzero(matches & ~lost)
    order = got[np.argsort(arrived_s[got], kind="stable")]
    return Stream(sent_s, departure_s, arrived_s, matches, order)


def check(path: Path, count: int) -> None:
    """Refuse a path that no stream can be drawn from."""
    if count > STREAM_PUBLICATIONS_MAX:
        raise TooLarge("a stream", count, STREAM_PUBLICATIONS_MAX)
    bounds: list[tuple[str, float, float, float]] = [
        ("count", count, 0, STREAM_PUBLICATIONS_MAX),
        ("hops", path.hops, 1, 1000),
        ("sigma", path.sigma, 0.0, 10.0),
        ("fixed_s", path.fixed_s, 0.0, 1e6),
        ("rate", path.rate, 1e-6, 1e6),
        ("match", path.match, 0.0, 1.0),
        ("loss", path.loss, 0.0, 1.0),
        ("burst", path.burst, 1, 10_000),
        ("burst_s", path.burst_s, 0.0, 1e3),
        ("rush", path.rush, 1e-3, 1e6),
        ("rush_period_s", path.rush_period_s, 1e-3, 1e9),
        ("drift", path.drift, 1e-3, 1e6),
        ("drift_period_s", path.drift_period_s, 1e-3, 1e9),
        *(("mean_s", mean, 0.0, 1e6) for mean in path.means_s),
        *(("clock_steps", share, 0.0, 1.0) for share, _ in path.clock_steps),
        *(("clock_steps", jump_s, -1e9, 1e9) for _, jump_s in path.clock_steps),
    ]
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise Misuse(f"{name}: {value:g} is not between {low:g} and {high:g}")
    if len(path.means_s) != path.hops:
        raise Misuse(f"mean_s: {len(path.means_s)} means for {path.hops} hops")
    if path.law == "lognormal" and min(path.means_s) <= 0.0:
        raise Misuse("mean_s: a lognormal hop takes longer than 0")
    wave = path.congestion
    if wave and not (wave.period > 0.0 and wave.height >= 0.0 and wave.fall < 1.0):
        raise Misuse(f"congestion: {wave.height:g} s within {wave.period:g} s makes time run back")


def _rng(seed: int, what: str) -> np.random.Generator:
    import numpy as np

    return np.random.default_rng([seed, *what.encode()])


def _sent(path: Path, count: int, seed: int) -> Floats:
    """When publications are sent: steps of one group each on average, then stretched to time."""
    import numpy as np

    rng = _rng(seed, "sent")
    groups = -(-count // path.burst)
    if path.arrivals == "poisson":
        steps = np.cumsum(rng.exponential(1.0, groups))
    else:
        steps = np.arange(groups, dtype=np.float64) + rng.random()
    at_s = _at_rate(path, steps * path.burst)
    if path.burst > 1:
        within = _rng(seed, "burst").random((groups, path.burst)) * path.burst_s
        # Groups may overlap: numbers go by time.
        at_s = np.sort((at_s[:, None] + within).ravel())[:count]
    return at_s


def _at_rate(path: Path, publications: Floats) -> Floats:
    """The time by which so many publications are due, at a rate that may alternate."""
    import numpy as np

    if path.rush == 1.0 or not len(publications):
        return publications / path.rate
    half_s = path.rush_period_s / 2.0
    slow, fast = path.rate * half_s, path.rate * path.rush * half_s
    periods = int(publications[-1] // (slow + fast)) + 1
    due = np.concatenate([[0.0], np.cumsum(np.tile([slow, fast], periods))])
    times: Floats = np.interp(publications, due, np.arange(len(due)) * half_s)
    return times


def _delays(path: Path, sent_s: Floats, seed: int) -> Floats:
    import numpy as np

    count = len(sent_s)
    total = np.zeros(count)
    for hop, mean in enumerate(path.means_s):
        rng = _rng(seed, f"hop {hop}")
        if path.law == "exponential":
            total += rng.exponential(mean, count)
        elif path.law == "lognormal":
            total += rng.lognormal(log(mean) - path.sigma**2 / 2.0, path.sigma, count)
        else:
            total += mean
    swell = (1.0 - np.cos(2.0 * np.pi * sent_s / path.drift_period_s)) / 2.0
    return total * (1.0 + (path.drift - 1.0) * swell) + path.fixed_s
