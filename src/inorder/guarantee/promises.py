"""Which guarantee keeps which promise over which network: what may decide an exit code.

Three networks. `network`: it moves events and may lose, double and reorder them (the simulator's,
the content brokers'). `log`: one log, which keeps every event and has an order of its own (the
bus): all subscribers read that order, so every guarantee promises the same. `cube`: peers on a
hypercube, which number every publisher's events, so that none is lost or doubled while no peer
dies; their order is anybody's. A promise that needs more than the machines know of (that clocks
agree, that a link loses nothing) is promised of none.

What no guarantee promises is judged and shown all the same. A content filter in front of a
guarantee adds `filter`; that is the scenario's or the subscription's to know.
"""

from __future__ import annotations

from typing import Any, Literal

from inorder.protocols import fifo, total

Network = Literal["network", "log", "cube"]

OVER_A_LOG = (
    "total", "causal", "causal_across_topics", "fifo", "per_publisher", "unique", "reliable",
    "accepted", "realtime",
)  # fmt: skip


def of_none(options: Any, network: Network) -> tuple[str, ...]:
    """Nothing but an answer. A cube loses and doubles nothing."""
    if network == "cube":
        return ("unique", "reliable", "accepted")
    return ("accepted",)


def of_fifo(options: Any, network: Network) -> tuple[str, ...]:
    """A publisher's order over all its topics. Over a cube nothing is lost, unless late events
    are dropped. Not causal order: a question may be held back longer than its answer."""
    kept = (*fifo.promises(options), "per_publisher", "accepted")
    if network == "cube" and options is not None and options.when_late == "deliver":
        return (*kept, "reliable")
    return kept


def of_causal(options: Any, network: Network) -> tuple[str, ...]:
    """Causal order needs places, so whatever runs it gives them: the kind of network does not
    matter. Only whole stamps know of causes on other topics. (They also keep a publisher's own
    order over its topics, until it crashes and forgets: `per_publisher` is not promised.) When
    peers die with events that nobody else has, a gap is announced."""
    kept = ("causal", "fifo", "unique", "reliable", "accepted")
    return (*kept, "causal_across_topics") if options.stamps == "whole" else kept


def of_total(options: Any, network: Network) -> tuple[str, ...]:
    """With the papers' threshold nothing is promised across topics. `fence` is what keeps the order
    of one publisher's events across its topics, which no order of all events implies."""
    kept = (*total.promises(options), "accepted")
    if options.threshold < 2:
        kept = (*kept, "causal_across_topics", "realtime")
    return (*kept, "per_publisher") if options.fence else kept
