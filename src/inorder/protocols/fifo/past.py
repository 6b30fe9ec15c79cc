"""Former lives of a publisher: what was received of them, so that stragglers find their place."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from inorder.core.limits import INCARNATIONS_KEPT
from inorder.core.numbers import Numbers

Place = Literal["in order", "late", "duplicate"]


class Life(Struct):
    """What was received of one incarnation, and the highest delivered."""

    incarnation: int
    floor: int = 0
    seen: Numbers = field(default_factory=Numbers)


class Past:
    """The last few incarnations before the present one, oldest first."""

    __slots__ = ("lives",)

    def __init__(self) -> None:
        self.lives: list[Life] = []

    def __bool__(self) -> bool:
        return bool(self.lives)

    def keep(self, life: Life) -> None:
        self.lives.append(life)
        self.lives.sort(key=lambda each: each.incarnation)
        del self.lives[:-INCARNATIONS_KEPT]

    def place(self, incarnation: int, seq: int, overtaken: bool) -> Place:
        """Where an event of a former life belongs; `overtaken` if the present one has delivered."""
        if all(life.incarnation != incarnation for life in self.lives):
            self.keep(Life(incarnation))
        for life in self.lives:
            if life.incarnation == incarnation:
                if life.seen.add(seq) == "again":
                    return "duplicate"
                if life is self.lives[-1] and not overtaken and seq > life.floor:
                    life.floor = seq
                    return "in order"
        return "late"
