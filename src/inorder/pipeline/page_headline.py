"""The headline of the report, and what each promise means."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from inorder.check.verdict import Verdict
from inorder.pipeline.page_words import number, plural

# What a subscriber is promised, said once; a promise not named here is shown without a gloss.
KEPT_MEANS = {
    "total": "no two subscribers deliver the same two in-order events in opposite orders",
    "position": "a subscriber delivers events in the order of their positions",
    "acyclic": "all subscribers' orders together fit into one single order",
    "causal": "no subscriber delivers a cause after its effect",
    "fifo": "a subscriber delivers a publisher's events of a topic in the order published",
    "unique": "no subscriber delivers an event twice",
    "reliable": "every event owed to a subscriber is delivered to it",
    "integrity": "only published events are delivered, unaltered, on topics held",
    "filter": "only events that match the subscription are delivered",
    "causal_across_topics": "no subscriber delivers a cause after its effect, on whatever topics",
    "per_publisher": "a subscriber delivers a publisher's events of all topics in their order",
    "accepted": "every publication is accepted or refused, or its publisher ended",
    "realtime": "what was accepted before another event was published is delivered before it",
}


class Headline(Struct):
    tone: str
    glyph: str
    words: str
    detail: str


def headline(
    verdicts: dict[str, Verdict], rows: int, promised: Sequence[str] | None = None
) -> Headline:
    """The verdict in words; a related promise that broke is never hidden behind a kept one. Only
    what was promised makes the headline; None: nobody knows what was, so all does."""
    promises = {
        name: each for name, each in verdicts.items() if promised is None or name in promised
    }
    others = sum(
        verdict.judged and not verdict.kept
        for name, verdict in verdicts.items()
        if name not in promises
    )
    total = len(promises)
    judged = [verdict for verdict in promises.values() if verdict.judged]
    broken = sum(not verdict.kept for verdict in judged)
    related = sum(
        also.judged and not also.kept for v in promises.values() for also in v.also.values()
    )
    kept = len(judged) - broken if broken else 0
    detail = _detail(kept, total - len(judged), related, others, rows)
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


def _detail(kept: int, unjudged: int, related: int, others: int, rows: int) -> str:
    parts = [f"{number(kept)} kept"] if kept else []
    if unjudged:
        parts.append(f"{number(unjudged)} not judged")
    if related:
        parts.append(f"{plural(related, 'related promise')} broken")
    if others:
        parts.append(f"{number(others)} not kept that nobody promised")
    looked = f"{plural(rows, 'row')} looked at." if rows else "The log held no rows."
    return f"{', '.join(parts)}. {looked}" if parts else looked
