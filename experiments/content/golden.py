"""Figures 1, 4 and 7: the worked example, message by message.

Five brokers around b3, subscribers c1 and c2 at b1, c3 and c4 at b2, publishers c5 at b4 and c6 at
b5. After each step the network falls silent; what the links on c1's side carried is counted,
without confirmations and events.
"""

from __future__ import annotations

from typing import Any

from experiments.content.world import World
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Numbers, Settings
from inorder.content.client import Mode
from inorder.content.messages import Fack, Installed, Pub
from inorder.content.predicate import Predicate

TOPIC = "IBMStockQuote"
PRICE = Predicate.parse("price < :x")
STAR = [[2], [2], [0, 1, 3, 4], [2], [2]]
LINKS = (("c1", "b1"), ("c2", "b1"), ("b1", "b3"), ("b3", "b4"), ("b3", "b5"))
MODES: tuple[Mode, ...] = ("break", "make", "parametric")
STEPS = (
    "c1 subscribes to price < 10", "c2 subscribes to price < 5", "c1 changes to price < 30",
    "c2 changes to price < 7", "c1 changes to price < 6",
)  # fmt: skip
# Messages on c1-b1, c2-b1, b1-b3, b3-b4, b3-b5, as the paper tells it (first three steps) and as
# follows from its rules (the others): re-subscribing twice, a parametric update once.
EXPECTED: dict[str, tuple[tuple[int, ...], ...]] = {
    "break": ((1, 0, 1, 1, 1), (0, 1, 0, 0, 0), (2, 0, 2, 2, 2), (0, 2, 0, 0, 0), (2, 0, 1, 1, 1)),
    "make": ((1, 0, 1, 1, 1), (0, 1, 0, 0, 0), (2, 0, 1, 1, 1), (0, 2, 0, 0, 0), (2, 0, 1, 1, 1)),
    "parametric": (
        (1, 0, 1, 1, 1), (0, 1, 0, 0, 0), (1, 0, 1, 1, 1), (0, 1, 0, 0, 0), (1, 0, 1, 1, 1),
    ),
}  # fmt: skip


def points(quick: bool) -> list[Settings]:
    return [
        {"updates by": mode, "step": number + 1, "what": what}
        for mode in MODES
        for number, what in enumerate(STEPS)
    ]


def run(step: int, what: str, seed: int, **rest: Any) -> Numbers:
    """Play the example up to a step; the seed changes nothing."""
    counts = steps(rest["updates by"])[step - 1]
    return {f"{a}-{b}": count for (a, b), count in zip(LINKS, counts, strict=True)}


def steps(mode: Mode) -> list[tuple[int, ...]]:
    """For each step the number of messages on each link."""
    world = World(STAR, "poset")
    for number, edge in enumerate(("b1", "b1", "b2", "b2", "b4", "b5"), 1):
        world.client(f"c{number}", edge, mode)
    for publisher in ("c5", "c6"):
        world.act(publisher, world.clients[publisher].advertise(TOPIC, 0.0))
    world.open()
    carried: list[tuple[str, str]] = []

    def note(source: str, target: str, message: Any) -> None:
        if not isinstance(message, Pub | Fack | Installed):
            carried.append((source, target))

    world.carried = note
    found = []
    for name, limit, first in (
        ("c1", 10, True), ("c2", 5, True), ("c1", 30, False), ("c2", 7, False), ("c1", 6, False),
    ):  # fmt: skip
        carried.clear()
        client = world.clients[name]
        if first:
            _, effects = client.subscribe(TOPIC, PRICE, {"x": limit}, world.now)
        else:
            effects = client.set(1, {"x": limit}, world.now)
        world.act(name, effects)
        world.agenda.run()
        found.append(tuple(carried.count(link) for link in LINKS))
    return found


def judge(rows: list[Row]) -> list[str]:
    found: dict[str, list[tuple[int, ...]]] = {}
    for row in rows:
        counts = tuple(int(row.mean(f"{a}-{b}")) for a, b in LINKS)
        found.setdefault(row.settings["updates by"], []).append(counts)
    same = {mode: tuple(found[mode]) == EXPECTED[mode] for mode in MODES}
    total = {mode: sum(sum(step) for step in found[mode][2:]) for mode in MODES}
    return [
        holds("(1) what another subscription covers is not forwarded", found["break"][1][2] == 0),
        holds("(4) re-subscribing takes two messages a link", same["break"]),
        holds("(7) a parametric update takes one message a link", same["parametric"]),
        f"make before break: one message a link upstream is {'enough' if same['make'] else 'NOT'} "
        "here, because one of the two subscriptions covers the other.",
        f"the three updates take {total['break']} messages with break before make, "
        f"{total['make']} with make before break, {total['parametric']} with parameters.",
    ]


FIGURE = Figure(
    name="golden",
    title="the example of figures 1, 4 and 7",
    setting="messages on each link, confirmations left out",
    points=points,
    run=run,
    columns=tuple(Column(f"{a}-{b}", f"{a} to {b}", 0) for a, b in LINKS),
    labels=("updates by", "step", "what"),
    judge=judge,
    paper=lambda settings: "/".join(
        map(str, EXPECTED[settings["updates by"]][settings["step"] - 1])
    ),
    source="expected",
    numbers=("golden",),
    code=("src/inorder/content/**/*.py", "experiments/*.py", "experiments/content/*.py"),
    runs=1,
    quick_runs=1,
)
