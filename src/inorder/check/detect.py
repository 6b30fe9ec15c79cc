"""What disorder costs an application: do pattern detectors agree on what they found?

Not a promise, a measure. A detector reads its deliveries and looks for a pattern "a, then b, then
c" of one attribute: it waits for the first kind, then for the second, and so on, and starts again
when it has found them all (other kinds in between do not matter). A finding is the tuple of events
that made it up. Two detectors agree on a finding when both made it from the same events.

The share of findings made by all among those made by any is the "percentage of sequence detection"
of the "Total notification order" report, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

Finding = tuple[str, ...]


class Agreement(Struct, frozen=True):
    """`by_all` findings were made by every detector, `by_any` by at least one."""

    by_all: int
    by_any: int

    @property
    def share(self) -> float:
        return self.by_all / self.by_any if self.by_any else 1.0


def findings(deliveries: Iterable[tuple[str, object]], pattern: Sequence[object]) -> list[Finding]:
    """The findings of one detector in (event, kind) deliveries.

    >>> findings([("e1", "a"), ("e2", "c"), ("e3", "b"), ("e4", "a")], ["a", "b"])
    [('e1', 'e3')]
    """
    assert pattern, "a pattern has at least one kind"
    found: list[Finding] = []
    partial: list[str] = []
    for event, kind in deliveries:
        if kind == pattern[len(partial)]:
            partial.append(event)
            if len(partial) == len(pattern):
                found.append(tuple(partial))
                partial = []
    return found


def agreement(detectors: Sequence[Iterable[Finding]]) -> Agreement:
    """How far the detectors agree.

    >>> agreement([[("e1", "e3")], [("e1", "e3"), ("e4", "e5")]]).share
    0.5
    """
    sets = [set(found) for found in detectors]
    return Agreement(len(set.intersection(*sets)), len(set.union(*sets)))
