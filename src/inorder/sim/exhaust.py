"""Every schedule of a tiny configuration, breadth first, merging equal states.

Breadth first, so the first violation found is the shortest. States are equal when all machines,
everything in flight and all histories are: merging loses nothing a judge could see.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from inorder.core.limits import EXPLORER_STATES_MAX
from inorder.sim.pool import Pool, Step

# Says what is wrong with a state (`final`: nothing can happen any more), or None.
Judge = Callable[[Pool, bool], str | None]


class Exhausted(Struct, frozen=True):
    """`complete` is False when the limit cut the search; `story` tells the shortest violation."""

    states: int
    final_states: int
    schedules: int
    complete: bool
    violation: str | None = None
    story: tuple[str, ...] = ()


def exhaust(
    pool: Pool,
    judge: Judge,
    *,
    timer_may_fire: Callable[[str], bool] = lambda timer: False,
    states_max: int = EXPLORER_STATES_MAX,
) -> Exhausted:
    """Try every order of steps. Timers fire only if asked for: most of them resend."""
    first = pool.fork()
    start = first.key()
    parents: dict[bytes, tuple[bytes, Step] | None] = {start: None}
    # How many schedules lead to a state: states come in order of depth, but not all ways to a
    # state are equally long, so counts are pushed along edges once the graph is known.
    edges: dict[bytes, list[bytes]] = {}
    frontier: deque[tuple[bytes, Pool]] = deque([(start, first)])
    finals = 0
    while frontier:
        key, state = frontier.popleft()
        steps = state.steps(timer_may_fire)
        if not steps:
            finals += 1
        problem = judge(state, not steps)
        if problem:
            story = _story(pool, parents, key)
            return Exhausted(len(parents), finals, 0, False, problem, tuple(story))
        targets = edges[key] = []
        for step in steps:
            after = state.fork()
            after.take(step)
            after_key = after.key()
            targets.append(after_key)
            if after_key not in parents:
                parents[after_key] = (key, step)
                if len(parents) > states_max:
                    return Exhausted(len(parents), finals, 0, False)
                frontier.append((after_key, after))
    return Exhausted(len(parents), finals, _count_schedules(edges, start), True)


def _story(pool: Pool, parents: dict[bytes, tuple[bytes, Step] | None], key: bytes) -> list[str]:
    steps: list[Step] = []
    while (origin := parents[key]) is not None:
        key, step = origin
        steps.append(step)
    told = pool.fork()
    lines: list[str] = []
    for step in reversed(steps):
        lines.extend(told.take(step))
    return lines


def _count_schedules(edges: dict[bytes, list[bytes]], start: bytes) -> int:
    """Paths from the start to states without a way on; 0 when the graph has a cycle."""
    waiting = dict.fromkeys(edges, 0)
    for targets in edges.values():
        for target in targets:
            waiting[target] += 1
    ways = dict.fromkeys(edges, 0)
    ways[start] = 1
    ready = deque(key for key, count in waiting.items() if count == 0)
    total = seen = 0
    while ready:
        key = ready.popleft()
        seen += 1
        if not edges[key]:
            total += ways[key]
        for target in edges[key]:
            ways[target] += ways[key]
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return total if seen == len(edges) else 0
