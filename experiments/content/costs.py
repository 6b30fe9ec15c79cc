"""What a broker is charged for its work: constants, and the command that measured them.

`python -m experiments.content.costs` measures on a thousand subscriptions, trading and traffic.
What it printed once stands below, rounded, so that every run of every figure charges the same,
whatever machine it runs on and whatever else that machine does. The time of these experiments is
therefore a *cost model*: counts of real work, times these constants.

Two prices for the poset: `counted` charges the comparisons that our poset made; `told` charges what
the paper says of Siena's (Sec. 4.3 and 5.6): to put in or take out a subscription costs its whole
size, a parametric update nothing but the look-up. Ours compares nothing to take one out, and nearly
as much for an update as for a new subscription (E-C12).

A run of the whole population of the paper would take hours: one subscription `stands for` many, and
a comparison or evaluation is charged as many times. That is fair as far as the poset's work is
linear in its size, which is what the paper says of it too (Sec. 5.6; E-C12).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

from inorder.content.broker import Broker
from inorder.content.engine import Form, forms_of
from inorder.content.index import Index
from inorder.content.messages import Attach, Flt, Message, Pub, Set, Sub, Unsub
from inorder.content.poset import Poset
from inorder.content.predicate import Predicate
from inorder.core import wire

# Seconds: a covering test of two subscriptions, a subscription tried on an event.
COMPARISON_S = 1.4e-6
EVALUATION_S = 1.4e-6
# Seconds: a match and an update of the index, whatever its size.
MATCH_S = 5e-6
UPDATE_S = 6e-6
# Seconds: any message, to take it from the wire and to put one on it.
HANDLING_S = 4e-6

COUNT = 1000
ROUNDS = 300


def changes(message: Any) -> int:
    """How many changes of its table a message makes to a broker."""
    if isinstance(message, Flt):
        delta = message.delta
        return len(delta.deleted) + len(delta.added) + len(delta.moved)
    return int(isinstance(message, Sub | Set | Unsub))


def rebuilds(message: Any) -> int:
    """How many subscriptions a message puts in or takes out, other values for one not counted."""
    if isinstance(message, Flt):
        return len(message.delta.deleted) + len(message.delta.added)
    return int(isinstance(message, Sub | Unsub))


def index_s(message: Any) -> float:
    """The time a broker with an index needs for a message."""
    matches = isinstance(message, Pub)
    return HANDLING_S + MATCH_S * matches + UPDATE_S * changes(message)


def poset_s(comparisons: int, evaluations: int, stands_for: int) -> float:
    """The time a broker with a poset needs for a message."""
    work = COMPARISON_S * comparisons + EVALUATION_S * evaluations
    return HANDLING_S + stands_for * work


def measure() -> dict[str, float]:
    """All constants in microseconds: the mean of trading and traffic."""
    limits = Predicate.parse("kind = :kind AND price <= :limit")
    windows = Predicate.parse("road = :road AND place >= :low AND place <= :high")
    rng = random.Random(1)

    def limit() -> Form:
        values = {"kind": rng.randrange(10), "limit": rng.random()}
        return forms_of(limits, values)[0]

    def window() -> Form:
        low = rng.random()
        values = {"road": rng.randrange(10), "low": low, "high": low + 0.1}
        return forms_of(windows, values)[0]

    kinds = [{"kind": rng.randrange(10), "price": rng.random()} for _ in range(ROUNDS)]
    places = [{"road": rng.randrange(10), "place": rng.random()} for _ in range(ROUNDS)]
    found = [_engines(limit, kinds), _engines(window, places)]
    means = {name: sum(one[name] for one in found) / len(found) for name in found[0]}
    return {**means, "handling": _handling(kinds)}


def _engines(draw: Callable[[], Form], events: Sequence[dict[str, Any]]) -> dict[str, float]:
    poset, index = Poset(), Index()
    for key in range(COUNT):
        form = draw()
        poset.add(key, (form,))
        index.add(key, (form,))
    moves = [(key, [draw()[1]]) for key in range(ROUNDS)]
    for event in events[:20]:
        index.match(event)  # the first match after a change builds what later ones look up
    compared, tried = poset.comparisons, poset.evaluations
    poset_set = _timed(lambda: [poset.set(key, vectors) for key, vectors in moves])
    poset_match = _timed(lambda: [poset.match(event) for event in events])
    index_set = _timed(lambda: [index.set(key, vectors) for key, vectors in moves])
    index_match = _timed(lambda: [index.match(event) for event in events])
    return {
        "comparison": ROUNDS * poset_set / (poset.comparisons - compared),
        "evaluation": ROUNDS * poset_match / (poset.evaluations - tried),
        "index match": index_match,
        "index update": index_set,
    }


def _handling(events: Sequence[dict[str, Any]]) -> float:
    """Through the wire and through a broker at which nobody subscribes."""
    decoder, broker = wire.Decoder(Message), Broker("b1")
    broker.receive("p1", Attach(("market",)), 0.0)
    pubs = [Pub("market", "p1", number, event) for number, event in enumerate(events)]
    return _timed(
        lambda: [broker.receive("p1", decoder.decode(wire.encode(pub)), 0.0) for pub in pubs]
    )


def _timed(work: Callable[[], object]) -> float:
    """Microseconds of one of the `ROUNDS` things that the work does."""
    started = process_time()
    work()
    return 1e6 * (process_time() - started) / ROUNDS


if __name__ == "__main__":
    for name, microseconds in measure().items():
        print(f"{name}: {microseconds:.2f} us")
