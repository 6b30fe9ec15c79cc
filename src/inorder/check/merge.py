"""The traces of several processes as one run.

Rule 1: a name means one thing. A subscriber or an application that is in two traces is refused, for
        nobody could say which delivery of it came first; so is an event that was published twice.
Rule 2: who still held a topic when its trace ended held it no longer.
Rule 3: the run was quiet if all of them were, and ended with the last; its window is the longest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inorder.check.ending import Ending
from inorder.check.holding import UNSUBSCRIBE
from inorder.check.trace import SubscriptionRow
from inorder.core.errors import BadTrace, Misuse


def once(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse a trace that is named twice, however it is spelt."""
    known: set[str] = set()
    for path in map(str, paths):
        place = path if "://" in path else os.path.realpath(path)
        if place in known:
            raise Misuse(f"{path}: is named twice")
        known.add(place)


def apart(what: str, names: Mapping[str, Iterable[str]]) -> None:
    """Refuse names that are in two traces; `names` holds those of each, by its path."""
    owner: dict[str, str] = {}
    for path, mine in names.items():
        for name in sorted(set(mine)):
            if name in owner:
                told = f"{what} {name!r} is in {owner[name]} too: these traces are not of one run"
                raise BadTrace(path, told)
            owner[name] = path


def ending_of(endings: Sequence[Ending | None]) -> Ending | None:
    """How the run of all of them ended; None when one of them does not say."""
    known = [ending for ending in endings if ending is not None]
    if len(known) < len(endings):
        return None
    under_way = {line for ending in known for line in ending.under_way}
    return Ending(
        quiet=all(ending.quiet for ending in known),
        ended_at=max(ending.ended_at for ending in known),
        within=max(ending.within for ending in known),
        under_way=tuple(sorted(under_way)),
    )


def with_ends(rows: Sequence[SubscriptionRow], ending: Ending | None) -> list[SubscriptionRow]:
    """The changes of one trace among several, with the leaving of all who were still there."""
    if ending is None or ending.quiet:
        return list(rows)
    left = sorted({row.subscriber for row in rows})
    return [
        *rows,
        *(SubscriptionRow(name, UNSUBSCRIBE, [], None, "{}", ending.ended_at) for name in left),
    ]


def summary_of(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What can be said of all of them in one `trace.json`: what they agree on."""
    first = dict(summaries[0])
    for other in summaries[1:]:
        first = {key: value for key, value in first.items() if other.get(key) == value}
    if all("rows" in summary for summary in summaries):
        first["rows"] = {}
    return first | {"traces": len(summaries)}
