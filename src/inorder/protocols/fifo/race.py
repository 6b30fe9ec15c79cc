"""The tail of a sum of Laplacians whatever their scales, equal or nearly equal: a race.

Rule: nothing is ever subtracted, so no digits cancel.

Theory. The difference of two delays exceeds r if the second message arrives at a moment when the
first still needs more than r. Let both start together and walk their exponential hops: where the
first stands when the second arrives follows from a recursion over pairs of hops, since of two
exponentials the one of scale b loses to that of scale c with probability b / (b + c). What it still
needs exceeds r with a probability that a matrix exponential gives: a short series for a fraction of
r, then repeated squaring of a matrix without negative entries. The relative error is about
1e-16 r / (smallest scale); the work grows with h^3 log(r / smallest scale).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

# Terms of the exponential series of a matrix whose rows sum to at most 1 (1/19! < 1e-17).
SERIES_TERMS = 18

Matrix = list[list[float]]


def race(r: float, scales: Sequence[float]) -> float:
    """The first message's place when the second arrives, and what it still needs from there."""
    h = len(scales)
    reached = [[0.0] * (h + 1) for _ in range(h + 1)]
    reached[0][0] = 1.0
    for first in range(h):
        for second in range(h):
            here, mine, other = reached[first][second], scales[first], scales[second]
            reached[first + 1][second] += here * other / (mine + other)
            reached[first][second + 1] += here * mine / (mine + other)
    moves = _moves(r, scales)
    return sum(reached[i][h] * sum(moves[i]) for i in range(h))


def _moves(r: float, scales: Sequence[float]) -> Matrix:
    """Entry (i, j): the chance to stand at hop j after time r when at hop i now."""
    h = len(scales)
    fastest = r / min(scales)
    halvings = 0
    while fastest > 1.0:
        fastest /= 2.0
        halvings += 1
    rates = [r / scale / 2.0**halvings for scale in scales]
    # Uniformised: exp(Q) = exp(-fastest) exp(Q + fastest I), where Q + fastest I has no minus.
    step = [[0.0] * h for _ in range(h)]
    for i, rate in enumerate(rates):
        step[i][i] = fastest - rate
        if i + 1 < h:
            step[i][i + 1] = rate
    term = moves = [[exp(-fastest) if i == j else 0.0 for j in range(h)] for i in range(h)]
    for n in range(1, SERIES_TERMS + 1):
        term = [[entry / n for entry in row] for row in _product(term, step)]
        moves = [
            [a + b for a, b in zip(*rows, strict=True)] for rows in zip(moves, term, strict=True)
        ]
    for _ in range(halvings):
        moves = _product(moves, moves)
    return moves


def _product(left: Matrix, right: Matrix) -> Matrix:
    """Of two upper triangular matrices."""
    h = len(left)
    return [
        [sum(left[i][k] * right[k][j] for k in range(i, j + 1)) for j in range(h)] for i in range(h)
    ]
