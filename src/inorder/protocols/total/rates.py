"""How busy topics are, and the order they deserve.

Rule 1: rates are weights: events of a topic, old ones counting half after HALF_LIFE events *a
        topic* of the whole order. Counting seconds instead, a thousand topics that publish four
        events a second together could never be told apart.
Rule 2: everybody's counters are looked at together (`Ready`), so the ranking knows how many events
        the whole order had in between. A manager need not know: it says that its rate has moved,
        by its own clock, which only decides when to look, never what comes out.
Rule 3: a new order must be worth a stop: WORTH times fewer steps an event, and enough events seen:
        FIRST a topic before the first change, LATER a topic between two. So noise does not move
        topics: an order made of N events looks better to these N events than it is.

Example: 40 topics whose weights follow Zipf's law come to a tenth of the best order's steps in one
change or two. Topics of one home stay together: a hop inside a home costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from inorder.protocols.total.directory import Directory

# Events a topic of the whole order after which an event counts half.
HALF_LIFE = 4
# What the old order must cost, in steps of the new one.
WORTH = 1.3
# Events a topic before the first change, and between two. The longer one waits, the better is the
# second order, and the longer all go by the first (docs/total.md has the figures).
FIRST = 1
LATER = 2.25


class Rates(Struct):
    """What the ranking knows of its topics."""

    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    # Events since the last change for the rates' sake, and whether there was one.
    seen: int = 0
    changed: bool = False

    def look(self, counts: Mapping[str, int]) -> None:
        """All counters at about one time."""
        news = {topic: count - self.counts.get(topic, 0) for topic, count in counts.items()}
        events = sum(news.values())
        self.seen += events
        aged: float = 0.5 ** (events / (HALF_LIFE * len(counts)))
        for topic, new in news.items():
            self.weights[topic] = self.weights.get(topic, 0.0) * aged + new
        self.counts.update(counts)

    def better(self, order: Sequence[str], directory: Directory) -> tuple[str, ...]:
        """The order to change to; none if it is not worth it."""
        if self.seen < len(order) * (LATER if self.changed else FIRST):
            return ()
        chosen = self._deserved(order, directory)
        now, then = (self._steps(each, directory) for each in (order, chosen))
        return chosen if now > WORTH * then else ()

    def changes(self) -> None:
        """Such an order was installed."""
        self.seen = 0
        self.changed = True

    def _deserved(self, order: Sequence[str], directory: Directory) -> tuple[str, ...]:
        """Busy homes first, in them busy topics first; equals stay as they are."""
        weight = self.weights
        homes: dict[str, list[str]] = {}
        for topic in order:
            homes.setdefault(directory.home(topic), []).append(topic)
        busy = sorted(homes.values(), key=lambda some: -sum(weight[topic] for topic in some))
        return tuple(t for some in busy for t in sorted(some, key=lambda topic: -weight[topic]))

    def _steps(self, order: Sequence[str], directory: Directory) -> float:
        """Hops up to the top, of every event counted."""
        hops = 0
        steps = 0.0
        below = ""
        for topic in order:
            home = directory.home(topic)
            hops += bool(below) and home != below
            below = home
            steps += hops * self.weights[topic]
        return steps
