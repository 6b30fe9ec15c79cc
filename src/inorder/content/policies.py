"""The policies of summaries by name, as settings and scenario files write them."""

from __future__ import annotations

from collections.abc import Callable

from inorder.content.bounded import Bounded
from inorder.content.exact import Exact
from inorder.content.grouped import Grouped
from inorder.content.summary import Everything, Summary
from inorder.core.errors import UnknownName

POLICIES: dict[str, Callable[[], Summary]] = {
    "everything": Everything,
    "exact": Exact,
    "grouped": Grouped,
    "bounded": Bounded,
}
DEFAULT = "grouped"


def policy(name: str = DEFAULT) -> Callable[[], Summary]:
    """What makes a summary of this policy; `bounded(20)` has at most 20 entries.

    >>> policy("grouped") is Grouped, policy("bounded(20)")().entries
    (True, 20)
    """
    if name in POLICIES:
        return POLICIES[name]
    number = name.removeprefix("bounded(").removesuffix(")")
    if name == f"bounded({number})" and number.isascii() and number.isdigit() and int(number) > 0:
        return lambda: Bounded(int(number))
    raise UnknownName("summary policy", name, sorted([*POLICIES, "bounded(N)"]))
