"""Small pictures in SVG: frames one above the other, each with bars, a line, dots, boxes or marks.

    page([Frame("latency by nodes", curves(...), x_log=True, y_log=True)], height=260)

A mark is a number that somebody else states, drawn large and hollow over our own line.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, isfinite, log10

from msgspec import Struct

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 64, 16, 24, 34
COLOURS = ("#1f5a8a", "#b5482a", "#4a7a3a", "#7a4a8a", "#8a6d1f", "#2a8a86", "#555555", "#b52a6b")


class Layer(Struct, frozen=True):
    """Points of one kind: bars, line, dots, marks, or boxes (then `y` has five numbers for each x).

    The place among the layers picks the colour, unless `colour` does.
    """

    kind: str
    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    labels: Sequence[str] = ()
    colour: int | None = None


class Frame(Struct, frozen=True):
    """`span` makes several frames share their x axis. On a logarithmic axis all must be above 0,
    and values that are not are left out. `ticks` are written below the x axis."""

    title: str
    layers: Sequence[Layer]
    span: tuple[float, float] | None = None
    x_log: bool = False
    y_log: bool = False
    ticks: Sequence[float] = ()


def bars(x: Sequence[float], y: Sequence[float], name: str = "") -> Layer:
    return Layer("bars", x, y, name)


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


class _Scale:
    """From values to places on the picture."""

    def __init__(self, frame: Frame, height: int) -> None:
        xs = [value for layer in frame.layers for value in layer.x]
        ys = [value for layer in frame.layers for value in layer.y if isfinite(value)]
        self.boxed = any(layer.kind == "boxes" for layer in frame.layers)
        widths = [_step(layer) for layer in frame.layers if layer.kind in ("bars", "boxes")]
        pad = max(widths, default=0.0) / 2.0
        low_x, high_x = frame.span or (min(xs, default=1.0) - pad, max(xs, default=1.0) + pad)
        low_y, high_y = min([0.0, *ys]), max([0.0, *ys]) or 1.0
        if frame.y_log:
            above = [value for value in ys if value > 0.0] or [1.0]
            low_y, high_y = 10.0 ** floor(log10(min(above))), 10.0 ** ceil(log10(max(above)))
        self.x = _Axis(low_x, high_x, (LEFT, WIDTH - RIGHT), frame.x_log)
        self.y = _Axis(low_y, high_y, (height - BOTTOM, TOP), frame.y_log)
        # Where bars stand and the x axis is.
        self.floor = self.y(low_y if frame.y_log else 0.0)

    def seen(self, layer: Layer) -> list[tuple[float, float]]:
        """The places of a layer's points, without those that an axis cannot show."""
        pairs = zip(layer.x, layer.y, strict=True)
        return [(self.x(x), self.y(y)) for x, y in pairs if self.x.shows(x) and self.y.shows(y)]


def _step(layer: Layer) -> float:
    """From one bar or box to the next."""
    return (max(layer.x) - min(layer.x)) / (len(layer.x) - 1) if len(layer.x) > 1 else 1.0


def _frame(frame: Frame, height: int) -> str:
    at = _Scale(frame, height)
    base = at.floor
    least = f"{at.y.low:.4g}" if frame.y_log else "0"
    parts = [
        f'<text x="{LEFT}" y="14" font-weight="bold">{escape(frame.title)}</text>',
        f'<path d="M{LEFT} {TOP}V{base:.1f}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT - 6}" y="{TOP + 8}" text-anchor="end">{at.y.high:.4g}</text>',
        f'<text x="{LEFT - 6}" y="{base:.1f}" text-anchor="end">{least}</text>',
    ]
    if frame.ticks:
        parts += [
            f'<text x="{at.x(tick):.1f}" y="{base + 14:.1f}" text-anchor="middle">{tick:.4g}</text>'
            for tick in frame.ticks
        ]
    elif not at.boxed:
        low, high = f"{at.x.low:.4g}", f"{at.x.high:.4g}"
        parts.append(f'<text x="{LEFT}" y="{base + 14:.1f}">{low}</text>')
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{base + 14:.1f}" text-anchor="end">{high}</text>'
        )
    line = 0
    for place, layer in enumerate(frame.layers):
        colour = COLOURS[(place if layer.colour is None else layer.colour) % len(COLOURS)]
        parts.append(_DRAWN[layer.kind](layer, at, colour))
        if layer.name:
            parts.append(
                f'<text x="{WIDTH - RIGHT}" y="{14 + 13 * line}" text-anchor="end" '
                f'fill="{colour}">{escape(layer.name)}</text>'
            )
            line += 1
    return "".join(parts)


def _bars(layer: Layer, at: _Scale, colour: str) -> str:
    step = at.x(_step(layer)) - at.x(0.0)
    return "".join(
        f'<rect x="{x - step / 2:.1f}" y="{top:.1f}" width="{step:.2f}" '
        f'height="{at.floor - top:.1f}" fill="{colour}" fill-opacity="0.5"/>'
        for x, top in at.seen(layer)
    )


def _line(layer: Layer, at: _Scale, colour: str) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at.seen(layer))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


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
