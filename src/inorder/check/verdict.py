"""What a judge says about one promise."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Verdict(Struct):
    """`violations` is an exact count; `witness` is the smallest one found, as plain JSON values.

    `judged` is False when the history lacks what the promise needs; `why` then says what.
    `also` holds verdicts of related promises, reported beside it (of total: `acyclic`, `position`).
    """

    promise: str
    judged: bool
    kept: bool
    violations: int = 0
    counts: dict[str, int] = {}
    witness: dict[str, Any] | None = None
    why: str = ""
    also: dict[str, Verdict] = {}

    @property
    def broken(self) -> bool:
        """Judged and found wanting. Of the related promises two count: who delivers what nobody
        published, or nobody asked for, is not reliable; and who delivers against the positions has
        another order than the one of all."""
        related = (self.also.get(name) for name in ("integrity", "position"))
        return (self.judged and not self.kept) or any(
            verdict is not None and verdict.broken for verdict in related
        )


def not_judged(promise: str, why: str) -> Verdict:
    return Verdict(promise, judged=False, kept=False, why=why)


def judged(
    promise: str,
    violations: int,
    counts: dict[str, int],
    witness: dict[str, Any] | None,
    also: dict[str, Verdict] | None = None,
) -> Verdict:
    """A verdict that has been reached: kept exactly when nothing violates it."""
    assert (witness is not None) == (violations > 0), "a broken promise shows a witness"
    return Verdict(promise, True, violations == 0, violations, counts, witness, "", also or {})
