"""Engines and summaries by name. What needs more than the standard library loads on use."""

from __future__ import annotations

from collections.abc import Callable

from inorder.content.engine import Engine, Naive
from inorder.content.policies import DEFAULT as SUMMARY
from inorder.content.policies import policy as summary_named
from inorder.core.errors import UnknownName

ENGINE = "index"


def _poset() -> Engine:
    from inorder.content.poset import Poset

    return Poset()


def _index() -> Engine:
    from inorder.content.index import Index

    return Index()


ENGINES: dict[str, Callable[[], Engine]] = {"naive": Naive, "poset": _poset, "index": _index}


def engine_named(name: str) -> Callable[[], Engine]:
    """What makes an engine.

    >>> engine_named("naive") is Naive
    True
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, sorted(ENGINES))
    return ENGINES[name]


__all__ = ["ENGINE", "ENGINES", "SUMMARY", "engine_named", "summary_named"]
