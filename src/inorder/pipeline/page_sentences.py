"""Sentences of the report: the headline, and a witness told as a story."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.check.verdict import Verdict
from inorder.pipeline.page_words import label, name, number, plural, text, value

# A sentence that lists more than this is no sentence; the data stand below it in full.
LISTED_MAX = 8

# What a subscriber is promised, said once; a promise not named here is shown without a gloss.
KEPT_MEANS = {
    "fifo": "a subscriber delivers each publisher's events in the order published",
    "causal": "no event is delivered before one that caused it",
    "total": "no two subscribers deliver the same two in-order events in opposite orders",
    "acyclic": "all subscribers' orders together fit into one single order",
    "unique": "no subscriber delivers an event twice",
    "complete": "every subscriber delivers every event it subscribed to",
    "reliable": "every subscriber delivers every event it subscribed to",
    "authentic": "only published events are delivered",
    "filter": "only events that match the subscription are delivered",
}


class Headline(Struct):
    tone: str
    glyph: str
    words: str
    detail: str


def headline(promises: dict[str, Verdict], rows: int) -> Headline:
    """The verdict in words; a related promise that broke is never hidden behind a kept one."""
    total = len(promises)
    judged = [verdict for verdict in promises.values() if verdict.judged]
    broken = sum(not verdict.kept for verdict in judged)
    related = sum(
        also.judged and not also.kept for v in promises.values() for also in v.also.values()
    )
    detail = _detail(len(judged) - broken, total - len(judged), related, rows)
    if not judged:
        words = f"None of {plural(total, 'promise')} could be judged" if total else "Nothing judged"
        return Headline("open", "–", words, detail)
    if broken:
        words = f"{broken} of {plural(total, 'promise')} broken"
        return Headline("broken", "✗", words, detail)
    words = f"All {plural(total, 'promise')} kept" if total > 1 else "The promise is kept"
    if len(judged) < total:
        words = f"{len(judged)} of {plural(total, 'promise')} kept"
    if related:
        return Headline("broken", "✗", f"{words}, {related} related broken", detail)
    if rows == 0:
        return Headline("open", "–", "Nothing happened, so nothing broke", detail)
    return Headline("kept", "✓", words, detail)


def _detail(kept: int, unjudged: int, related: int, rows: int) -> str:
    parts = [f"{number(kept)} kept"] if kept else []
    if unjudged:
        parts.append(f"{number(unjudged)} not judged")
    if related:
        parts.append(f"{plural(related, 'related promise')} broken")
    looked = f"{plural(rows, 'row')} looked at." if rows else "The log held no rows."
    return f"{', '.join(parts)}. {looked}" if parts else looked


def witness_sentence(witness: dict[str, Any]) -> str:
    """The witness as markup: a known shape told as a story, the rest fact by fact.

    A story is told only when the witness holds everything it says.
    """
    told, used = _opposite(witness) or _cycle(witness) or _twice(witness) or ("", set[str]())
    facts = [
        f"{text(label(key))} {_values(what)}"
        for key, what in witness.items()
        if key not in used and key != "promise" and what is not None
    ]
    if told:
        return f"{told} ({'; '.join(facts)})." if facts else f"{told}."
    first = "; ".join(facts)
    return f"{first[:1].upper()}{first[1:]}." if first else "The witness names nothing."


_Story = tuple[str, set[str]] | None


def _opposite(witness: dict[str, Any]) -> _Story:
    """Two subscribers and two events; with `positions` also who delivered which first."""
    events, subscribers = _strings(witness, "events"), _strings(witness, "subscribers")
    if len(events) != 2 or len(subscribers) != 2:
        return None
    positions = witness.get("positions")
    lines: list[str] = []
    for subscriber in subscribers:
        places = positions.get(subscriber) if isinstance(positions, dict) else None
        if not isinstance(places, list | tuple) or [type(p) for p in places] != [int, int]:
            told = f"{_ids(subscribers)} delivered {_ids(events)} in opposite orders"
            return told, {"events", "subscribers"}
        (one, first), (two, then) = sorted(zip(places, events, strict=True))
        lines.append(
            f"{_id(subscriber)} delivered {_id(first)} before {_id(then)} "
            f"(positions {number(one)} and {number(two)})"
        )
    return ", but ".join(lines), {"events", "subscribers", "positions"}


def _cycle(witness: dict[str, Any]) -> _Story:
    cycle, because = _strings(witness, "cycle"), witness.get("because")
    if not cycle:
        return None
    ring = " before ".join(_id(event) for event in [*cycle[:LISTED_MAX], cycle[0]])
    if len(cycle) > LISTED_MAX:
        ring = f"a ring of {number(len(cycle))} events, from {_id(cycle[0])} back to itself"
    told = f"Together the subscribers say {ring}, which no single order can satisfy"
    if not isinstance(because, list) or not all(_is_step(step) for step in because):
        return told, {"cycle"}
    steps = [
        f"{_id(step['subscriber'])} delivered {_id(step['first'])} before {_id(step['then'])}"
        for step in because[:LISTED_MAX]
    ]
    return f"{told}: {'; '.join(steps)}", {"cycle", "because"}


def _is_step(step: Any) -> bool:
    keys = ("subscriber", "first", "then")
    return isinstance(step, dict) and all(isinstance(step.get(key), str) for key in keys)


def _twice(witness: dict[str, Any]) -> _Story:
    """One event at several positions of one subscriber."""
    subscriber, event = witness.get("subscriber"), witness.get("event")
    places = witness.get("positions")
    if not isinstance(subscriber, str) or not isinstance(event, str):
        return None
    if not isinstance(places, list | tuple) or len(places) < 2:
        return None
    told = f"{_id(subscriber)} delivered {_id(event)} at positions {_values(places)}"
    return told, {"subscriber", "event", "positions"}


def _strings(witness: dict[str, Any], key: str) -> list[str]:
    found = witness.get(key)
    if isinstance(found, list | tuple) and all(isinstance(item, str) for item in found):
        return list(found)
    return []


def _values(what: Any) -> str:
    if isinstance(what, str):
        return _id(what)
    if isinstance(what, list | tuple) and all(isinstance(item, str) for item in what):
        return _ids(list(what))
    if isinstance(what, list | tuple) and all(type(item) is int for item in what):
        return _listed([number(item) for item in what])
    if isinstance(what, dict) and all(not isinstance(item, dict) for item in what.values()):
        return _listed([f"{_id(key)} {_values(item)}" for key, item in what.items()])
    return value(what, 120)


def _ids(ids: list[str]) -> str:
    return _listed([_id(each) for each in ids])


def _listed(items: list[str]) -> str:
    """Markup joined as in a sentence."""
    if len(items) > LISTED_MAX:
        items = [*items[:LISTED_MAX], f"{number(len(items) - LISTED_MAX)} more"]
    if len(items) < 2:
        return items[0] if items else "none"
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _id(raw: object) -> str:
    return f"<code>{name(raw, 40)}</code>"
