"""Probabilistic FIFO: each publisher's events in its order, waiting just long enough.

Who does what: client.py publishes with headers (header.py, record.py, summary.py) and keeps one
receiver.py per publisher heard; estimator.py and its classes say how long to wait; missing.py and
seen.py remember gaps and duplicates. laplace.py, hops.py, bounds.py and delays.py are the theory as
a library. The rules are those of "Probabilistic FIFO Ordering in Publish/Subscribe Networks", with
its errors mended; files name the erratum (E-F2, ...) where they differ.
"""

from __future__ import annotations

from inorder.protocols.fifo.client import Client
from inorder.protocols.fifo.dial import describe
from inorder.protocols.fifo.options import Options, promises

__all__ = ["Client", "Options", "describe", "promises"]
