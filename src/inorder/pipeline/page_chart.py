"""A latency histogram as a figure: bars by bin, with the median and p99 they suggest."""

from __future__ import annotations

from math import inf, isfinite

from inorder.pipeline.page_words import label, name, number, plural, text

WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 10, 10, 30, 44
BARS_MAX = 48

MEANS = {
    "network": "publish to receive",
    "hold": "receive to deliver",
    "end to end": "publish to deliver",
}
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def unit_of(span: float) -> tuple[float, str]:
    """The largest unit in which `span` seconds is at least 1.

    >>> unit_of(0.25), unit_of(90.0), unit_of(0.0)
    ((0.001, 'ms'), (1.0, 's'), (1.0, 's'))
    """
    if span <= 0:
        return UNITS[0]
    return next((unit for unit in UNITS if span >= unit[0]), UNITS[-1])


def quantile(edges: list[float], counts: list[int], share: float) -> tuple[float, float] | None:
    """The value below which `share` of the samples lie, and its place counted in bins."""
    wanted, seen = share * sum(counts), 0
    if not wanted:
        return None
    for at, count in enumerate(counts):
        if count and seen + count >= wanted:
            inside = (wanted - seen) / count
            low, high = edges[at], edges[at + 1]
            if not isfinite(low) or not isfinite(high):
                return (low if isfinite(low) else high), at + inside
            return low + (high - low) * inside, at + inside
        seen += count
    return None


def histogram_figure(key: str, edges: list[float], counts: list[int], at: int) -> str:
    assert len(edges) == len(counts) + 1, "a histogram has one edge more than bins"
    title = label(key)
    means = f" <small>{MEANS[title]}</small>" if title in MEANS else ""
    head = f"<h3>{name(title[:1].upper() + title[1:], 40)}{means}</h3>"
    if not sum(counts):
        return f'<figure class="chart">\n{head}\n<p class="none">No samples.</p>\n</figure>'
    edges, counts = _fold(*_trim(edges, counts))
    found = [
        (word, quantile(edges, counts, share)) for word, share in (("median", 0.5), ("p99", 0.99))
    ]
    said = [(word, _say(spot[0], edges), spot[1]) for word, spot in found if spot]
    caption = ", ".join(f"{word} ≈ {amount}" for word, amount, _ in said)
    samples = f"{plural(sum(counts), 'sample')}, tallest bar {number(max(counts))}"
    stems = [(word, place) for word, _, place in said]
    svg = _svg(at, f"{title}: {caption}", edges, counts, stems)
    return (
        f'<figure class="chart">\n{head}\n{svg}\n'
        f"<figcaption><strong>{text(caption)}</strong><br>{text(samples)}."
        f"</figcaption>\n</figure>"
    )


def _svg(
    at: int,
    title: str,
    edges: list[float],
    counts: list[int],
    stems: list[tuple[str, float]],
) -> str:
    size, unit = unit_of(max((abs(edge) for edge in edges if isfinite(edge)), default=0.0))
    slot = (WIDTH - LEFT - RIGHT) / len(counts)
    floor = HEIGHT - BOTTOM
    bars: list[str] = []
    for place, count in enumerate(counts):
        high = (floor - TOP) * count / max(counts)
        high = max(high, 1.0) if count else 0.0
        span = f"{_edge(edges[place], size)} to {_edge(edges[place + 1], size)} {unit}"
        bars.append(
            f'<rect class="bar" x="{LEFT + place * slot + 0.5:.1f}" y="{floor - high:.1f}" '
            f'width="{max(slot - 1, 0.5):.1f}" height="{high:.1f}">'
            f"<title>{span}: {number(count)}</title></rect>"
        )
    parts = [
        f'<svg class="histogram" role="img" aria-labelledby="chart{at}-title" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" xmlns="http://www.w3.org/2000/svg">',
        f'<title id="chart{at}-title">{text(title)}</title>',
        *bars,
        *_stems(stems, slot, floor),
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>',
        *_ticks(edges, slot, floor, size, unit),
        "</svg>",
    ]
    return "\n".join(parts)


def _stems(said: list[tuple[str, float]], slot: float, floor: float) -> list[str]:
    """Median and p99 as labelled lines; their words lean apart when the lines stand close."""
    stems: list[str] = []
    for word, place in said:
        x = LEFT + place * slot
        anchor = "start" if x < WIDTH / 2 else "end"
        top = TOP - 6 if word == "median" else TOP - 18
        shift = 4 if anchor == "start" else -4
        stems.append(
            f'<line class="stem" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 8}" y2="{floor}"/>'
            f'<text class="tick" x="{x + shift:.1f}" y="{top}" text-anchor="{anchor}">{word}</text>'
        )
    return stems


def _ticks(edges: list[float], slot: float, floor: float, size: float, unit: str) -> list[str]:
    last = len(edges) - 1
    step = -(-last // 4)
    ticks: list[str] = []
    for place in range(0, last + 1, step):
        x = LEFT + place * slot
        anchor = "start" if place == 0 else "end" if place == last else "middle"
        ticks.append(
            f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 4}"/>'
            f'<text class="tick" x="{x:.1f}" y="{floor + 17}" text-anchor="{anchor}">'
            f"{_edge(edges[place], size)}</text>"
        )
    ticks.append(
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{unit} →</text>'
    )
    return ticks


def _trim(edges: list[float], counts: list[int]) -> tuple[list[float], list[int]]:
    """Without the empty bins at either end."""
    filled = [at for at, count in enumerate(counts) if count]
    first, last = filled[0], filled[-1]
    return edges[first : last + 2], counts[first : last + 1]


def _fold(edges: list[float], counts: list[int]) -> tuple[list[float], list[int]]:
    """Neighbouring bins joined until the bars can be told apart."""
    by = -(-len(counts) // BARS_MAX)
    folded = [sum(counts[at : at + by]) for at in range(0, len(counts), by)]
    return [*edges[:-1:by], edges[-1]], folded


def _edge(edge: float, size: float) -> str:
    if not isfinite(edge):
        return "∞" if edge == inf else "−∞"
    return f"{edge / size:,.3g}" if abs(edge / size) < 1000 else f"{edge / size:,.0f}"


def _say(amount: float, edges: list[float]) -> str:
    size, unit = unit_of(abs(amount))
    open_end = edges[-1] == inf and amount == edges[-2]
    return f"{'over ' if open_end else ''}{_edge(amount, size)} {unit}"
