"""Small pictures in SVG: frames one above the other, each with bars, a line, dots or boxes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite

from msgspec import Struct

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 64, 16, 24, 34
COLOURS = ("#1f5a8a", "#b5482a", "#4a7a3a")


class Layer(Struct, frozen=True):
    """Points of one kind: bars, line, dots, or boxes (then `y` has five numbers for each x)."""

    kind: str
    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    labels: Sequence[str] = ()


class Frame(Struct, frozen=True):
    """`span` makes several frames share their x axis."""

    title: str
    layers: Sequence[Layer]
    span: tuple[float, float] | None = None


def bars(x: Sequence[float], y: Sequence[float], name: str = "") -> Layer:
    return Layer("bars", x, y, name)


def line(x: Sequence[float], y: Sequence[float], name: str = "") -> Layer:
    return Layer("line", x, y, name)


def dots(x: Sequence[float], y: Sequence[float], name: str = "") -> Layer:
    return Layer("dots", x, y, name)


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


class _Scale:
    """From values to places on the picture."""

    def __init__(self, frame: Frame, height: int) -> None:
        xs = [value for layer in frame.layers for value in layer.x]
        ys = [value for layer in frame.layers for value in layer.y if isfinite(value)]
        self.boxed = any(layer.kind == "boxes" for layer in frame.layers)
        widths = [_step(layer) for layer in frame.layers if layer.kind in ("bars", "boxes")]
        pad = max(widths, default=0.0) / 2.0
        self.low_x, self.high_x = frame.span or (min(xs) - pad, max(xs) + pad)
        self.low_y, self.high_y = min([0.0, *ys]), max([0.0, *ys]) or 1.0
        self._height = height - TOP - BOTTOM

    def x(self, value: float) -> float:
        wide = (self.high_x - self.low_x) or 1.0
        return LEFT + (value - self.low_x) / wide * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (self.high_y - value) / (self.high_y - self.low_y) * self._height


def _step(layer: Layer) -> float:
    """From one bar or box to the next."""
    return (max(layer.x) - min(layer.x)) / (len(layer.x) - 1) if len(layer.x) > 1 else 1.0


def _frame(frame: Frame, height: int) -> str:
    at = _Scale(frame, height)
    base = at.y(0.0)
    parts = [
        f'<text x="{LEFT}" y="14" font-weight="bold">{escape(frame.title)}</text>',
        f'<path d="M{LEFT} {TOP}V{base:.1f}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT - 6}" y="{TOP + 8}" text-anchor="end">{at.high_y:.4g}</text>',
        f'<text x="{LEFT - 6}" y="{base:.1f}" text-anchor="end">0</text>',
    ]
    if not at.boxed:
        low, high = f"{at.low_x:.4g}", f"{at.high_x:.4g}"
        parts.append(f'<text x="{LEFT}" y="{base + 14:.1f}">{low}</text>')
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{base + 14:.1f}" text-anchor="end">{high}</text>'
        )
    for place, layer in enumerate(frame.layers):
        colour = COLOURS[place % len(COLOURS)]
        parts.append(_DRAWN[layer.kind](layer, at, colour))
        if layer.name:
            parts.append(
                f'<text x="{WIDTH - RIGHT}" y="{14 + 13 * place}" text-anchor="end" '
                f'fill="{colour}">{escape(layer.name)}</text>'
            )
    return "".join(parts)


def _bars(layer: Layer, at: _Scale, colour: str) -> str:
    step = at.x(_step(layer)) - at.x(0.0)
    parts = []
    for x, y in zip(layer.x, layer.y, strict=True):
        top = at.y(y)
        parts.append(
            f'<rect x="{at.x(x) - step / 2:.1f}" y="{top:.1f}" width="{step:.2f}" '
            f'height="{at.y(0.0) - top:.1f}" fill="{colour}" fill-opacity="0.5"/>'
        )
    return "".join(parts)


def _line(layer: Layer, at: _Scale, colour: str) -> str:
    points = " ".join(f"{at.x(x):.1f},{at.y(y):.1f}" for x, y in zip(layer.x, layer.y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def _dots(layer: Layer, at: _Scale, colour: str) -> str:
    return "".join(
        f'<circle cx="{at.x(x):.1f}" cy="{at.y(y):.1f}" r="1.2" fill="{colour}"/>'
        for x, y in zip(layer.x, layer.y, strict=True)
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


_DRAWN = {"bars": _bars, "line": _line, "dots": _dots, "boxes": _boxes}
