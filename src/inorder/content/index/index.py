"""The index itself: subscriptions by key, and the blocks they stand in.

Rule 1: its answers are those of `engine.Naive`, always.
Rule 2: a refused call changes nothing: places are found for all forms before any is moved.
Rule 3: matching changes nothing. Ladders stay sorted, and grids are built, while subscriptions
        change; only what batches keep of a block is made when one is asked for.

Theory: events look at the blocks one after the other, so time grows with the number of skeletons,
which are few, and with what is found, not with the number of subscriptions. An update costs a
bisection or a few writes, for it touches one bucket; this is what makes parametric subscriptions
cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inorder.content.bind import boxes_of
from inorder.content.engine import Forms
from inorder.content.index.block import Block
from inorder.content.index.plan import Plan
from inorder.content.index.row import Row
from inorder.content.skeleton import Skeleton, Vector
from inorder.core.errors import Misuse

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

_KEY_MAX = 2**63 - 1


class Index:
    """An engine (engine.py) for very many subscriptions.

    >>> from inorder.content.engine import forms_of
    >>> from inorder.content.predicate import Predicate
    >>> cheap = Predicate.parse("firm = :firm AND price <= :limit")
    >>> index = Index()
    >>> index.add(7, forms_of(cheap, {"firm": "IBM", "limit": 10}))
    >>> index.match({"firm": "IBM", "price": 9.5}), index.match({"firm": "IBM", "price": 11})
    ([7], [])
    >>> index.set(7, cheap.values_of({"firm": "IBM", "limit": 12}))
    >>> places, keys = index.match_batch({"firm": ["IBM", None], "price": [11.0, 11.0]})
    >>> places.tolist(), keys.tolist()
    ([0], [7])
    """

    def __init__(self) -> None:
        # One form, as nearly all have, stands alone; others stand in a tuple.
        self._known: dict[int, Row | tuple[Row, ...]] = {}
        self._several: dict[int, None] = {}  # keys with more forms than one
        self._blocks: dict[Skeleton, Block] = {}
        self._collectors: list[Callable[[Mapping[str, Any], list[int]], bool]] = []

    def add(self, key: int, forms: Forms) -> None:
        if key in self._known:
            raise Misuse(f"subscription {key} is known already")
        if not -_KEY_MAX <= key <= _KEY_MAX:
            raise Misuse(f"subscription {key} is known by a number of more than 64 bits")
        self._put(key, forms)

    def set(self, key: int, vectors: Sequence[Vector]) -> None:
        row = self._known.get(key) or self._row(key)
        if row.__class__ is Row and len(vectors) == 1:
            row.block.reset(row, vectors[0])
            return
        row = (row,) if isinstance(row, Row) else row
        pairs = list(zip(row, vectors, strict=True))
        placements = [one.block.plan.place(vector) for one, vector in pairs]
        for (one, vector), placement in zip(pairs, placements, strict=True):
            one.block.move(one, vector, placement)

    def move(self, key: int, form: int, vector: Vector) -> None:
        """Give one form of a subscription other values; its other forms keep theirs."""
        row = self._row(key)
        rows = (row,) if isinstance(row, Row) else row
        if not 0 <= form < len(rows):
            raise Misuse(f"subscription {key} has {len(rows)} forms, and no form {form}")
        rows[form].block.reset(rows[form], vector)

    def replace(self, key: int, forms: Forms) -> None:
        row = self._row(key)
        self._put(key, forms, (row,) if isinstance(row, Row) else row)

    def remove(self, key: int) -> None:
        row = self._row(key)
        self._take(key, (row,) if isinstance(row, Row) else row)

    def __len__(self) -> int:
        return len(self._known)

    def match(self, attributes: Mapping[str, Any]) -> list[int]:
        found: list[int] = []
        doubt = False
        for collect in self._collectors:
            if collect(attributes, found):
                doubt = True
        if doubt:
            return [key for key in sorted({*found}) if self._holds(key, attributes)]
        if self._several:
            return sorted({*found})
        found.sort()
        return found

    def match_batch(self, columns: Mapping[str, Any]) -> tuple[NDArray[int64], NDArray[int64]]:
        """Match many events at once; every column holds one attribute of all of them.

        A column is a NumPy array, an Arrow array or a list; None, null and NaN are absent, and so
        are attributes without a column. Times in a column count as whole microseconds. The answer
        is pairs, as two arrays: the event's place in the columns, and the key. Each pair is there
        once; they are in no order that means anything.
        """
        from inorder.content.index.batch import match_batch

        return match_batch(list(self._blocks.values()), [*self._several], columns, self.match)

    def _row(self, key: int) -> Row | tuple[Row, ...]:
        try:
            return self._known[key]
        except KeyError:
            raise Misuse(f"subscription {key} is not known") from None

    def _put(self, key: int, forms: Forms, instead: tuple[Row, ...] = ()) -> None:
        blocks = [self._blocks.get(skeleton) or Block(Plan(skeleton)) for skeleton, _ in forms]
        placements = [
            block.plan.place(vector) for block, (_, vector) in zip(blocks, forms, strict=True)
        ]
        if instead:
            self._take(key, instead)
        rows: list[Row] = []
        for (skeleton, vector), placement in zip(forms, placements, strict=True):
            block = self._blocks.get(skeleton)
            if block is None:
                block = self._blocks[skeleton] = Block(Plan(skeleton))
                self._collectors.append(block.collect)
            row = Row(key, block, vector)
            block.put(row, placement)
            rows.append(row)
        self._known[key] = rows[0] if len(rows) == 1 else tuple(rows)
        if len(rows) > 1:
            self._several[key] = None

    def _take(self, key: int, rows: tuple[Row, ...]) -> None:
        del self._known[key]
        self._several.pop(key, None)
        for row in rows:
            row.block.take(row)
            if not len(row.block):
                del self._blocks[row.block.plan.skeleton]
                self._collectors = [block.collect for block in self._blocks.values()]

    def _holds(self, key: int, attributes: Mapping[str, Any]) -> bool:
        """The exact answer for one subscription, from its boxes."""
        row = self._row(key)
        return any(
            box.contains(attributes)
            for one in ((row,) if isinstance(row, Row) else row)
            for box in boxes_of(one.block.plan.skeleton, one.vector)
        )
