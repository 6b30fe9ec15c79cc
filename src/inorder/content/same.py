"""Whether two vectors mean the same: Python's `==` takes True for 1."""

from __future__ import annotations

from inorder.content.skeleton import Filling, Vector


def alike(a: Vector, b: Vector) -> bool:
    """
    >>> alike((1, "x"), (1.0, "x")), alike((True,), (1,)), alike(((1, 2),), ((1, True),))
    (True, False, False)
    """
    return a == b and all(map(_same_kinds, a, b))


def _same_kinds(a: Filling, b: Filling) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return all(map(_same_kinds, a, b))
    return isinstance(a, bool) == isinstance(b, bool)
