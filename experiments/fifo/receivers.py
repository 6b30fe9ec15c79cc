"""Receivers by the paper's names, played to recorded pairs; static ones tuned to the others.

| label          | receiver                                                                      |
|----------------|-------------------------------------------------------------------------------|
| none           | delivers as it comes                                                          |
| CST-t          | waits t ms for whatever is missing                                            |
| CST+record-t   | the same, but does not wait for what the record of 25 shows to be irrelevant |
| P-x-y          | the paper's estimator with P_t = x and a record of y messages; y = 0 is basic |
| printed-x-y    | the same with equation 5 as printed, principal branch of W (errata E-F2)      |
| ours-x-y       | the predictive estimator with target x                                        |
| CST = P-x-y    | CST with the least t (by bisection) that leaves no more late messages         |
| ours = P-x-y   | ours with the largest target that leaves no more                              |

A violation is a late message (one delivered after a later one) or an inverted pair: the paper does
not say which (E-F19), so both are counted, from the 26th arrival of a pair on: until then the
paper's 25 samples are not there.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from math import exp, log

import numpy as np
from msgspec import Struct

from experiments.fifo.network import Pair
from inorder.protocols.fifo.laplace import cdf
from inorder.protocols.fifo.options import Options
from inorder.sim.lane import Arrival, arrivals, listen

# The records that pairs are prepared with; a basic receiver does not look at them.
RECORDS = (5, 25)
WARM_UP = 25
BISECTIONS = 10
LATCH_MAX_S = 1.0
# From the easiest target to the hardest.
TARGETS = (0.5, 1e-4)


class Result(Struct, frozen=True):
    """Sums over all pairs, and each pair's mean wait."""

    received: int
    late: int
    inverted: int
    held: int
    longest_s: float
    waits_s: list[float]


class Lanes:
    """Recorded pairs, ready to be played to any receiver."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._by_record = {record: _prepared(pairs, record) for record in RECORDS}
        self._numbers = [(pair.stream.order + 1).tolist() for pair in pairs]
        self._known: dict[tuple[str, float], Result] = {}

    def play(self, label: str, pair_gap_s: float = 1.0) -> tuple[Result, float | None]:
        """What a receiver made of all pairs, and the number it was tuned to, if it was."""
        kind, _, target = label.partition(" = ")
        if not target:
            return self._heard(label, pair_gap_s), None
        allowed = self._heard(target, pair_gap_s).late
        if kind.startswith("CST"):

            def static(latch_s: float) -> Result:
                return self._heard(f"{kind}-{1000.0 * latch_s!r}")

            best_s = _least(lambda latch_s: static(latch_s).late <= allowed, LATCH_MAX_S)
            return static(best_s), best_s
        record = target.rpartition("-")[2]
        most, least = map(log, TARGETS)

        def ours(down: float) -> Result:
            return self._heard(f"ours-{exp(most - down)!r}-{record}")

        down = _least(lambda down: ours(down).late <= allowed, most - least)
        return ours(down), exp(most - down)

    def _heard(self, label: str, pair_gap_s: float = 1.0) -> Result:
        known = self._known.get((label, pair_gap_s))
        if known is None:
            known = self._known[label, pair_gap_s] = self._listen(label, pair_gap_s)
        return known

    def _listen(self, label: str, pair_gap_s: float) -> Result:
        if label == "none":
            return self._summed([(numbers, [0.0] * len(numbers)) for numbers in self._numbers])
        record = 0 if label.startswith("CST") else int(label.rpartition("-")[2])
        chosen = options(label, pair_gap_s)
        heard = (listen(lane, chosen) for lane in self._by_record[record or max(RECORDS)])
        return self._summed([(each.numbers, each.waits_s) for each in heard])

    def _summed(self, heard: Sequence[tuple[list[int], list[float]]]) -> Result:
        settled = [
            _without(set(arrived[:WARM_UP]), numbers, waits)
            for arrived, (numbers, waits) in zip(self._numbers, heard, strict=True)
        ]
        return Result(
            received=sum(len(numbers) for numbers, _ in settled),
            late=sum(late(numbers) for numbers, _ in settled),
            inverted=sum(inversions(numbers) for numbers, _ in settled),
            held=sum(sum(wait > 0.0 for wait in waits) for _, waits in settled),
            longest_s=max((max(waits, default=0.0) for _, waits in settled), default=0.0),
            waits_s=[sum(waits) / len(waits) for _, waits in settled if waits],
        )


def options(label: str, pair_gap_s: float = 1.0) -> Options:
    """The options a label stands for."""
    kind, _, rest = label.partition("-")
    if kind.startswith("CST"):
        return Options(
            estimator="static", latch=float(rest) / 1000.0, use_record=kind == "CST+record"
        )
    share_text, _, record_text = rest.rpartition("-")
    share, record = float(share_text), int(record_text)
    if kind == "ours":
        return Options(late=share, record=record, use_record=record > 0)
    return Options(
        estimator="laplace2",
        late=_printed(share) if kind == "printed" else share,
        record=record,
        use_record=record > 0,
        max_pair_gap=pair_gap_s,
    )


def inversions(numbers: Sequence[int]) -> int:
    """Pairs delivered the wrong way round.

    >>> inversions([3, 1, 2])
    2
    """
    seen: list[int] = []
    total = 0
    for number in numbers:
        if seen and number < seen[-1]:
            total += len(seen) - bisect_right(seen, number)
            insort(seen, number)
        else:
            seen.append(number)
    return total


def late(numbers: Sequence[int]) -> int:
    """Messages delivered after a later one.

    >>> late([3, 1, 2])
    2
    """
    line = np.asarray(numbers)
    return int(np.count_nonzero(line < np.maximum.accumulate(line))) if len(line) else 0


def _printed(share: float) -> float:
    """The P_t at which the right formula waits as long as the printed one does at `share`."""
    from scipy.special import lambertw

    waited = float(lambertw(-4.0 * exp(-2.0) * share).real) + 2.0
    return 1.0 - cdf(waited, 1.0)


def _prepared(pairs: Sequence[Pair], record: int) -> list[list[Arrival]]:
    """Arrivals with headers; followers of one publisher want the same, so they share headers."""
    headers: dict[str, dict[int, Arrival]] = {}
    lanes = []
    for pair in pairs:
        known = headers.get(pair.publisher)
        if known is None:
            own = arrivals(pair.stream, record)
            known = headers[pair.publisher] = {each.header.seq: each for each in own}
        at_s = pair.stream.arrived_s.tolist()
        whole = (known[place + 1] for place in pair.stream.order.tolist())
        lanes.append([Arrival(at_s[each.header.seq - 1], each.header, each.event)
                      for each in whole])  # fmt: skip
    return lanes


def _without(
    first: set[int], numbers: Sequence[int], waits: Sequence[float]
) -> tuple[list[int], list[float]]:
    kept = [place for place, number in enumerate(numbers) if number not in first]
    return [numbers[place] for place in kept], [waits[place] for place in kept]


def _least(enough: Callable[[float], bool], most: float) -> float:
    """The least number that is enough, by bisection; `most` if none is."""
    low, high = 0.0, most
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
