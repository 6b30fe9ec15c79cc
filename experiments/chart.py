"""Small pictures in SVG: frames one above the other, each with bars, a line, dots, boxes or marks.

    page([Frame("latency by nodes", curves(...), x_log=True, y_log=True)], height=260)

A mark is a number that somebody else states, drawn large and hollow over our own line. The names of
the layers stand to the right of the frame, where no line is; lines differ by dashes, too, so that
two that lie on each other are both seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, isfinite, log10

from msgspec import Struct

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 64, 16, 24, 34
# For names, to the right of a frame.
NAMES = 250
DASHES = ("", "7 3", "2 3", "9 3 2 3")
TICKS = 5
# A line of more points shows none of them.
KNOTS = 16
COLOURS = ("#1f5a8a", "#b5482a", "#4a7a3a", "#7a4a8a", "#8a6d1f", "#2a8a86", "#555555", "#b52a6b")


class Layer(Struct, frozen=True):
    """Points of one kind: bars, line, dots, marks, or boxes (then `y` has five numbers for each x).

    The place among the layers picks the colour, unless `colour` does. `labels` stand below bars and
    boxes; a bar's may have two lines.
    """

    kind: str
    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    labels: Sequence[str] = ()
    colour: int | None = None


class Frame(Struct, frozen=True):
    """`span` makes several frames share their x axis. On a logarithmic axis all must be above 0,
    and values that are not are left out. `ticks` are written below the x axis, in the words of
    `ticks_named` if there are any. A y axis begins at 0, or near to the least value if `near`."""

    title: str
    layers: Sequence[Layer]
    span: tuple[float, float] | None = None
    x_log: bool = False
    y_log: bool = False
    ticks: Sequence[float] = ()
    ticks_named: Sequence[str] = ()
    near: bool = False


def bars(
    x: Sequence[float], y: Sequence[float], name: str = "", labels: Sequence[str] = ()
) -> Layer:
    return Layer("bars", x, y, name, labels)


def line(x: Sequence[float], y: Sequence[float], name: str = "") -> Layer:
    return Layer("line", x, y, name)


def dots(x: Sequence[float], y: Sequence[float], name: str = "") -> Layer:
    return Layer("dots", x, y, name)


def marks(x: Sequence[float], y: Sequence[float], colour: int | None = None) -> Layer:
    return Layer("marks", x, y, colour=colour)


def boxes(named: Sequence[tuple[str, Sequence[float]]]) -> list[Layer]:
    """One box each: least, first quartile, median, third quartile, most."""
    x = [float(place) for place in range(len(named))]
    y = [value for _, five in named for value in five]
    return [Layer("boxes", x, y, labels=[name for name, _ in named])]


def page(frames: Sequence[Frame], height: int = 170) -> str:
    """All frames in one picture; `height` is that of each."""
    bodies = [
        f'<g transform="translate(0 {place * height})">{_frame(frame, height)}</g>'
        for place, frame in enumerate(frames)
    ]
    total = height * len(frames)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" '
        f'font-family="sans-serif" font-size="11">'
        f'<rect width="{WIDTH}" height="{total}" fill="white"/>{"".join(bodies)}</svg>\n'
    )


class _Axis:
    """From values to places between two ends, `log` by their digits."""

    def __init__(self, low: float, high: float, at: tuple[float, float], log: bool) -> None:
        self.low, self.high, self._at, self._log = low, high, at, log
        self._first, self._last = self._value(low), self._value(high)

    def _value(self, value: float) -> float:
        return log10(value) if self._log else value

    def shows(self, value: float) -> bool:
        return isfinite(value) and (value > 0.0 or not self._log)

    def __call__(self, value: float) -> float:
        wide = (self._last - self._first) or 1.0
        low, high = self._at
        return low + (self._value(value) - self._first) / wide * (high - low)

    def ticks(self) -> list[float]:
        """Round values along it."""
        if not self._log:
            return steps(self.low, self.high)
        digits = range(round(self._first), round(self._last) + 1)
        whole = [10.0**digit for digit in digits]
        if len(whole) > 3:
            return whole
        return [time * start for start in whole for time in (1, 2, 5) if time * start <= self.high]


def steps(low: float, high: float) -> list[float]:
    """Round numbers between two ends, about `TICKS` of them.

    >>> steps(0.0, 388.9), steps(0.0, 0.7), steps(350.0, 470.0)
    ([0.0, 100.0, 200.0, 300.0], [0.0, 0.2, 0.4, 0.6], [360.0, 380.0, 400.0, 420.0, 440.0, 460.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / TICKS
    unit = 10.0 ** floor(log10(rough))
    step = next(time * unit for time in (1, 2, 5, 10) if time * unit >= 0.75 * rough)
    return [round(number * step, 12) for number in range(ceil(low / step), floor(high / step) + 1)]


class _Scale:
    """From values to places on the picture."""

    def __init__(self, frame: Frame, height: int) -> None:
        xs = [value for layer in frame.layers for value in layer.x]
        ys = [value for layer in frame.layers for value in layer.y if isfinite(value)]
        self.labelled = any(layer.labels for layer in frame.layers)
        self.right = WIDTH - (NAMES if any(_name(layer) for layer in frame.layers) else RIGHT)
        widths = [_step(layer) for layer in frame.layers if layer.kind in ("bars", "boxes")]
        pad = max(widths, default=0.0) / 2.0
        low_x, high_x = frame.span or (min(xs, default=1.0) - pad, max(xs, default=1.0) + pad)
        low_y, high_y = min([0.0, *ys]), max([0.0, *ys]) or 1.0
        if frame.y_log:
            above = [value for value in ys if value > 0.0] or [1.0]
            low_y, high_y = 10.0 ** floor(log10(min(above))), 10.0 ** ceil(log10(max(above)))
        elif frame.near and ys:
            room = 0.08 * (max(ys) - min(ys)) or 1.0
            low_y, high_y = min(ys) - room, max(ys) + room
        self.x = _Axis(low_x, high_x, (LEFT, self.right), frame.x_log)
        self.y = _Axis(low_y, high_y, (height - BOTTOM, TOP), frame.y_log)
        # Where bars stand and the x axis is.
        self.floor = self.y(low_y if frame.y_log or frame.near else 0.0)
        self.foot = height - BOTTOM

    def seen(self, layer: Layer) -> list[tuple[float, float]]:
        """The places of a layer's points, without those that an axis cannot show."""
        pairs = zip(layer.x, layer.y, strict=True)
        return [(self.x(x), self.y(y)) for x, y in pairs if self.x.shows(x) and self.y.shows(y)]


def _step(layer: Layer) -> float:
    """From one bar or box to the next."""
    return (max(layer.x) - min(layer.x)) / (len(layer.x) - 1) if len(layer.x) > 1 else 1.0


def _name(layer: Layer) -> str:
    return layer.name or ("\u25cb stated" if layer.kind == "marks" else "")


def _frame(frame: Frame, height: int) -> str:
    at = _Scale(frame, height)
    parts = [
        f'<text x="{LEFT}" y="14" font-weight="bold">{escape(frame.title)}</text>',
        f'<path d="M{LEFT} {TOP}V{at.foot:.1f}M{LEFT} {at.floor:.1f}H{at.right}" fill="none" '
        'stroke="#888"/>',
    ]
    drawn = []
    named: dict[str, str] = {}
    for place, layer in enumerate(frame.layers):
        number = place if layer.colour is None else layer.colour
        colour = COLOURS[number % len(COLOURS)]
        drawn.append(_DRAWN[layer.kind](layer, at, colour))
        if name := _name(layer):
            stated = layer.kind == "marks" and not layer.name
            named.setdefault(name, "#333" if stated else colour)
            if layer.kind == "line":
                drawn.append(_sample(number, TOP + 16 * (len(named) - 1), at.right, colour))
    for line, (name, colour) in enumerate(named.items()):
        parts.append(
            f'<text x="{at.right + 36}" y="{TOP + 4 + 16 * line}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return "".join([*parts, *_ticks(frame, at), *drawn])


def _sample(number: int, y: float, right: float, colour: str) -> str:
    return (
        f'<path d="M{right + 10:.1f} {y:.1f}h22" stroke="{colour}" stroke-width="1.8" '
        f'stroke-dasharray="{DASHES[number % len(DASHES)]}"/>'
    )


def _ticks(frame: Frame, at: _Scale) -> list[str]:
    parts = [
        f'<path d="M{LEFT - 4} {at.y(tick):.1f}h4" stroke="#888"/>'
        f'<text x="{LEFT - 7}" y="{at.y(tick) + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
        for tick in at.y.ticks()
    ]
    if at.labelled:
        return parts
    ticks = list(frame.ticks or at.x.ticks())
    words = frame.ticks_named or [_number(tick) for tick in ticks]
    parts += [
        f'<path d="M{at.x(tick):.1f} {at.floor:.1f}v4" stroke="#888"/>'
        f'<text x="{at.x(tick):.1f}" y="{at.foot + 15:.1f}" text-anchor="middle">'
        f"{escape(word)}</text>"
        for tick, word in zip(ticks, words, strict=True)
    ]
    return parts


def _number(value: float) -> str:
    """
    >>> _number(1000.0), _number(0.25), _number(1e7)
    ('1000', '0.25', '1e+07')
    """
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.4g}"


def _bars(layer: Layer, at: _Scale, colour: str) -> str:
    step = at.x(_step(layer)) - at.x(0.0)
    # Bars with names of their own stand apart.
    wide = 0.7 * step if at.labelled else step
    words = [
        f'<text x="{at.x(x):.1f}" y="{at.foot + 13 + 12 * row:.1f}" text-anchor="middle" '
        f'font-size="10">{escape(word)}</text>'
        for x, label in zip(layer.x, layer.labels, strict=False)
        for row, word in enumerate(label.split("\n"))
    ]
    return "".join(
        [
            f'<rect x="{x - wide / 2:.1f}" y="{top:.1f}" width="{wide:.2f}" '
            f'height="{at.floor - top:.1f}" fill="{colour}" fill-opacity="0.5"/>'
            for x, top in at.seen(layer)
        ]
        + words
    )


def _line(layer: Layer, at: _Scale, colour: str) -> str:
    places = at.seen(layer)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    number = COLOURS.index(colour)
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8" '
        f'stroke-dasharray="{DASHES[number % len(DASHES)]}"/>'
        + (_knots(places, colour) if len(places) <= KNOTS else "")
    )


def _knots(places: Sequence[tuple[float, float]], colour: str) -> str:
    """Where the points of a line are; a line of one point would be invisible otherwise."""
    drawn = "".join(f"M{x:.1f} {y:.1f}h.01" for x, y in places)
    return f'<path d="{drawn}" stroke="{colour}" stroke-width="4.5" stroke-linecap="round"/>'


def _dots(layer: Layer, at: _Scale, colour: str) -> str:
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.2" fill="{colour}"/>' for x, y in at.seen(layer)
    )


def _marks(layer: Layer, at: _Scale, colour: str) -> str:
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="none" stroke="{colour}" '
        f'stroke-width="1.8"/>'
        for x, y in at.seen(layer)
    )


def _boxes(layer: Layer, at: _Scale, colour: str) -> str:
    parts = []
    wide = (WIDTH - LEFT - RIGHT) / len(layer.x) * 0.3
    for place, x in enumerate(layer.x):
        least, low, median, high, most = (at.y(y) for y in layer.y[5 * place : 5 * place + 5])
        mid = at.x(x)
        parts.append(
            f'<path d="M{mid:.1f} {least:.1f}V{low:.1f}M{mid:.1f} {high:.1f}V{most:.1f}'
            f"M{mid - wide:.1f} {low:.1f}H{mid + wide:.1f}V{high:.1f}H{mid - wide:.1f}Z"
            f'M{mid - wide:.1f} {median:.1f}H{mid + wide:.1f}" fill="none" stroke="{colour}"/>'
            f'<text x="{mid:.1f}" y="{at.y(0.0) + 12 + 9 * (place % 3):.1f}" '
            f'text-anchor="middle" font-size="9">{escape(layer.labels[place])}</text>'
        )
    return "".join(parts)


_DRAWN = {"bars": _bars, "line": _line, "dots": _dots, "marks": _marks, "boxes": _boxes}
