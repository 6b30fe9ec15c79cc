"""What is looked at before a message may change anything: forms and deltas from outside.

Rule 1: every check comes before the first change, so that a refused message changes nothing.
Rule 2: what passes can be bound to boxes; engines and summaries need not doubt it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from inorder.content.bind import boxes_of
from inorder.content.engine import Forms
from inorder.content.skeleton import Skeleton, Vector
from inorder.content.skeleton import problem as skeleton_problem
from inorder.content.summary import Delta
from inorder.core.errors import PredicateError
from inorder.core.limits import (
    CONTENT_DISJUNCTS_MAX,
    CONTENT_LINK_ENTRIES_MAX,
    CONTENT_TESTS_MAX,
    TOPIC_BYTES_MAX,
)

if TYPE_CHECKING:
    from inorder.content.topic import Entry

# An IN holds values of up to three kinds, a box for each: only that many sets in one conjunction
# can make more boxes than are allowed.
_SETS_THAT_MAY_BURST = 4


def topic_problem(topic: str) -> str | None:
    """
    >>> topic_problem("quotes"), topic_problem("x" * 300)
    (None, 'topic of 300 bytes, the limit is 255')
    """
    size = len(topic.encode(errors="replace"))
    if size > TOPIC_BYTES_MAX:
        return f"topic of {size} bytes, the limit is {TOPIC_BYTES_MAX}"
    return None if topic else "topic without a name"


def forms_problem(forms: Forms) -> str | None:
    """Why these forms are no subscription; an empty disjunction is one, which matches nothing."""
    if len(forms) > CONTENT_DISJUNCTS_MAX:
        return f"{len(forms)} forms, the limit is {CONTENT_DISJUNCTS_MAX}"
    tests = sum(len(skeleton.conditions()) for skeleton, _ in forms)
    if tests > CONTENT_TESTS_MAX:
        return f"{tests} tests, the limit is {CONTENT_TESTS_MAX}"
    for skeleton, vector in forms:
        if trouble := form_problem(skeleton, vector):
            return trouble
    return None


def form_problem(skeleton: Skeleton, vector: Vector) -> str | None:
    if trouble := skeleton_problem(skeleton, vector):
        return trouble
    if len(skeleton.sets) >= _SETS_THAT_MAY_BURST:
        try:
            boxes_of(skeleton, vector)
        except PredicateError as error:
            return str(error)
    return None


def vectors_problem(forms: Forms, vectors: tuple[tuple[int, Vector], ...]) -> str | None:
    """Why these vectors are no change of these forms."""
    places = [place for place, _ in vectors]
    if not places or len({*places}) != len(places):
        return "a form is changed twice, or none is"
    for place, vector in vectors:
        if not 0 <= place < len(forms):
            return f"form {place} of {len(forms)} does not exist"
        skeleton, known = forms[place]
        if len(vector) != len(known):
            return f"form {place} has {len(known)} values, not {len(vector)}"
        if trouble := form_problem(skeleton, vector):
            return trouble
    return None


def delta_problem(delta: Delta, known: Mapping[int, Entry], reset: bool) -> str | None:
    """Why a delta does not fit the entries it is about; a reset is about none."""
    rids: Mapping[int, Entry] = {} if reset else known
    gone, new = {*delta.deleted}, {rid for rid, _ in delta.added}
    changed = {rid for rid, _ in delta.moved}
    counts = (len(delta.deleted), len(delta.added), len(delta.moved))
    if counts != (len(gone), len(new), len(changed)) or gone & changed or new & changed:
        return "an entry is changed twice"
    if any(rid not in rids for rid in sorted(gone | changed)):
        return "an entry is not known"
    if any(rid < 1 for rid in sorted(new)):
        return "an entry has no number"
    if any(rid in rids and rid not in gone for rid in sorted(new)):
        return "an entry is known already"
    if len(rids) - len(gone) + len(new) > CONTENT_LINK_ENTRIES_MAX:
        return f"more than {CONTENT_LINK_ENTRIES_MAX} entries"
    for _, (skeleton, vector) in delta.added:
        if trouble := form_problem(skeleton, vector):
            return trouble
    for rid, vector in delta.moved:
        skeleton, before = known[rid].forms[0]
        if len(vector) != len(before):
            return f"entry {rid} has {len(before)} values, not {len(vector)}"
        if trouble := form_problem(skeleton, vector):
            return trouble
    return None
