"""Makes a failing story small: first fewer faults, then fewer nodes, then fewer publications.

What is left out is simply not done; messages sent at the time they were sent in the whole story
keep the delay they had there. Where the two run apart delays are drawn anew: a smaller story is
tried with several lucks, and counts when one of them still breaks the same promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import structs

from inorder.sim.workload import Publication, Story

Item = TypeVar("Item")

# A shrink that takes longer than this many runs has become small enough.
SHRINK_RUNS_MAX = 5000
LUCKS = 8


def fixed(story: Story) -> Story:
    """A story that can be told many times, the first time remembering its delays."""
    publications = {name: tuple(made) for name, made in story.publications.items()}
    updates = {name: tuple(made) for name, made in story.updates.items()}
    return structs.replace(story, publications=publications, updates=updates, delays={})


def shrink(story: Story, fails: Callable[[Story], bool]) -> tuple[Story, int]:
    """The smallest story that still fails, and how many runs it took to find."""
    best = story
    runs = 0

    def attempt(candidate: Story) -> bool:
        nonlocal best, runs
        for luck in dict.fromkeys((best.luck, *range(LUCKS))):
            if runs >= SHRINK_RUNS_MAX:
                return False
            runs += 1
            lucky = structs.replace(candidate, luck=luck)
            if fails(lucky):
                best = lucky
                return True
        return False

    while True:
        before = _size(best)
        fewest(best.faults, lambda kept: attempt(structs.replace(best, faults=tuple(kept))))
        fewest(_nodes(best), lambda kept: attempt(_only_nodes(best, kept)))
        fewest(best.operations, lambda kept: attempt(structs.replace(best, operations=kept)))
        fewest(_flat(best), lambda kept: attempt(_with_publications(best, kept)))
        if _size(best) == before or runs >= SHRINK_RUNS_MAX:
            return best, runs


def fewest(items: Sequence[Item], works: Callable[[list[Item]], bool]) -> list[Item]:
    """Leave out as much as possible: halves first, then ever smaller pieces, then single items.

    >>> fewest(range(100), lambda kept: 17 in kept and 60 in kept)
    [17, 60]
    """
    kept = list(items)
    piece = len(kept)
    while piece >= 1:
        start = 0
        while start < len(kept):
            without = kept[:start] + kept[start + piece :]
            if works(without):
                kept = without
            else:
                start += piece
        piece //= 2
    return kept


def _size(story: Story) -> int:
    return len(story.faults) + len(story.operations) + len(_flat(story))


def _nodes(story: Story) -> list[str]:
    acting = {operation.node for operation in story.operations}
    return sorted(acting | {name for name, made in story.publications.items() if made})


def _only_nodes(story: Story, kept: Sequence[str]) -> Story:
    publications = {name: made if name in kept else () for name, made in story.publications.items()}
    operations = [operation for operation in story.operations if operation.node in kept]
    updates = {name: made for name, made in story.updates.items() if name in kept}
    return structs.replace(story, publications=publications, operations=operations, updates=updates)


def _flat(story: Story) -> list[tuple[str, Publication]]:
    return [(name, item) for name, made in story.publications.items() for item in made]


def _with_publications(story: Story, kept: Sequence[tuple[str, Publication]]) -> Story:
    publications: dict[str, tuple[Publication, ...]] = dict.fromkeys(story.publications, ())
    for name, publication in kept:
        publications[name] = (*publications[name], publication)
    return structs.replace(story, publications=publications)
