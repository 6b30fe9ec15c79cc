"""How much of a run a verdict is about, how much it is not, and why: a line from its counts.

"Kept" of a run in which nobody replied to anybody says little about causes, and "nothing owed was
lost" little when hardly anything was owed. The line stands beside every verdict.
"""

from __future__ import annotations

from collections.abc import Callable

from inorder.check.verdict import Verdict

_Counts = dict[str, int]


def extent(verdict: Verdict) -> str:
    """What was judged, and what was not; why not at all, if nothing was.

    >>> extent(Verdict("reliable", True, True, counts={"owed": 240, "deliverable": 300}))
    '240 of 300 deliverable pairs (80 %) were owed; the others: a filter or a subscription, or ...
    """
    if not verdict.judged:
        return f"not judged: {verdict.why}"
    say = _WORDS.get(verdict.promise)
    try:
        return say(verdict.counts) if say else ""
    except KeyError:  # a verdict of somebody else, with counts of its own
        return ""


def _order(counts: _Counts) -> str:
    subscribers = _some(counts["subscribers"], "subscriber", "subscribers")
    return f"{_deliveries(counts)} of {subscribers}"


def _causal(counts: _Counts) -> str:
    events = _some(counts["events"], "event has", "events have")
    said = f"{_deliveries(counts)}; {counts['caused']:,} of {events} a cause"
    if untold := counts["untold"]:
        said += f"; not known: what was seen before {_some(untold, 'event', 'events')}"
    return said + _absent(counts)


def _absent(counts: _Counts) -> str:
    if not counts["absent"]:
        return ""
    said = _some(counts["absent"], "delivery", "deliveries")
    return f"; not judged: {said} of events that are not in the trace"


def _streams(words: str) -> Callable[[_Counts], str]:
    return lambda counts: _some(counts["streams"], f"stream {words}", f"streams {words}")


def _reliable(counts: _Counts) -> str:
    owed, pairs = counts["owed"], counts["deliverable"]
    if not pairs:
        return "no event could be delivered to anybody"
    words = _some(pairs, "deliverable pair", "deliverable pairs")
    said = f"{owed:,} of {words} ({100 * owed // pairs} %) were owed"
    if owed == pairs:
        return said
    return f"{said}; the others: a filter or a subscription, or the run, began or ended too near"


def _accepted(counts: _Counts) -> str:
    said = _some(counts["published"], "publication", "publications")
    said += f": {counts['accepted']:,} accepted"
    for name, words in (
        ("refused", "refused"),
        ("unknown", "whose publisher or run ended first"),
        ("young", "too young to tell"),
    ):
        if counts[name]:
            said += f", {counts[name]:,} {words}"
    return said


def _realtime(counts: _Counts) -> str:
    said = _deliveries(counts)
    if counts["unaccepted"]:
        said += f"; {counts['unaccepted']:,} of events without a known acceptance precede nothing"
    return said + _absent(counts)


def _position(counts: _Counts) -> str:
    said = _deliveries(counts)
    if counts["unplaced"]:
        said += f"; {counts['unplaced']:,} of events whose position is not known: not judged"
    return said


def _integrity(counts: _Counts) -> str:
    said = _some(counts["deliveries"], "delivery", "deliveries")
    if counts["elsewhere"]:
        said += f"; {counts['elsewhere']:,} of events that others published, or earlier: not known"
    return said


_WORDS: dict[str, Callable[[_Counts], str]] = {
    "total": _order,
    "causal": _causal,
    "causal_across_topics": _causal,
    "fifo": _streams("of a publisher and topic"),
    "per_publisher": _streams("of a publisher"),
    "unique": lambda counts: _some(counts["deliveries"], "delivery", "deliveries"),
    "reliable": _reliable,
    "filter": lambda counts: _some(counts["checked"], "filtered delivery", "filtered deliveries"),
    "accepted": _accepted,
    "realtime": _realtime,
    "integrity": _integrity,
    "position": _position,
}


def _deliveries(counts: _Counts) -> str:
    return _some(counts["in_order_deliveries"], "delivery in order", "deliveries in order")


def _some(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
