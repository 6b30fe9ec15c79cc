"""How long to wait for a missing event: the one interface of all estimators.

An estimator is a mutable msgspec Struct (so that it can be snapshotted) with the methods below. To
add one, write a file like static.py and enter its class into `ESTIMATORS`.

Times are seconds. Departures are on the publisher's clock, arrivals on the receiver's; only
differences within one clock, or a level learnt from both, mean anything.
"""

from __future__ import annotations

from typing import Protocol, Self

from inorder.core.errors import UnknownName
from inorder.protocols.fifo.laplace2 import Laplace2
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.predictive import Predictive
from inorder.protocols.fifo.static import Static


class Estimator(Protocol):
    """Learns from every arrival, and answers with deadlines."""

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """A fresh estimator with the choices of `[order]`."""

    @property
    def warm(self) -> bool:
        """Whether it has learnt enough; until then the receiver waits `initial_latch`."""

    @property
    def steps(self) -> int:
        """Clock steps recognised so far."""

    def sample(self, departure_s: float, arrived_s: float) -> None:
        """An event arrived, in its place or late: every one is sampled (E-F13)."""

    def feedback(self, late: bool) -> None:
        """Whether the event just sampled kept its place."""

    def rebase(self) -> None:
        """The publisher's clock starts anew: forget the level, keep what is known of its spread."""

    def deadline(self, departure_s: float, opener_s: float, now: float) -> float:
        """Until when to wait for the event that departed then, whose absence was noticed when the
        event that departed at `opener_s` arrived. The receiver bounds it."""

    # The dial: a share of late events against a wait.

    def wait_for(self, share: float) -> float:
        """How long past its expected arrival a missing event must be waited for, if this share of
        the events may come late."""

    def share_for(self, wait_s: float) -> float:
        """Which share comes late if a missing event is waited for so long; NaN if it cannot say."""

    def gauges(self) -> dict[str, float]:
        """What it knows, for operators."""


ESTIMATORS: dict[str, type[Estimator]] = {
    "predictive": Predictive,
    "laplace2": Laplace2,
    "static": Static,
}


def estimator_class(name: str) -> type[Estimator]:
    """The class of an estimator.

    >>> estimator_class("static")
    <class 'inorder.protocols.fifo.static.Static'>
    """
    try:
        return ESTIMATORS[name]
    except KeyError:
        raise UnknownName("estimator", name, sorted(ESTIMATORS)) from None
