"""The baseline: wait the same time for whatever is missing (the paper's CST-t).

It learns nothing. `latch` is t. A fair comparison tunes t until as many events come late as with
the estimator it is compared to, on the same arrivals (section IV-B).
"""

from __future__ import annotations

from math import nan
from typing import Self

from msgspec import Struct

from inorder.protocols.fifo.options import Options


class Static(Struct):
    latch: float
    steps: int = 0

    @classmethod
    def from_options(cls, options: Options) -> Self:
        return cls(options.latch)

    @property
    def warm(self) -> bool:
        return True

    def sample(self, departure_s: float, arrived_s: float) -> None:
        return

    def feedback(self, late: bool) -> None:
        return

    def rebase(self) -> None:
        return

    def deadline(self, departure_s: float, opener_s: float, now: float) -> float:
        return now + self.latch

    def wait_for(self, share: float) -> float:
        return self.latch

    def share_for(self, wait_s: float) -> float:
        return nan

    def gauges(self) -> dict[str, float]:
        return {"latch": self.latch}
