"""Who waits for which.

An event rests on (a, 3) and (b, 2), and neither has come. It waits for (a, 3). When (a, 3) comes,
the event is handed back, and its owner finds that it has to wait again, for (b, 2).

Rule 1: an item waits for one key at a time. So what comes costs as much as there are items that
        waited for just this, however many wait for something else.
Rule 2: items come back in the order in which they began to wait.
Rule 3: the index knows nothing of what has come: that is for its owner, who may well keep no state
        of it and build it again from the items.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
I = TypeVar("I")  # noqa: E741 - an item


class Waiting(Generic[K, I]):
    """
    >>> waiting: Waiting[str, int] = Waiting()
    >>> waiting.wait(1, "a"), waiting.wait(2, "b"), waiting.wait(3, "a")
    (None, None, None)
    >>> waiting.release("a"), waiting.release("a"), len(waiting)
    ([1, 3], [], 1)
    """

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[K, list[I]] = {}

    def __len__(self) -> int:
        """How many keys are waited for."""
        return len(self._items)

    def wait(self, item: I, key: K) -> None:
        """This item waits until the key is released."""
        items = self._items.get(key)
        if items is None:
            self._items[key] = [item]
        else:
            items.append(item)

    def release(self, key: K) -> list[I]:
        """The items that waited for this key; none of them waits any more."""
        return self._items.pop(key, [])

    # For a state that has the index in it.

    def packed(self) -> list[tuple[K, list[I]]]:
        """Row by row, in the order of the keys."""
        return sorted(self._items.items(), key=lambda row: cast(Any, row[0]))

    @classmethod
    def unpacked(cls, rows: Iterable[tuple[K, list[I]]]) -> Waiting[K, I]:
        waiting: Waiting[K, I] = cls()
        waiting._items = {key: [*items] for key, items in rows}
        return waiting
