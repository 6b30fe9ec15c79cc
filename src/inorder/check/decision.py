"""One word for all verdicts of a run, and the exit code that goes with it.

Rule 1: only what was promised decides, or what was asked for. Everything else is shown.
Rule 2: where nobody knows what was promised, the promises of LOG decide. What goes across topics of
        a publisher, or needs clocks, is then shown, and decides when it is asked for.
Rule 3: nothing broken is no "kept" when the trace is cut off, when a promise asked for could not be
        judged, or when nothing that decides was judged at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from inorder.check.verdict import Verdict

LOG = ("total", "causal", "fifo", "unique", "reliable", "filter", "accepted")

EXIT_CODES = {"kept": 0, "broken": 1, "incomplete": 2}


def decisive(promised: Sequence[str] | None, asked: Sequence[str] = ()) -> Sequence[str]:
    """The promises that decide; `promised` is None when nobody knows."""
    return asked or (LOG if promised is None else promised)


def decide(
    verdicts: Mapping[str, Verdict],
    promised: Sequence[str] | None,
    asked: Collection[str] = (),
    complete: bool = True,
) -> str:
    """kept, broken or incomplete.

    >>> decide({"total": Verdict("total", True, False)}, promised=["fifo"])
    'incomplete'
    >>> decide({"total": Verdict("total", True, False)}, promised=["fifo"], asked=["total"])
    'broken'
    """
    names = decisive(promised, tuple(asked))
    deciding = {name: verdict for name, verdict in verdicts.items() if name in names}
    if any(verdict.broken for verdict in deciding.values()):
        return "broken"
    if not complete or any(not verdicts[name].judged for name in asked):
        return "incomplete"
    return "kept" if any(verdict.judged for verdict in deciding.values()) else "incomplete"
