"""Trees of brokers: who is linked to whom, drawn from a seed.

A best-effort content network forwards along a tree, so a message has one way to each broker. What
an experiment cares about is how many brokers stand in that way:

| shape  | the tree                                                                 | diameter  |
|--------|--------------------------------------------------------------------------|-----------|
| line   | one behind the other                                                     | count - 1 |
| star   | all around the first                                                     | 2         |
| tree   | binary: broker n below broker n // 2                                     | 2 log2 n  |
| random | the shortest ways from one broker through a random connected graph, in   | small     |
|        | which a broker has four links on average                                 |           |
| long   | a spine as long as the wanted diameter, with branches, all of low degree | as wanted |

`long` stands for the networks of "Probabilistic FIFO Ordering in Publish/Subscribe Networks"
(section IV): 46 brokers of low degree with diameter 15, and 8 with diameter 3.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Literal

Shape = Literal["line", "star", "tree", "random", "long"]

# Neighbours of each broker, by number from 0.
Graph = list[list[int]]

# A broker of a long network has no more links than this, unless the shape leaves no other place.
LOW_DEGREE = 3


def tree(shape: Shape, count: int, diameter: int | None, seed: str) -> Graph:
    """The neighbours of each of `count` brokers; only `long` looks at `diameter`.

    >>> tree("line", 4, None, "")
    [[1], [0, 2], [1, 3], [2]]
    """
    if shape == "line":
        edges = [(number - 1, number) for number in range(1, count)]
    elif shape == "star":
        edges = [(0, number) for number in range(1, count)]
    elif shape == "tree":
        edges = [((number - 1) // 2, number) for number in range(1, count)]
    elif shape == "random":
        edges = _random(count, Random(f"{seed}/graph"))
    else:
        wanted = usual_diameter(count) if diameter is None else diameter
        edges = _long(count, wanted, Random(f"{seed}/graph"))
    return _graph(count, edges)


def usual_diameter(count: int) -> int:
    """A third of the brokers, as in the paper's two networks.

    >>> usual_diameter(46), usual_diameter(8), usual_diameter(2)
    (15, 3, 1)
    """
    return min(count - 1, max(2, round(count / 3)))


def impossible(count: int, diameter: int) -> str | None:
    """Why no tree of `count` nodes has this diameter, if so."""
    if diameter > count - 1:
        return f"{diameter} is more than {count} brokers in a line have, {count - 1}"
    if diameter < min(2, count - 1):
        return f"{diameter} is less than {count} brokers in a star have, {min(2, count - 1)}"
    return None


def parents(graph: Graph, root: int) -> list[int]:
    """For each node the next one on its way to `root`; the root's own is itself."""
    towards = [-1] * len(graph)
    towards[root] = root
    todo = deque([root])
    while todo:
        here = todo.popleft()
        for there in graph[here]:
            if towards[there] < 0:
                towards[there] = here
                todo.append(there)
    return towards


def _graph(count: int, edges: list[tuple[int, int]]) -> Graph:
    graph: Graph = [[] for _ in range(count)]
    for one, other in edges:
        graph[one].append(other)
        graph[other].append(one)
    return graph


def _random(count: int, rng: Random) -> list[tuple[int, int]]:
    """A random connected graph, of which the shortest ways from a random broker stay."""
    edges = [(rng.randrange(number), number) for number in range(1, count)]
    if count > 2:
        for _ in range(count):
            one, other = rng.sample(range(count), 2)
            edges.append((one, other))
    towards = parents(_graph(count, edges), rng.randrange(count))
    return [(there, here) for here, there in enumerate(towards) if here != there]


def _long(count: int, diameter: int, rng: Random) -> list[tuple[int, int]]:
    """Grow branches from a spine, none of them long enough to stretch the diameter."""
    edges = [(number - 1, number) for number in range(1, diameter + 1)]
    degree = [0] * count
    for one, other in edges:
        degree[one] += 1
        degree[other] += 1
    # How many more brokers fit in a row behind each one.
    room = [min(place, diameter - place) for place in range(diameter + 1)]
    for number in range(diameter + 1, count):
        places = [place for place in range(number) if room[place] > 0]
        free = [place for place in places if degree[place] < LOW_DEGREE]
        if not free:
            lowest = min(degree[place] for place in places)
            free = [place for place in places if degree[place] == lowest]
        place = rng.choice(free)
        edges.append((place, number))
        degree[place] += 1
        degree[number] = 1
        room.append(room[place] - 1)
    return edges
