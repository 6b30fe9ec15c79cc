"""Values drawn from the laws of a scenario: attributes of events, parameters of filters."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from inorder.sim.scenario import Attribute, Choice, Uniform


class Drawn:
    """Draws all values of some laws together; walks remember where they are."""

    def __init__(self, laws: Mapping[str, Attribute]) -> None:
        self._laws = laws
        self._walks: dict[str, float] = {}

    def draw(self, rng: Random) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for name, law in self._laws.items():
            if isinstance(law, Choice):
                value[name] = rng.choice(law.choice)
            elif isinstance(law, Uniform):
                value[name] = rng.uniform(*law.uniform)
            else:
                start, step = law.walk
                moved = self._walks.get(name, start) + rng.gauss(0.0, step)
                self._walks[name] = value[name] = round(moved, 4)
        return value


def first(law: Attribute) -> Any:
    """Some value of a law, to see of which kind it is."""
    if isinstance(law, Choice):
        return law.choice[0]
    return law.uniform[0] if isinstance(law, Uniform) else law.walk[0]
