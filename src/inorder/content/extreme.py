"""The least or the greatest of values that come and go: a heap that forgets lazily.

Each different value is in the heap once, with a count of how many hold it. A value that nobody
holds stays until it comes to the top, or until such values are the majority. So a change costs
about as much as a look into a dictionary, whatever the number of values.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from inorder.content.value import Kind, Value, plain


class _Falling(str):
    """Text that sorts from the last to the first; a number does that by its sign."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


class Extreme:
    """Values of one kind.

    >>> top = Extreme(True, "number")
    >>> top.add(3), top.add(7), top.add(7), top.remove(7), top.value()
    (None, None, None, None, 7)
    >>> top.remove(7), top.value()
    (None, 3)
    """

    __slots__ = ("_counts", "_dead", "_heap", "_is_truth", "_negates", "_reverses")

    def __init__(self, greatest: bool, kind: Kind) -> None:
        self._negates = greatest and kind != "text"
        self._reverses = greatest and kind == "text"
        self._is_truth = kind == "truth"
        self._counts: dict[Any, int] = {}
        self._heap: list[Any] = []
        self._dead = 0

    def add(self, value: Any) -> None:
        if self._negates:
            value = -value
        elif self._reverses:
            value = _Falling(value)
        count = self._counts.get(value)
        if count is None:
            self._counts[value] = 1
            heappush(self._heap, value)
        else:
            self._counts[value] = count + 1
            self._dead -= not count

    def remove(self, value: Any) -> None:
        if self._negates:
            value = -value
        elif self._reverses:
            value = _Falling(value)
        self._counts[value] = count = self._counts[value] - 1
        if not count:
            self._dead += 1
            if self._dead > 64 and 2 * self._dead > len(self._heap):
                self._tidy()

    def value(self) -> Value:
        """The extreme one; there must be one."""
        while not self._counts[self._heap[0]]:
            del self._counts[heappop(self._heap)]
            self._dead -= 1
        top = -self._heap[0] if self._negates else self._heap[0]
        return bool(top) if self._is_truth else plain(top)

    def _tidy(self) -> None:
        self._counts = {value: count for value, count in self._counts.items() if count}
        self._heap = list(self._counts)
        heapify(self._heap)
        self._dead = 0
