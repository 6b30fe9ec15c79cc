"""A space-time picture: lanes from top to bottom, time to the right, a line per delivery.

Red alone never carries the news: a crossing delivery is also thicker, a diamond, and named in
words at the right end of its lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inorder.pipeline.page_layout import Axis, Labels, fewest, lanes_of, timed
from inorder.pipeline.page_words import name, plural, shorten, text

if TYPE_CHECKING:
    from inorder.pipeline.page import Mark, SpaceTime

WIDTH = 920
LEFT, RIGHT, RIGHT_WITH_ORDER = 132, 24, 186
LANE, GROUP, TOP, BOTTOM = 58, 30, 46, 48

ID_LONGEST = 14
# Beyond this many marks the other lines fade, and of their deliveries only tooltips speak.
DENSE = 48
# Crossing events are told apart by their dashes; the fourth starts again.
DASHES = ("", "9 4", "2 4", "12 4 2 4")


def _sample(body: str) -> str:
    return (
        '<svg class="sample" aria-hidden="true" viewBox="0 0 34 14" '
        f'xmlns="http://www.w3.org/2000/svg">{body}</svg>'
    )


def _shape(kind: str, x: float, y: float, hollow: bool, crossing: bool) -> str:
    classes = f"{kind}{' hollow' if hollow else ''}{' cross' if crossing else ''}"
    if kind == "pub":
        return f'<rect class="{classes}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    if crossing:
        points = f"{x:.1f},{y - 8:.1f} {x + 8:.1f},{y:.1f} {x:.1f},{y + 8:.1f} {x - 8:.1f},{y:.1f}"
        return f'<polygon class="{classes}" points="{points}"/>'
    return f'<circle class="{classes}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def _legend() -> str:
    line = '<line class="way{}" x1="1" x2="33" y1="7" y2="7"/>'
    items = (
        (_shape("pub", 17, 7, False, False), "publication"),
        (line.format("") + _shape("got", 17, 7, False, False), "delivery"),
        (line.format("") + _shape("got", 17, 7, True, False), "delivery tagged as late (hollow)"),
        (
            line.format(" cross") + _shape("got", 17, 7, False, True),
            "crossing delivery (red, thick, diamond; dashes tell events apart)",
        ),
    )
    listed = "".join(f"<li>{_sample(body)} {words}</li>" for body, words in items)
    return f'<ul class="legend">{listed}</ul>'


LEGEND = _legend()


def picture_figure(picture: SpaceTime, at: int) -> str:
    drawing = _Drawing(picture, at)
    notes = f' <span class="note">{text(drawing.notes())}</span>' if drawing.notes() else ""
    caption = name(picture.caption or "A violation", 300)
    if not drawing.marks():
        body = '<p class="none">The picture holds no marks.</p>'
    else:
        # Focusable, so that a keyboard can scroll it where the screen is narrow.
        body = (
            f'<div class="scroll" tabindex="0" role="group" aria-label="Space-time picture {at}">'
            f"\n{drawing.svg()}\n</div>"
        )
    return (
        f'<figure class="picture">\n<figcaption><b>{at}.</b> {caption}{notes}</figcaption>\n'
        f"{body}\n</figure>"
    )


class _Drawing:
    """One picture's lanes, marks and scale, decided once and then drawn."""

    def __init__(self, picture: SpaceTime, at: int) -> None:
        self._picture, self._at = picture, at
        pubs, got = timed(picture.publications), timed(picture.deliveries)
        self._publishers, self._subscribers, self._lanes_left = lanes_of(picture.lanes, pubs, got)
        kept = {*self._publishers, *self._subscribers}
        news = [mark.at for mark in got if mark.crossing]
        self._got = fewest([mark for mark in got if mark.lane in kept], news)
        self._pubs = fewest([mark for mark in pubs if mark.lane in kept], news)
        everything = len(picture.publications) + len(picture.deliveries)
        self._marks_left = everything - len(self._pubs) - len(self._got)
        crossing = [mark.event for mark in self._got if mark.crossing]
        self._dash = {event: DASHES[n % 4] for n, event in enumerate(dict.fromkeys(crossing))}
        self._dense = len(self._pubs) + len(self._got) > DENSE
        right = RIGHT_WITH_ORDER if crossing else RIGHT
        self._axis = Axis([m.at for m in self.marks()], LEFT + 12, WIDTH - right - 12)
        self._right = WIDTH - right
        self._y = self._heights()

    def marks(self) -> list[Mark]:
        return [*self._pubs, *self._got]

    def notes(self) -> str:
        parts = [plural(self._lanes_left, "lane")] if self._lanes_left else []
        if self._marks_left:
            parts.append(plural(self._marks_left, "mark"))
        return f"Not drawn: {', '.join(parts)}." if parts else ""

    def svg(self) -> str:
        key, floor = f"picture{self._at}", max(self._y.values()) + 40
        parts = [
            f'<svg class="spacetime{" dense" if self._dense else ""}" role="img" '
            f'aria-labelledby="{key}-title" '
            f'aria-describedby="{key}-desc" viewBox="0 0 {WIDTH} {floor + BOTTOM - 8:.0f}" '
            'xmlns="http://www.w3.org/2000/svg">',
            f'<title id="{key}-title">{text(self._picture.caption or "A violation")}</title>',
            f'<desc id="{key}-desc">{text(self._describe())}</desc>',
            *self._draw_lanes(),
            *self._axis.draw(floor, TOP - 8, in_seconds=bool(self._pubs)),
            *self._draw_ways(),
            *self._draw_marks(),
            *self._draw_orders(),
            "</svg>",
        ]
        return "\n".join(parts)

    def _heights(self) -> dict[str, float]:
        y, heights = float(TOP), dict[str, float]()
        for lane in self._publishers:
            heights[lane] = y = y + (LANE if heights else 0)
        y += (LANE + GROUP) if heights else 0
        for place, lane in enumerate(self._subscribers):
            heights[lane] = y + place * LANE
        return heights

    def _draw_lanes(self) -> list[str]:
        parts: list[str] = []
        for lane, y in self._y.items():
            parts.append(
                f'<line class="lane" x1="{LEFT}" x2="{self._right}" y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<text class="who" x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">'
                f"{_short(lane, 15)}</text>"
            )
        for word, group in (("publishers", self._publishers), ("subscribers", self._subscribers)):
            if group:
                y = self._y[group[0]] - 30
                parts.append(
                    f'<text class="group" x="{LEFT - 12}" y="{y + 8:.1f}" text-anchor="end">'
                    f"{word}</text>"
                )
        return parts

    def _draw_ways(self) -> list[str]:
        """Lines from publication to delivery, the crossing ones last and so on top."""
        born: dict[str, Mark] = {}
        for pub in self._pubs:
            born.setdefault(pub.event, pub)
        parts: list[str] = []
        for mark in sorted(self._got, key=lambda mark: mark.crossing):
            if (start := born.get(mark.event)) is not None:
                dash = self._dash.get(mark.event) if mark.crossing else ""
                style = f' stroke-dasharray="{dash}"' if dash else ""
                parts.append(
                    f'<line class="way{" cross" if mark.crossing else ""}"{style} '
                    f'x1="{self._axis.x(start.at):.1f}" y1="{self._y[start.lane]:.1f}" '
                    f'x2="{self._axis.x(mark.at):.1f}" y2="{self._y[mark.lane]:.1f}"/>'
                )
        return parts

    def _draw_marks(self) -> list[str]:
        labels = Labels(LEFT, self._right)
        shapes: list[str] = []
        words: list[str] = []
        drawn = [("pub", m) for m in self._pubs] + [("got", m) for m in self._got]
        for kind, mark in sorted(drawn, key=lambda pair: not self._is_news(pair[1])):
            x, y = self._axis.x(mark.at), self._y[mark.lane]
            shape = _shape(kind, x, y, not mark.in_order, mark.crossing)
            shapes.append(f"<g><title>{text(self._tell(kind, mark))}</title>{shape}</g>")
            if self._dense and kind == "got" and not mark.crossing:
                continue
            up = kind == "pub"
            spot = labels.place(f"{mark.lane}\n{kind}", x, min(len(mark.event), ID_LONGEST))
            if spot:
                level, middle = spot
                drop = -10 - 12 * level if up else 19 + 12 * level
                news = " cross" if mark.crossing else " news" if self._is_news(mark) else ""
                words.append(
                    f'<text class="id{news}" x="{middle:.1f}" y="{y + drop:.1f}" '
                    f'text-anchor="middle">{_short(mark.event, ID_LONGEST)}</text>'
                )
        return shapes[::-1] + words[::-1]

    def _draw_orders(self) -> list[str]:
        """At the right end of a lane: its crossing events in the order delivered, in words."""
        parts: list[str] = []
        for lane in self._subscribers:
            ids = [mark.event for mark in self._got if mark.lane == lane and mark.crossing]
            if len(ids) < 2:
                continue
            more = f" (+{len(ids) - 2})" if len(ids) > 2 else ""
            lines = [(-3, f"{_short(ids[0], 18)} →"), (11, f"{_short(ids[1], 18)}{more}")]
            if len(ids[0]) + len(ids[1]) <= 16:
                lines = [(4, f"{text(ids[0])} → {text(ids[1])}{more}")]
            for drop, line in lines:
                parts.append(
                    f'<text class="order cross" x="{self._right + 14}" '
                    f'y="{self._y[lane] + drop:.1f}">{line}</text>'
                )
        if parts:
            y = self._y[self._subscribers[0]] - 22
            head = f'<text class="group" x="{self._right + 14}" y="{y:.1f}">order delivered</text>'
            parts.insert(0, head)
        return parts

    def _is_news(self, mark: Mark) -> bool:
        return mark.crossing or mark.event in self._dash

    def _tell(self, kind: str, mark: Mark) -> str:
        verb = "publishes" if kind == "pub" else "delivers"
        late = "" if mark.in_order else ", tagged as late"
        crossing = ", crossing" if mark.crossing else ""
        return f"{mark.lane} {verb} {mark.event} at {mark.at:.9g}{late}{crossing}"

    def _describe(self) -> str:
        said: list[str] = []
        for lane in self._subscribers:
            ids = [
                f"{shorten(m.event, 40)}{' (crossing)' if m.crossing else ''}"
                f"{' (tagged as late)' if not m.in_order else ''}"
                for m in self._got
                if m.lane == lane
            ]
            if ids:
                said.append(f"{lane} delivers {', then '.join(ids[:12])}.")
        return " ".join(said) or "Publications only."


def _short(full: str, longest: int) -> str:
    """An SVG text's content: shortened, with the whole in a tooltip."""
    if len(full) <= longest:
        return text(full)
    return f"<tspan><title>{text(full)}</title>{text(shorten(full, longest))}</tspan>"
