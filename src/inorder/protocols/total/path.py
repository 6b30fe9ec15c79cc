"""Which way a stamp goes up: one fixed line for everybody, so that nobody overtakes.

Rule 1: `next` depends on where the message is and what it needs, not on who sent it.
Rule 2: on `chain` and `forest`, two messages that meet at a topic go on together from there.

Theory. Let every message go on to the root as a ghost. Links keep the order of any two messages
from the first topic they share, so the order of arrival at the root is a total order of all events
and walks, and the processing order of every manager agrees with it. Hence all stamps are
consistent with one acyclic order. The papers visit only the topics of the group (`sg`); then two
stamps can overtake each other on different routes and wait in a circle (S8, S9).

- `chain`: the topic order itself. Topics the stamp does not need are passed by, and those of one
  home are passed in one step.
- `forest`: every topic has one parent of higher rank, and co-subscribed topics lie on one line. It
  is the elimination tree of the co-subscription graph: shorter ways, the same argument.
- `sg`: straight to the next topic of the group, for the papers' figures in tag mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from inorder.protocols.total.directory import Directory


class Path:
    """The ways up under one order of topics, highest rank first."""

    def __init__(
        self,
        kind: str,
        order: Sequence[str],
        directory: Directory,
        parents: Mapping[str, str] | None = None,
    ) -> None:
        self.order = tuple(order)
        # Rank 0 is the highest: a larger number is lower.
        self.rank = {topic: rank for rank, topic in enumerate(order)}
        self.parents = dict(parents or {})
        self._kind = kind
        self._directory = directory
        # The first rank above the run of neighbours that share a topic's home.
        self._exit: list[int] = []
        home = ""
        start = 0
        for rank, topic in enumerate(self.order):
            if directory.home(topic) != home:
                home = directory.home(topic)
                start = rank
            self._exit.append(start - 1)

    def upwards(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Topics in the order a message visits them: lowest rank first."""
        return tuple(sorted(topics, key=self.rank.__getitem__, reverse=True))

    def next(self, at: str, target: str) -> str:
        """The topic after `at` on the way to `target`."""
        rank, goal = self.rank[at], self.rank[target]
        assert goal < rank, f"{target} is not above {at}"
        if self._kind == "sg":
            return target
        if self._kind == "forest":
            assert at in self.parents, f"{target} is not on the line of {at}"
            return self.parents[at]
        leave = self._exit[rank]
        return target if goal > leave else self.order[leave]

    def covers(self, topics: Iterable[str]) -> bool:
        """Whether these topics lie on one line, so that one message can visit them all."""
        if self._kind != "forest":
            return True
        way = self.upwards(topics)
        wanted = len(way) - 1
        at = way[0]
        for topic in way[1:]:
            while at != topic:
                if at not in self.parents or self.rank[at] < self.rank[topic]:
                    return False
                at = self.parents[at]
            wanted -= 1
        return wanted == 0


def path_of(
    kind: str,
    order: tuple[str, ...],
    directory: Directory,
    parents: tuple[tuple[str, str], ...] = (),
) -> Path:
    """One path for all stages of an equal order; `parents` as (topic, parent) pairs.

    The first order is known by its directory: to look up a thousand names a thousand times would
    cost more than all the rest of building a thousand stages.
    """
    if order is directory.topics and not parents:
        return _first_path(kind, directory)
    return _later_path(kind, order, directory, parents)


@lru_cache(maxsize=16)
def _first_path(kind: str, directory: Directory) -> Path:
    return Path(kind, directory.topics, directory)


@lru_cache(maxsize=64)
def _later_path(
    kind: str, order: tuple[str, ...], directory: Directory, parents: tuple[tuple[str, str], ...]
) -> Path:
    return Path(kind, order, directory, dict(parents))


def forest(order: Sequence[str], sets: Iterable[Sequence[str]]) -> dict[str, str]:
    """Parents such that each of `sets` lies on one line: the elimination tree.

    From the lowest rank up, a topic is taken out; its higher neighbours become neighbours of each
    other, and the lowest of them is its parent.

    >>> forest(["a", "b", "c", "d"], [["a", "c"], ["b", "c"]])
    {'c': 'b', 'b': 'a'}
    """
    rank = {topic: number for number, topic in enumerate(order)}
    higher: dict[str, dict[str, None]] = {}
    for topics in sets:
        line = sorted(topics, key=rank.__getitem__)
        # Neighbours one rank apart would do after elimination; all of them is simpler to trust.
        for number, topic in enumerate(line):
            higher.setdefault(topic, {}).update(dict.fromkeys(line[:number]))
    parents: dict[str, str] = {}
    for topic in reversed(order):
        above = higher.get(topic)
        if above:
            parent = max(above, key=rank.__getitem__)
            parents[topic] = parent
            rest = {other: None for other in above if other != parent}
            higher.setdefault(parent, {}).update(rest)
    return parents
