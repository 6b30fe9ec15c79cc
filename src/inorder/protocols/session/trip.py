"""How long a frame and its acknowledgement take: RFC 6298's estimator.

Rule 1: a round trip is a difference of two readings of a clock that may jump. One below 0 or above
        TRIP_S_MAX is no round trip, and the wait stays within its bounds whatever was measured.
Rule 2: before the first measurement the wait is what the options say. In a world without time all
        readings are 0, which measures nothing.
"""

from __future__ import annotations

from msgspec import Struct

TRIP_S_MAX = 60.0
WAIT_S_MIN = 0.01
WAIT_S_MAX = 8.0


class Trip(Struct, array_like=True):
    mean_s: float = 0.0
    deviation_s: float = 0.0

    def measure(self, took_s: float) -> None:
        if not 0.0 < took_s <= TRIP_S_MAX:
            return
        if self.mean_s == 0.0:
            self.mean_s, self.deviation_s = took_s, took_s / 2
            return
        self.deviation_s += (abs(self.mean_s - took_s) - self.deviation_s) / 4
        self.mean_s += (took_s - self.mean_s) / 8

    def wait_s(self, first_s: float, tries: int) -> float:
        """How long to wait for an acknowledgement that has not come so many times."""
        wait_s = first_s
        if self.mean_s > 0.0:
            wait_s = self.mean_s + max(4 * self.deviation_s, WAIT_S_MIN)
        return min(wait_s * (1 << min(tries, 32)), max(WAIT_S_MAX, first_s))
