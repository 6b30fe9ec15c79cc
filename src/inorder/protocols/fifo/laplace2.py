"""The paper's estimator, corrected: delay differences as a sum of two Laplacians.

Theory ("Probabilistic FIFO Ordering in Publish/Subscribe Networks", sections III-B to III-E). Let x
be the difference of the delays of two consecutive arrivals. If processing times are exponential, x
is a sum of Laplacians; two of one scale b approximate it, and b = 2/(3n) sum |x| over the last n.
An event that departed delta before the one that revealed the gap is then late with probability
1 - F(delta), and waiting F^-1(1 - P) - delta more brings that down to P.

What is corrected: the printed quantile has the wrong sign and branch (E-F2, laplace.py); delta has
the wrong sign (E-F1); every arrival is sampled, not only those in order (E-F13); pairs that
departed more than `max_pair_gap` apart are left out, or slow congestion leaks into b (E-F5: set it
to inf to see what the paper probably saw); a negative wait is none (E-F16).

What is not: P bounds a pair, unconditionally. It is not the share of late events, and the estimator
misses such a target by up to a factor of four. It is kept as the paper has it, for comparison.
"""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from inorder.protocols.fifo.laplace import cdf, quantile
from inorder.protocols.fifo.options import Options


class Laplace2(Struct):
    share: float
    window: int
    min_samples: int
    max_pair_gap: float
    # |x| of the last pairs, oldest first.
    spans: list[float] = []
    # The previous arrival: departure and arrival.
    before: tuple[float, float] | None = None
    steps: int = 0
    # The quantile for scale 1: it depends on the share alone.
    unit_wait: float = 0.0

    @classmethod
    def from_options(cls, options: Options) -> Self:
        unit_wait = quantile(1.0 - options.late, 1.0)
        return cls(
            options.late, options.window or 25, options.min_samples, options.max_pair_gap,
            unit_wait=unit_wait,
        )  # fmt: skip

    @property
    def warm(self) -> bool:
        return len(self.spans) >= min(self.min_samples, self.window)

    @property
    def scale(self) -> float:
        return 2.0 * sum(self.spans) / (3.0 * len(self.spans)) if self.spans else 0.0

    def sample(self, departure_s: float, arrived_s: float) -> None:
        before, self.before = self.before, (departure_s, arrived_s)
        if before is None or abs(departure_s - before[0]) > self.max_pair_gap:
            return
        self.spans.append(abs((arrived_s - before[1]) - (departure_s - before[0])))
        if len(self.spans) > self.window:
            del self.spans[0]

    def feedback(self, late: bool) -> None:
        return

    def rebase(self) -> None:
        self.before = None

    def deadline(self, departure_s: float, opener_s: float, now: float) -> float:
        return now + max(0.0, self.unit_wait * self.scale - (opener_s - departure_s))

    def wait_for(self, share: float) -> float:
        return quantile(1.0 - share, 1.0) * self.scale

    def share_for(self, wait_s: float) -> float:
        return 1.0 - cdf(wait_s, self.scale) if self.scale else 0.0

    def gauges(self) -> dict[str, float]:
        return {"scale": self.scale}
