"""Named distributions of a delay, as they stand in scenario files: `{law = "normal", mean = ...}`.

All parameters are seconds. A drawn delay is never negative: the normal law is cut at zero by
drawing again, which moves its mean up slightly (by 2 % for the papers' fast channels).
"""

from __future__ import annotations

from math import cos, isfinite, log, pi
from random import Random

from msgspec import Struct, structs


class Constant(Struct, frozen=True, forbid_unknown_fields=True, tag_field="law", tag="constant"):
    mean: float

    def draw(self, rng: Random) -> float:
        return self.mean


class Normal(Struct, frozen=True, forbid_unknown_fields=True, tag_field="law", tag="normal"):
    mean: float
    std: float

    def draw(self, rng: Random) -> float:
        while (delay := rng.normalvariate(self.mean, self.std)) <= 0.0:
            pass
        return delay


class Exponential(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="law", tag="exponential"
):
    mean: float

    def draw(self, rng: Random) -> float:
        return rng.expovariate(1.0) * self.mean


class Lognormal(Struct, frozen=True, forbid_unknown_fields=True, tag_field="law", tag="lognormal"):
    """`median` is the middle delay; `sigma` the standard deviation of its logarithm."""

    median: float
    sigma: float

    def draw(self, rng: Random) -> float:
        return rng.lognormvariate(log(self.median), self.sigma)


class Hops(Struct, frozen=True, forbid_unknown_fields=True, tag_field="law", tag="hops"):
    """The sum of one exponential delay per hop."""

    hops: int
    mean_per_hop: float

    def draw(self, rng: Random) -> float:
        return sum(rng.expovariate(1.0) for _ in range(self.hops)) * self.mean_per_hop


Law = Constant | Normal | Exponential | Lognormal | Hops


class Wave(Struct, frozen=True, forbid_unknown_fields=True):
    """A delay that swells from 0 to `height` and back once in a `period`, for everybody alike.

    >>> wave = Wave(period=30.0, height=1.5)
    >>> wave.at(0.0), wave.at(15.0), wave.at(30.0)
    (0.0, 1.5, 0.0)
    """

    period: float
    height: float

    def at(self, now: float) -> float:
        return self.height * (1.0 - cos(2.0 * pi * now / self.period)) / 2.0

    @property
    def fall(self) -> float:
        """Seconds the delay falls by in one second, at its steepest; at 1 messages overtake."""
        return self.height * pi / self.period


def problem(law: Law) -> str | None:
    """Why no delay can be drawn from this law, if so."""
    if not all(isfinite(number) for number in structs.astuple(law)):
        return "infinite delays never end"
    if isinstance(law, Lognormal):
        return None if law.median > 0 and law.sigma >= 0 else "median must be above 0, sigma >= 0"
    if isinstance(law, Hops):
        return None if law.hops > 0 and law.mean_per_hop >= 0 else "hops >= 1, mean_per_hop >= 0"
    if isinstance(law, Normal):
        return None if law.mean > 0 and law.std >= 0 else "mean must be above 0, std >= 0"
    return None if law.mean >= 0 else "mean must not be negative"
