"""Verdicts on the screen, and witnesses in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from inorder.check.verdict import Verdict

COLOURS = {"kept": "green", "broken": "red", "incomplete": "yellow"}

# How a promise is shown where its name is no words.
SHOWN = {"causal_across_topics": "causal across topics", "per_publisher": "per publisher"}


def show_verdicts(
    screen: Console, verdicts: Mapping[str, Verdict], decisive: Sequence[str]
) -> None:
    """A row a promise: what became of it, the smallest witness, and how much was judged. What does
    not decide is never called broken, but not kept."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("promise", "verdict", "violations", "smallest witness; what was judged"):
        table.add_column(heading, justify="right" if heading == "violations" else "left")
    for name, verdict in verdicts.items():
        _add(table, SHOWN.get(name, name), verdict, name in decisive)
        for also, other in verdict.also.items():
            decides = also == "integrity" and name in decisive
            _add(table, f"  {SHOWN.get(also, also)}", other, decides)
    screen.print(table)


def _add(table: Table, name: str, verdict: Verdict, decides: bool) -> None:
    from rich.text import Text

    from inorder.check.extent import extent

    said = extent(verdict)
    if not verdict.judged:
        table.add_row(name, Text("not judged", "yellow"), "", Text(verdict.why))
    elif verdict.kept:
        table.add_row(name, Text("kept", "green"), "0", Text(said, "dim"))
    else:
        word = Text("broken", "red") if decides else Text("not kept", "dim")
        words = Text(in_words(verdict))
        if said:
            words.append(f"\n{said}", "dim")
        table.add_row(name, word, f"{verdict.violations:,}", words)


def in_words(verdict: Verdict) -> str:
    """The witness as a sentence."""
    witness: dict[str, Any] = verdict.witness or {}
    match witness:
        case {"events": [e, f], "subscribers": [a, b]}:
            return f"{a} delivered {e} before {f}, {b} the other way round"
        case {"cycle": cycle}:
            return " before ".join([*cycle[:6], "..." if len(cycle) > 6 else cycle[0]])
        case {"cause": cause, "effect": effect, "subscriber": s}:
            return f"{s} delivered {effect} before its cause {cause}"
        case {"late": late, "before": before, "subscriber": s}:
            return f"{s} delivered {before} before {late}, accepted before {before} was published"
        case {"events": [later, late], "subscriber": s, "nths": [at, _]}:
            return f"{s} delivered {later} at {at}, and only then {late}"
        case {"event": event, "subscriber": s, "nths": [first, again]}:
            return f"{s} delivered {event} at {first} and again at {again}"
        case {"event": event, "subscriber": s, "held_since": _, "topic": topic}:
            return f"{s}, holding {topic}, never got {event}"
        case {"event": event, "subscriber": s, "where": where}:
            return f"{s} got {event}, which does not match {where}"
        case {"event": event, "publisher": p, "outcome": None, "published_at": at}:
            return f"{p} was never told what became of {event}, published at {at:g} s"
    return ", ".join(f"{key} {value}" for key, value in witness.items())
