"""Which topics belong together, and which of them a change of the order concerns.

A *part* is a set of topics that subscriptions have ever joined, directly or by way of others.

Rule 1: a part only grows. A walk says which topics it visits before it passes anybody (`Demand`),
        so at a change the ranking knows all parts of whatever is under way.
Rule 2: a change concerns a part as a whole, or not at all. It does not, if its topics keep their
        relative ranks *and* the way between them: then a message of either epoch takes the same
        steps, and nobody can tell which it is.

Why not topic by topic, where two topics needed together change places? Three schedules, all in
tests/protocols/total/test_concerned.py:

- the way. Order 1,2,3, somebody holds {1,3}; the new order is 2,1,3. On a chain an old event of 3
  travels 3-2-1, a new one 3-1 and overtakes it; an event of 1 made in between waits for the new one
  and the old one for it: a circle, and hold mode waits for ever. No two topics changed places.
- the cut. A manager that goes on has numbered events that have not yet passed higher managers.
  Raised to its counter, these would say "that event comes before mine", and the event itself, when
  it passes, the opposite. So topics that go on are not in the cut.
- the circle. Pairs {3,2} {2,4} {4,5} {5,1} {1,3} and the change from 1,2,3,4,5 to 5,4,1,2,3. An
  event u of 3 has passed 2 and is on its way to 1 all the time; 1, 2 and 3 keep their places and
  their way. u < c (on 2) < x (on 4), both of the old order and done; x < n (on 5) < m (on 1), both
  of the new one; m < u, as u reaches 1 last. Each pair is in order, and all together go round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def join(parts: dict[str, str], topics: Sequence[str]) -> None:
    """Put topics into one part, which is named after one of them. Topics without a name are alone.

    >>> parts = {}
    >>> join(parts, ["a", "b"]); join(parts, ["c", "d"]); join(parts, ["b", "d"])
    >>> sorted(parts.items())
    [('a', 'a'), ('b', 'a'), ('c', 'a'), ('d', 'a')]
    """
    names = {parts.get(topic, topic): None for topic in topics}
    name = min(names)
    if len(names) > 1:
        parts.update({topic: name for topic, known in parts.items() if known in names})
    parts.update(dict.fromkeys(topics, name))


def concerned(
    kind: str,
    parts: Mapping[str, str],
    old: tuple[Sequence[str], Mapping[str, str]],
    new: tuple[Sequence[str], Mapping[str, str]],
) -> list[str]:
    """The topics, sorted, whose part does not stay as it is; `old` and `new` are (order, parents).

    >>> order = ["a", "b", "c", "d"]
    >>> concerned("chain", {"a": "a", "b": "a"}, (order, {}), (["c", "a", "b", "d"], {}))
    []
    >>> concerned("chain", {"a": "a", "b": "a"}, (order, {}), (["a", "c", "b", "d"], {}))
    ['a', 'b']
    """
    if kind == "chain":
        moved = _torn(parts, old[0], new[0])
    else:
        moved = _reordered(parts, old[0], new[0])
    if kind == "forest":
        for topic, part in parts.items():
            if old[1].get(topic) != new[1].get(topic):
                moved[part] = None
    return sorted(topic for topic, part in parts.items() if part in moved)


def _torn(parts: Mapping[str, str], old: Sequence[str], new: Sequence[str]) -> dict[str, None]:
    """Parts that do not lie within one run of topics which both orders have, in a piece."""
    place = {topic: number for number, topic in enumerate(new)}
    runs: dict[str, int] = {}
    for rank, topic in enumerate(old):
        follows = rank > 0 and place[topic] == place[old[rank - 1]] + 1
        runs[topic] = runs[old[rank - 1]] if follows else rank
    first: dict[str, int] = {}
    return {
        part: None
        for topic, part in parts.items()
        if first.setdefault(part, runs[topic]) != runs[topic]
    }


def _reordered(parts: Mapping[str, str], old: Sequence[str], new: Sequence[str]) -> dict[str, None]:
    """Parts in which two topics change places."""
    before, after = _by_part(parts, old), _by_part(parts, new)
    return {part: None for part in before if before[part] != after[part]}


def _by_part(parts: Mapping[str, str], order: Sequence[str]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for topic in order:
        if topic in parts:
            members.setdefault(parts[topic], []).append(topic)
    return members
