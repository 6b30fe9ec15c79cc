"""A plane with hosts at drawn places: the further apart two of them are, the later messages come.

The side of the plane is so many seconds long. Hosts stand anywhere, or close together at a few
sites. Where a host stands follows from the seed and its name, whatever the order of asking.
"""

from __future__ import annotations

from math import dist
from random import Random

from inorder.sim.scenario import PlaneTable


class Plane:
    """
    >>> plane = Plane("7", PlaneTable(side=0.1, least=0.001))
    >>> plane.mean_s("a", "b") == plane.mean_s("b", "a"), plane.mean_s("a", "a")
    (True, 0.001)
    """

    sized = False

    def __init__(self, seed: str, table: PlaneTable) -> None:
        self._seed = f"{seed}/plane"
        self._table = table
        self._places: dict[str, tuple[float, float]] = {}

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        return now + self.mean_s(source, target)

    def mean_s(self, one: str, other: str) -> float:
        """How long a message takes between two hosts; the same both ways."""
        table = self._table
        return table.least + table.side * dist(self._place(one), self._place(other))

    def _place(self, host: str) -> tuple[float, float]:
        place = self._places.get(host)
        if place is None:
            place = self._places[host] = self._draw(host)
        return place

    def _draw(self, host: str) -> tuple[float, float]:
        """In units of the side."""
        rng = Random(f"{self._seed}/host/{host}")
        if self._table.sites is None:
            return rng.random(), rng.random()
        site = Random(f"{self._seed}/site/{rng.randrange(self._table.sites)}")
        spread = self._table.spread
        x, y = site.random(), site.random()
        return x + rng.uniform(-spread, spread) / 2.0, y + rng.uniform(-spread, spread) / 2.0
