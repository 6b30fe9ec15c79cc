"""VCube-PS as our own machines run it: peers of the cube around clients of causal order.

    setting = Setting(seed=1, size=8, members={"t": range(8)}, cube=Cube(window=1))
    run = Run(PROTOCOLS["VCube-PS"], setting)

Members are preset: a state equal to the one after all of them have joined. Those that come and go
later do it by the protocol.

Rule 1: acknowledgements stand beside: they arrive after a hop, and take no place in output
        queues. The thesis counts PUB messages and mentions no others. In its figure 5.10 each of
        256 nodes sends 0.51 copies a unit of time; with acknowledgements in the same queue that
        would be 1.02, which no queue survives. `QUEUED` is the other reading.
Rule 2: copies leave for the largest sub-cube first, as our peers do it.
Rule 3: sizes are the thesis's own: a header of 20 bytes a packet; a message has its payload, 2
        bytes for its source, and 4 for each entry of its stamp, its own number included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal

from msgspec import Struct

from inorder.guarantee.peer import Order, Peered, order_of
from inorder.guarantee.registry import guarantee
from inorder.protocols.causal.options import Options as Causal
from inorder.protocols.cube.messages import Ack, Packet, Payload, Pub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.sim.cube import preset
from inorder.sim.network import Model, Reading

VCUBE = "VCube-PS"

# What its points depend on, besides what all points do.
SOURCES = (
    "experiments/cube/vcube.py", "src/inorder/protocols/cube/*.py",
    "src/inorder/protocols/causal/*.py", "src/inorder/guarantee/peer.py", "src/inorder/sim/cube.py",
    "src/inorder/core/table.py", "src/inorder/core/waiting.py",
)  # fmt: skip

# Of the figures that compare it with others.
CODE_OF = {VCUBE: SOURCES}

HEADER, SOURCE_ID, ENTRY = 20, 2, 4


class Cube(Struct, frozen=True, kw_only=True):
    """What can be chosen about the peers of a run."""

    # 1 is the thesis's stop and wait.
    window: int = 1
    stamps: Literal["barrier", "clock"] = "barrier"
    aggregate: Literal["none", "causal"] = "none"
    trees: Literal["source", "single"] = "source"
    payload: int = 50
    # After so long an acknowledgement arrives; None: it takes the queues, like everything else.
    ack_after: float | None = 102.0


QUEUED = Cube(ack_after=None)


class Thesis:
    """What messages count for in chapter 4."""

    header = HEADER

    def __init__(self, payload: int) -> None:
        self._payload = payload

    def of(self, message: Payload) -> int:
        if isinstance(message, Ack):
            return 0
        return self._payload + SOURCE_ID + ENTRY * (1 + len(message.body.places))


def publications(message: Any) -> list[Pub[Any]]:
    """The publications in what a link carries."""
    if type(message) is Pub:
        return [message]
    if isinstance(message, Packet):
        return [each for each in message.messages if isinstance(each, Pub)]
    return []


class Beside:
    """A model in which whatever carries acknowledgements only passes the queues by."""

    def __init__(self, model: Model, after: float) -> None:
        self.sized = model.sized
        self._model = model
        self._show = model.show if isinstance(model, Reading) else None
        self._after = after
        self._passes = False

    def show(self, message: Any) -> None:
        kind = type(message)
        self._passes = kind is Ack or (kind is Packet and not publications(message))
        if self._show:
            self._show(message)

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        if self._passes:
            return now + self._after
        return self._model.arrival(source, target, size, now, rng)


def around(model: Model, cube: Cube) -> Model:
    return model if cube.ack_after is None else Beside(model, cube.ack_after)


def machines(names: Sequence[str], cube: Cube) -> dict[str, Peered]:
    """A peer of each name, nobody a member of anything."""
    peers = Peers(names, mapped=True)
    options = Options(
        window=cube.window, links="trusted", aggregate=cube.aggregate, trees=cube.trees
    )
    order: Order = order_of(guarantee("causal"), Causal(stamps=cube.stamps), ())
    made = {name: Peered(name, peers, options, order) for name in names}
    if cube.aggregate != "none":
        sizes = Thesis(cube.payload)
        for peer in made.values():
            peer.measure_with(sizes)
    return made


def preset_all(made: Mapping[str, Peered], members: Mapping[str, Sequence[str]]) -> None:
    """These are members of these topics; their applications have still to subscribe."""
    for topic, names in members.items():
        preset(made.values(), (topic,), names)
