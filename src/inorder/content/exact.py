"""The policy "exact": the maximal forms and nothing else, kept by the order of covering.

Every event that passes is wanted by somebody. The price is time linear in the number of forms for
each change, and as many entries as there are maximal forms: 2,085 for 3,000 subscriptions to prices
of a thousand firms (E-C11). For small brokers and for comparison.

Rule 1: an entry shows the values of one owner of its node; when that owner leaves, it shows those
        of another one, and the neighbour is told if they differ from what was sent (E-C9b).
Rule 2: a form that becomes maximal takes over the entry of one of its skeleton that ceases to be:
        the neighbour sees other values, not another entry (E-C8).
"""

from __future__ import annotations

from collections.abc import Sequence

from inorder.content.bind import boxes_of
from inorder.content.engine import Form, Forms
from inorder.content.ledger import Ledger
from inorder.content.order import Order
from inorder.content.skeleton import Skeleton
from inorder.content.summary import Delta

Key = tuple[str, int]


class Exact:
    """Implements `Summary`.

    >>> from inorder.content.engine import forms_of
    >>> from inorder.content.predicate import Predicate
    >>> cheap, summary = Predicate.parse("price < :limit"), Exact()
    >>> for number, limit in enumerate((5, 10, 7)):
    ...     summary.put(("client", number), forms_of(cheap, {"limit": limit}))
    >>> [vector for _, (_, vector) in summary.everything()]
    [(10,)]
    """

    def __init__(self) -> None:
        self.order = Order()
        self._forms: dict[Key, Forms] = {}
        self._ledger = Ledger()
        self._rids: dict[int, int] = {}  # of the node

    def put(self, key: Key, forms: Forms) -> None:
        boxes = [boxes_of(skeleton, vector) for skeleton, vector in forms]
        before = self._forms.get(key, ())
        self._forms[key] = forms
        for place in range(len(forms), len(before)):
            self.order.drop((key, place))
        for place, one in enumerate(boxes):
            self.order.put((key, place), one)

    def drop(self, key: Key) -> None:
        for place in range(len(self._forms.pop(key, ()))):
            self.order.drop((key, place))

    def delta(self) -> Delta:
        self._settle()
        return self._ledger.delta()

    def everything(self) -> Sequence[tuple[int, Form]]:
        self._settle()
        return self._ledger.everything()

    def _settle(self) -> None:
        """Bring the entries up to date with the roots that changed."""
        fresh: dict[int, Form] = {}
        free: dict[Skeleton, list[int]] = {}
        for number in sorted(self.order.changed):
            form = self._shown(number)
            rid = self._rids.get(number)
            if form is None or (rid is not None and self._ledger[rid][0] != form[0]):
                if rid is not None:
                    free.setdefault(self._ledger[rid][0], []).append(self._rids.pop(number))
                rid = None
            if rid is not None and form is not None:
                self._ledger.rewrite(rid, form[1])
            elif form is not None:
                fresh[number] = form
        self.order.changed.clear()
        for number, form in fresh.items():
            if rids := free.get(form[0]):
                self._rids[number] = rids.pop(0)
                self._ledger.rewrite(self._rids[number], form[1])
            else:
                self._rids[number] = self._ledger.open(form)
        for rids in free.values():
            for rid in rids:
                self._ledger.close(rid)

    def _shown(self, number: int) -> Form | None:
        node = self.order.roots.get(number)
        if node is None:
            return None
        key, place = next(iter(node.owners))
        return self._forms[key][place]
