"""Virtual time: a heap of things to do.

Entries with equal times run in the order they were put in, so a run is a pure function of its
inputs. Nothing else in the simulator knows what time is.

Things that are put in one after the other for the same time take one place of the heap. Where all
delays are the same, thousands of messages are due at one instant, and the heap stays small.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

from inorder.core.limits import SIM_STEPS_AT_ONE_INSTANT_MAX

# When, the number of the place in the heap, what to do, with what, and whether it only watches.
Entry = tuple[float, int, Callable[..., object], tuple[Any, ...], bool]


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

    __slots__ = ("_behind", "_count", "_heap", "_last_due", "_watching", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[Entry] = []
        # By place what comes behind the entry that stands there, and is due at the same time.
        self._behind: dict[int, deque[Entry]] = {}
        # The newest place, and what is due there; when it has been left, a time that is never due.
        self._count = 0
        self._last_due = -1.0
        self._watching = 0

    def __len__(self) -> int:
        return len(self._heap) + sum(len(entries) for entries in self._behind.values())

    @property
    def resting(self) -> bool:
        """Whether nothing is to happen but what only watches."""
        return len(self) == self._watching

    def pending(self) -> list[tuple[Callable[..., object], tuple[Any, ...]]]:
        """What is still to happen, earliest first, without what only watches."""
        due: list[Entry] = []
        for first in sorted(self._heap, key=lambda entry: entry[:2]):
            due += [first, *self._behind.get(first[1], ())]
        return [(action, args) for _, _, action, args, watching in due if not watching]

    def at(self, when: float, action: Callable[..., object], *args: Any) -> None:
        """Do it then; a time that has passed means now, behind what is due already."""
        due = when if when > self.now else self.now
        if due == self._last_due:
            self._put_behind((due, self._count, action, args, False))
            return
        self._count += 1
        self._last_due = due
        heappush(self._heap, (due, self._count, action, args, False))

    def _put_behind(self, entry: Entry) -> None:
        behind = self._behind.get(entry[1])
        if behind is None:
            self._behind[entry[1]] = deque((entry,))
        else:
            behind.append(entry)

    def watch(self, delay_s: float, action: Callable[..., object], *args: Any) -> None:
        """Do it after a while, but let the world come to rest without it."""
        self._count += 1
        self._watching += 1
        self._last_due = self.now + delay_s
        heappush(self._heap, (self._last_due, self._count, action, args, True))

    def after(self, delay_s: float, action: Callable[..., object], *args: Any) -> None:
        self.at(self.now + delay_s, action, *args)

    def run(self, until: float = inf) -> int:
        """Do everything due up to and including `until`; returns how many things that was."""
        heap, all_behind = self._heap, self._behind
        steps = steps_now = 0
        now = self.now
        while heap and heap[0][0] <= until:
            when, place, action, args, watching = heap[0]
            if all_behind and place in all_behind:
                # The next one has the same time and place, so the heap stays one.
                behind = all_behind[place]
                heap[0] = behind.popleft()
                if not behind:
                    del all_behind[place]
            else:
                heappop(heap)
                if place == self._count:
                    self._last_due = -1.0
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
