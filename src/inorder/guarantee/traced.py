"""What was promised to a run, from what its trace says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inorder.core.errors import InorderError
from inorder.core.settings import convert
from inorder.guarantee.promises import Network
from inorder.guarantee.registry import GUARANTEES

# What a content filter in front of a guarantee promises too.
FILTER = "filter"


def promises_of_all(
    summaries: Sequence[Mapping[str, Any]], filtered: bool
) -> tuple[str, ...] | None:
    """What the guarantees of several traces all promise; None when one of them names none we know.

    >>> promises_of_all([{"order": {"guarantee": name}} for name in ("fifo", "none")], False)
    ('accepted',)
    """
    each = [promises_of(summary, filtered) for summary in summaries]
    known = [promises for promises in each if promises is not None]
    if len(known) < len(each):
        return None
    return tuple(name for name in known[0] if all(name in promises for promises in known))


def _network(summary: Mapping[str, Any]) -> Network:
    if summary.get("driver") == "live":
        return "log"
    return "cube" if summary.get("network") == "cube" else "network"


def promises_of(summary: Mapping[str, Any], filtered: bool) -> tuple[str, ...] | None:
    """The promises of the guarantee named by `trace.json`; None when it names none we know.

    >>> promises_of({"order": {"guarantee": "none"}}, filtered=True)
    ('accepted', 'filter')
    >>> promises_of({"title": "somebody else"}, filtered=False) is None
    True
    """
    order = summary.get("order")
    if not isinstance(order, dict) or str(order.get("guarantee", "none")) not in GUARANTEES:
        return None
    ordered = GUARANTEES[order.get("guarantee", "none")]
    fields = {key: value for key, value in order.items() if key != "guarantee"}
    try:
        options = convert(fields, ordered.options, "order")
    except InorderError:
        return None  # made by another version: what it promised is not ours to say
    promised = ordered.promises(options, _network(summary))
    return (*promised, FILTER) if filtered else promised
