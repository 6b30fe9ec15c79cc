"""What a picture shows and where: its lanes and marks, the time axis, room for labels."""

from __future__ import annotations

from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING

from inorder.pipeline.page_chart import unit_of

if TYPE_CHECKING:
    from inorder.pipeline.page import Mark

# More than this on one picture is a grey smear; crossing marks and their lanes stay.
LANES_MAX = 12
MARKS_MAX = 120

TICKS = 6
CHAR = 6.7
LEVELS = 2


class Axis:
    """Moments to pixels, with ticks at round numbers counted from the first mark."""

    def __init__(self, moments: list[float], left: float, right: float) -> None:
        self._first = min(moments, default=0.0)
        self._span = max(moments, default=0.0) - self._first
        self._whole = all(float(moment).is_integer() for moment in moments)
        self._left, self._right = left, right

    def x(self, at: float) -> float:
        if self._span <= 0:
            return (self._left + self._right) / 2
        share = (at - self._first) / self._span
        return self._left + share * (self._right - self._left)

    def draw(self, y: float, top: float, in_seconds: bool) -> list[str]:
        """Without publications `at` may be an `nth`, so then it is shown as it stands."""
        size, unit = unit_of(self._span) if in_seconds else (1.0, "")
        ticks = self._ticks(size) if in_seconds else self._plain_ticks()
        parts = [
            f'<line class="axis" x1="{self._left:.1f}" x2="{self._right:.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
        ]
        for at, said in ticks:
            x = self.x(at)
            parts.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{y:.1f}"/>'
                f'<text class="tick" x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">'
                f"{said}</text>"
            )
        words = f"{unit} from {self._first:,.9g} s →" if unit else "later →"
        parts.append(
            f'<text class="tick" x="{self._right:.1f}" y="{y + 34:.1f}" text-anchor="end">'
            f"{words}</text>"
        )
        return parts

    def _ticks(self, size: float) -> list[tuple[float, str]]:
        span = self._span / size
        if span <= 0:
            return [(self._first, "+0")]
        step = _round_step(span / TICKS)
        spots = [step * at for at in range(int(span / step + 1e-9) + 1)]
        return [(self._first + spot * size, f"{spot:+.6g}") for spot in spots]

    def _plain_ticks(self) -> list[tuple[float, str]]:
        if self._span <= 0:
            return [(self._first, f"{self._first:,.9g}")]
        step = _round_step(self._span / TICKS)
        if self._whole:
            step = max(step, 1.0)
        last = self._first + self._span
        spots = [step * at for at in range(ceil(self._first / step), floor(last / step) + 1)]
        return [(spot, f"{spot:,.9g}") for spot in spots]


class Labels:
    """Where a label fits beside the ones already placed: a level and a middle, or nowhere."""

    def __init__(self, left: float, right: float) -> None:
        self._left, self._right = left, right
        self._taken: dict[tuple[str, int], list[tuple[float, float]]] = {}

    def place(self, row: str, x: float, chars: int) -> tuple[int, float] | None:
        half = chars * CHAR / 2 + 4
        middle = min(max(x, self._left + half), self._right - half)
        for level in range(LEVELS):
            taken = self._taken.setdefault((row, level), [])
            if all(middle + half <= low or middle - half >= high for low, high in taken):
                taken.append((middle - half, middle + half))
                return level, middle
        return None


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least `least`."""
    power = 10.0 ** floor(log10(least))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= least * 0.999)


def lanes_of(
    named: list[str], pubs: list[Mark], got: list[Mark]
) -> tuple[list[str], list[str], int]:
    """Publishers, then those that (also) deliver, in the order given; and how many are left out."""
    delivering = {mark.lane for mark in got}
    publishing = {mark.lane for mark in pubs}
    telling = {mark.lane for mark in got if mark.crossing}
    telling |= {m.lane for m in pubs if m.event in {g.event for g in got if g.crossing}}
    every = list(dict.fromkeys([*named, *(m.lane for m in pubs), *(m.lane for m in got)]))
    ranked = sorted(every, key=lambda lane: lane not in telling)
    kept = set(ranked[:LANES_MAX])
    top = [lane for lane in every if lane in kept and lane in publishing - delivering]
    below = [lane for lane in every if lane in kept and lane not in publishing - delivering]
    below.sort(key=lambda lane: lane not in publishing)
    return top, below, len(every) - len(kept)


def timed(marks: list[Mark]) -> list[Mark]:
    return sorted((m for m in marks if isfinite(m.at)), key=lambda mark: mark.at)


def fewest(marks: list[Mark], news: list[float]) -> list[Mark]:
    """At most `MARKS_MAX`: what crosses, then what is nearest in time to it; by time again."""
    low, high = min(news, default=0.0), max(news, default=0.0)

    def rank(mark: Mark) -> tuple[bool, float]:
        away = max(low - mark.at, mark.at - high, 0.0) if news else mark.at
        return not mark.crossing, away

    return sorted(sorted(marks, key=rank)[:MARKS_MAX], key=lambda mark: mark.at)
