"""Virtual time: a heap of things to do.

Entries with equal times run in the order they were put in, so a run is a pure function of its
inputs. Nothing else in the simulator knows what time is.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

from inorder.core.limits import SIM_STEPS_AT_ONE_INSTANT_MAX


class Agenda:
    """What is still to happen, earliest first.

    >>> agenda = Agenda()
    >>> agenda.at(2.0, print, "second")
    >>> agenda.at(1.0, print, "first")
    >>> agenda.run()
    first
    second
    2
    >>> agenda.now
    2.0
    """

    __slots__ = ("_count", "_heap", "_watching", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...], bool]] = []
        self._count = 0
        self._watching = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def resting(self) -> bool:
        """Whether nothing is to happen but what only watches."""
        return len(self._heap) == self._watching

    def pending(self) -> list[tuple[Callable[..., object], tuple[Any, ...]]]:
        """What is still to happen, earliest first, without what only watches."""
        due = sorted((entry for entry in self._heap if not entry[-1]), key=lambda entry: entry[:2])
        return [(action, args) for _, _, action, args, _ in due]

    def at(self, when: float, action: Callable[..., object], *args: Any) -> None:
        """Do it then; a time that has passed means now, behind what is due already."""
        self._count += 1
        due = when if when > self.now else self.now
        heappush(self._heap, (due, self._count, action, args, False))

    def watch(self, delay_s: float, action: Callable[..., object], *args: Any) -> None:
        """Do it after a while, but let the world come to rest without it."""
        self._count += 1
        self._watching += 1
        heappush(self._heap, (self.now + delay_s, self._count, action, args, True))

    def after(self, delay_s: float, action: Callable[..., object], *args: Any) -> None:
        self.at(self.now + delay_s, action, *args)

    def run(self, until: float = inf) -> int:
        """Do everything due up to and including `until`; returns how many things that was."""
        heap = self._heap
        steps = steps_now = 0
        now = self.now
        while heap and heap[0][0] <= until:
            when, _, action, args, watching = heappop(heap)
            self._watching -= watching
            if when == now:
                steps_now += 1
                assert steps_now < SIM_STEPS_AT_ONE_INSTANT_MAX, f"time stands still at {now}"
            else:
                steps_now = 0
                self.now = now = when
            action(*args)
            steps += 1
        if until != inf and until > self.now:
            self.now = until
        return steps
