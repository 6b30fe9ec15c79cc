"""The normal form: NOT at the tests, OR of ANDs of tests.

Rule 1: NOT moves inwards by de Morgan and turns `<` into `>=`; SQL's three-valued logic makes this
        exact also where attributes are absent or of another kind.
Rule 2: IN stays one test, whatever its length. NOT IN is the conjunction of its `<>` and is kept as
        one test too, `Not(Member)`; NOT LIKE stays `Not(Like)`: no interval says it.
Rule 3: a bare attribute becomes `= TRUE`, NOT IS NULL becomes EXISTS, NOT BETWEEN two disjuncts.
Rule 4: too many disjuncts are refused before they are built; nothing is ever cut off.
"""

from __future__ import annotations

from inorder.content.tree import (
    NEGATED,
    And,
    Between,
    Compare,
    Constant,
    Exists,
    IsNull,
    Not,
    Or,
    Tree,
    Truth,
)
from inorder.core.errors import PredicateError
from inorder.core.limits import CONTENT_DISJUNCTS_MAX, CONTENT_TESTS_MAX

Conjunction = tuple[Tree, ...]

# Where counting stops: two to the power of the clauses is a number nobody wants to read.
_COUNT_MAX = 10**9


def normal(tree: Tree, text: str = "") -> tuple[Conjunction, ...]:
    """The disjuncts of a predicate, each a tuple of tests; `text` only serves the refusal.

    >>> low, high = Compare("a", "<", Constant(1)), Compare("b", ">", Constant(2))
    >>> normal(Not(And((low, high)))) == (
    ...     (Compare("a", ">=", Constant(1)),), (Compare("b", "<=", Constant(2)),))
    True
    """
    inward = _pushed(tree, negate=False)
    disjuncts, tests = _size(inward)
    for what, size, limit in (
        ("disjuncts", disjuncts, CONTENT_DISJUNCTS_MAX),
        ("tests", tests, CONTENT_TESTS_MAX),
    ):
        if size > limit:
            problem = f"the normal form has {size} {what}, the limit is {limit}"
            raise PredicateError("PREDICATE_TOO_LARGE", problem, None, text)
    return tuple(_spread(inward))


def _pushed(tree: Tree, negate: bool) -> Tree:
    if isinstance(tree, Not):
        return _pushed(tree.part, not negate)
    if isinstance(tree, And | Or):
        parts = tuple(_pushed(part, negate) for part in tree.parts)
        return And(parts) if isinstance(tree, And) != negate else Or(parts)
    if isinstance(tree, Truth):
        return Compare(tree.attribute, "=", Constant(not negate))
    if not negate:
        return tree
    if isinstance(tree, Compare):
        return Compare(tree.attribute, NEGATED[tree.op], tree.operand)
    if isinstance(tree, Between):
        below = Compare(tree.attribute, "<", tree.low)
        return Or((below, Compare(tree.attribute, ">", tree.high)))
    if isinstance(tree, IsNull):
        return Exists(tree.attribute)
    if isinstance(tree, Exists):
        return IsNull(tree.attribute)
    return Not(tree)


def _size(tree: Tree) -> tuple[int, int]:
    """How many disjuncts there will be, and how many tests in all of them."""
    if not isinstance(tree, And | Or):
        return 1, 1
    sizes = [_size(part) for part in tree.parts]
    if isinstance(tree, Or):
        return sum(size for size, _ in sizes), sum(tests for _, tests in sizes)
    disjuncts, tests = 1, 0
    for more, more_tests in sizes:
        tests = min(tests * more + more_tests * disjuncts, _COUNT_MAX)
        disjuncts = min(disjuncts * more, _COUNT_MAX)
    return disjuncts, tests


def _spread(tree: Tree) -> list[Conjunction]:
    if isinstance(tree, Or):
        return [one for part in tree.parts for one in _spread(part)]
    if not isinstance(tree, And):
        return [(tree,)]
    spread: list[list[Tree]] = [[]]
    for part in tree.parts:
        choices = _spread(part)
        if len(choices) == 1:
            for conjunction in spread:
                conjunction += choices[0]
        else:
            spread = [[*left, *right] for left in spread for right in choices]
    return [tuple(conjunction) for conjunction in spread]
