"""Sequencing groups of many topics at once, from the matrix of who holds what."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from experiments.total.laws import Bools, Floats, Ints


def sequenced(held: Bools, threshold: int) -> Bools:
    """Which pairs of topics at least `threshold` subscribers hold together; no topic with itself.

    >>> held = np.array([[1, 1, 0], [1, 1, 1]], dtype=bool)
    >>> sequenced(held, 2).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    matrix = sparse.csr_matrix(held, dtype=np.int32)
    together = np.asarray((matrix.T @ matrix).todense() >= threshold)
    np.fill_diagonal(together, False)
    return together


def above(together: Bools, order: Ints) -> Bools:
    """For each topic, the members of its group that rank higher in `order` (highest first)."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return np.asarray(together & (rank[None, :] < rank[:, None]))


def entries(together: Bools, order: Ints) -> Ints:
    """How many entries the compact stamp of an event on each topic has."""
    return np.asarray(1 + above(together, order).sum(axis=1))


def foreign_share(together: Bools, order: Ints, published: Floats) -> tuple[float, float]:
    """Stamping messages for other managers' topics over all: of all messages, mean per manager.

    A manager handles one message for each event on its own topic, and one for each event of a lower
    topic of its group. Managers without any message are left out of the mean.
    """
    others = published @ above(together, order)
    total = others + published
    busy = total > 0
    return float(others.sum() / total.sum()), float((others[busy] / total[busy]).mean())
