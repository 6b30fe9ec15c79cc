"""The policy "bounded": grouped, but never more than so many entries; what is too fine is dropped.

With more entries than that, unions of windows become hulls. If that is not enough, the skeleton
with the most entries gives up its most selective attribute, the one with the most different values,
and its groups become one; and so on, until at last the whole topic is asked for. A form without
some of its tests contains the form, so the summary still contains everything.

Rule 1: what was given up is tried again after as many changes as there are interests: with that the
        cost of a change stays constant on average. Until then a summary may be wider than needed.
Rule 2: all of it is one change for the neighbour, however many groups were merged.
"""

from __future__ import annotations

from collections.abc import Sequence

from inorder.content.bind import boxes_of
from inorder.content.engine import Form, Forms
from inorder.content.grouped import Grouped
from inorder.content.plan import GroupKey
from inorder.content.skeleton import Condition, Skeleton
from inorder.content.summary import Delta
from inorder.core.errors import Misuse
from inorder.core.limits import CONTENT_SUMMARY_ENTRIES, CONTENT_SUMMARY_PIECES_MAX

Key = tuple[str, int]
Projection = tuple[Skeleton, tuple[int, ...]]  # and the places that are left, in order


class Bounded:
    """Implements `Summary`.

    >>> from inorder.content.engine import forms_of
    >>> from inorder.content.predicate import Predicate
    >>> cheap, summary = Predicate.parse("firm = :firm AND price < :limit"), Bounded(2)
    >>> for number, firm in enumerate(("IBM", "Sun", "SAP")):
    ...     summary.put(("client", number), forms_of(cheap, {"firm": firm, "limit": number}))
    >>> [(skeleton.ranges, vector) for _, (skeleton, vector) in summary.everything()]
    [((Condition(attribute='price', op='<', places=(0,)),), (2,))]
    """

    def __init__(self, entries: int = CONTENT_SUMMARY_ENTRIES) -> None:
        if entries < 1:
            raise Misuse(f"a summary of {entries} entries says nothing; at least 1")
        self.entries = entries
        self._grouped = Grouped()
        self._forms: dict[Key, Forms] = {}
        self._users: dict[Skeleton, dict[Key, int]] = {}
        self._given_up: dict[Skeleton, Projection] = {}
        self._is_wide = False
        self._changes = 0

    def put(self, key: Key, forms: Forms) -> None:
        # What nothing can match must not become something by losing tests.
        forms = tuple(form for form in forms if boxes_of(*form))
        self._forget(key)
        self._forms[key] = forms
        for skeleton, _ in forms:
            users = self._users.setdefault(skeleton, {})
            users[key] = users.get(key, 0) + 1
        self._changes += 1
        self._grouped.put(key, self._projected(forms))

    def drop(self, key: Key) -> None:
        self._forget(key)
        self._changes += 1
        self._grouped.drop(key)

    def delta(self) -> Delta:
        self._fit()
        return self._grouped.delta()

    def everything(self) -> Sequence[tuple[int, Form]]:
        self._fit()
        return self._grouped.everything()

    def _forget(self, key: Key) -> None:
        for skeleton, _ in self._forms.pop(key, ()):
            users = self._users[skeleton]
            users[key] -= 1
            if not users[key]:
                del users[key]
            if not users:
                del self._users[skeleton]
                self._given_up.pop(skeleton, None)

    def _projected(self, forms: Forms) -> Forms:
        if not self._given_up:
            return forms
        found: list[Form] = []
        for skeleton, vector in forms:
            shorter, places = self._given_up.get(skeleton, (None, ()))
            if shorter is None:
                found.append((skeleton, vector))
            else:
                found.append((shorter, tuple(vector[place] for place in places)))
        return tuple(found)

    # Giving up, and trying again.

    def _fit(self) -> None:
        if self._is_wide and self._changes >= len(self._forms):
            self._try_again()
        while self._grouped.settle() > self.entries:
            if not self._is_wide:
                self._is_wide = True
                self._changes = 0
                self._grouped.keep_apart(1)
            else:
                self._widen()

    def _try_again(self) -> None:
        """Start anew on the side, and take the result over: entries that stay keep their number."""
        trial = Bounded(self.entries)
        for key, forms in self._forms.items():
            trial.put(key, forms)
        trial._fit()
        self._changes = 0
        self._is_wide = trial._is_wide
        self._grouped.keep_apart(1 if trial._is_wide else CONTENT_SUMMARY_PIECES_MAX)
        self._give_up(trial._given_up)

    def _widen(self) -> None:
        """Let the skeleton with the most entries lose an attribute; if skeletons alone are too
        many, let all of the longest ones."""
        sizes = {
            skeleton: sum(len(group.entries) for group in groups.values())
            for skeleton, groups in self._grouped.groups.items()
        }
        if len(sizes) > self.entries:
            longest = max(len(skeleton.conditions()) for skeleton in sizes)
            chosen = [one for one in sizes if len(one.conditions()) == longest]
        else:
            chosen = [max((one for one in sizes if one.conditions()), key=lambda one: sizes[one])]
        lost = {skeleton: self._most_selective(skeleton) for skeleton in chosen}
        given_up = dict(self._given_up)
        for skeleton in self._users:
            shown, places = given_up.get(skeleton) or (skeleton, _all_places(skeleton))
            if shown in lost:
                shorter, kept = without(shown, lost[shown])
                given_up[skeleton] = shorter, tuple(places[place] for place in kept)
        self._give_up(given_up)

    def _give_up(self, given_up: dict[Skeleton, Projection]) -> None:
        skeletons = {**self._given_up, **given_up}
        affected = {
            key: None
            for skeleton in skeletons
            if self._given_up.get(skeleton) != given_up.get(skeleton)
            for key in self._users.get(skeleton, {})
        }
        self._given_up = given_up
        for key in affected:
            self._grouped.put(key, self._projected(self._forms[key]))

    def _most_selective(self, skeleton: Skeleton) -> str:
        """The attribute whose tests differ most between the groups of a skeleton."""
        groups = list(self._grouped.groups[skeleton].values())
        plan = groups[0].plan
        at = {place: index for index, place in enumerate(plan.fixed)}
        differing: dict[str, list[list[int]]] = {}
        for condition in skeleton.conditions():
            fixed = [at[place] for place in condition.places if place in at]
            differing.setdefault(condition.attribute, []).append(fixed)

        def variety(attribute: str) -> int:
            indices = [index for fixed in differing[attribute] for index in fixed]
            return len({_part(group.key, indices) for group in groups})

        return max(sorted(differing), key=variety)


def without(skeleton: Skeleton, attribute: str) -> Projection:
    """A skeleton without its tests of an attribute, and which places of the vector it keeps.

    >>> both = Skeleton((Condition("a", "=", (0,)),), (Condition("b", "<", (1,)),))
    >>> without(both, "a")
    (Skeleton(equality=(), ranges=(Condition(attribute='b', op='<', places=(0,)),), \
sets=(), residuals=(), whole=()), (1,))
    """
    kept = [one for one in skeleton.conditions() if one.attribute != attribute]
    places = tuple(sorted({place for one in kept for place in one.places}))
    new = {place: index for index, place in enumerate(places)}

    def renumbered(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(
            Condition(one.attribute, one.op, tuple(new[place] for place in one.places))
            for one in conditions
            if one.attribute != attribute
        )

    shorter = Skeleton(
        renumbered(skeleton.equality),
        renumbered(skeleton.ranges),
        renumbered(skeleton.sets),
        renumbered(skeleton.residuals),
        tuple(name for name in skeleton.whole if name != attribute),
    )
    return shorter, places


def _all_places(skeleton: Skeleton) -> tuple[int, ...]:
    places = [place for one in skeleton.conditions() for place in one.places]
    return tuple(range(max(places) + 1)) if places else ()


def _part(key: GroupKey, indices: list[int]) -> tuple[object, ...]:
    return tuple(key[0][index] for index in indices)
