"""Plans of storms (storm.py): who does what and when, and what goes wrong."""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from msgspec import Struct, structs

from inorder.protocols.cube.options import Options

# What a cut may wait for: the first input whose effects send one of these. "" is any input.
KINDS = ("Sub", "Act", "Uns", "Pub", "Ack", "Flush", "Kept", "")
MOODS = ("even", "links", "links", "kinds", "slow")


class Do(Struct, frozen=True):
    """What an application does; `toggle` joins or leaves."""

    at: float
    node: int
    verb: Literal["publish", "toggle"]
    topic: str = "t"


class Cut(Struct, frozen=True):
    """A crash. `part` of the effects happen; back after a while, or never; what it sent within the
    last `lost_s` seconds is lost."""

    at: float
    node: int
    kind: str
    part: float
    back: float | None
    lost_s: float = 0.0


class Strike(Struct, frozen=True):
    """A crash in the input of a node that has this number, behind so many effects."""

    node: int
    input: int
    effects: int
    back: float | None
    lost_s: float = 0.0


class Pause(Struct, frozen=True):
    """A process stands still."""

    at: float
    node: int
    until: float


class Split(Struct, frozen=True):
    """Some hear nothing of the others for a while, nor these of them."""

    at: float
    until: float
    nodes: tuple[int, ...]


class Orphan(Struct, frozen=True):
    """The first publication of a node from some time on reaches one peer only; that one answers,
    and when the answer has left both are dead. They come back, or not."""

    at: float
    node: int
    back: float | None


Fault = Cut | Strike | Pause | Split | Orphan


class Plan(Struct, frozen=True):
    """One run."""

    seed: int
    count: int
    window: int = 2
    members: tuple[int, ...] = ()
    calls: tuple[Do, ...] = ()
    faults: tuple[Fault, ...] = ()
    mood: str = "even"
    loss: float = 0.0
    double: float = 0.0
    reply: float = 0.0
    guarantee: str = "causal"
    order: dict[str, str] = {}
    aggregate: Any = "none"
    watch: Any = "cube"
    # Links that lose all but the detector's words, until the faults are over.
    mute: tuple[tuple[int, int], ...] = ()

    @property
    def names(self) -> list[str]:
        return [f"p{number:02}" for number in range(self.count)]

    @property
    def topics(self) -> list[str]:
        return sorted({"t", *(call.topic for call in self.calls)})

    @property
    def options(self) -> Options:
        return Options(
            window=self.window, resend=0.2, detection=True, round=0.5, test_timeout=0.45,
            declare_after=2.5, aggregate=self.aggregate, watch=self.watch,
        )  # fmt: skip


def draw(seed: int, **given: Any) -> Plan:
    """The plan of a seed."""
    rng = Random(f"{seed}/plan")
    size = given.pop("count", 0) or rng.choice((3, 4, 5, 6, 7, 8, 8, 8, 9, 11, 13, 16))
    share = rng.choice((0.4, 0.7, 1.0))
    members = tuple(number for number in range(size) if rng.random() < share)
    topics = ("t",) if rng.random() < 0.8 else ("t", "u")
    busy = rng.random() < 0.5
    calls = []
    for _ in range(rng.randint(6, 24)):
        # Many calls at nearly the same time, or spread over the run.
        at = rng.choice((1.0, 2.0, 4.0)) + rng.random() * 0.3 if busy else rng.uniform(0.0, 7.0)
        verb: Any = "publish" if rng.random() < 0.7 else "toggle"
        calls.append(Do(at, rng.randrange(size), verb, rng.choice(topics)))
    drawn = faults(rng, size, members)
    calls += [Do(each.at, each.node, "publish") for each in drawn if isinstance(each, Orphan)]
    plan = Plan(
        seed, size, rng.choice((1, 2, 3)), members, tuple(sorted(calls, key=lambda each: each.at)),
        drawn, rng.choice(MOODS), rng.choice((0.0, 0.0, 0.03, 0.1)), rng.choice((0.0, 0.1)),
        rng.choice((0.0, 0.1, 0.3)),
    )  # fmt: skip
    return structs.replace(plan, **given)


def faults(rng: Random, size: int, members: tuple[int, ...]) -> tuple[Fault, ...]:
    """Cuts, pauses and orphans; those that never come back are a minority."""
    drawn: list[Fault] = []
    mortal = rng.sample(range(size), (size - 1) // 2)
    for _ in range(rng.randint(1, 4)):
        node = rng.randrange(size)
        back = rng.choice((0.0, 0.3, 1.5, 4.0, 6.0))
        for_good = node in mortal and rng.random() < 0.5
        lost_s = rng.choice((0.0, 0.0, 0.2, 1.0))
        at = rng.uniform(0.0, 6.0)
        drawn.append(
            Cut(at, node, rng.choice(KINDS), rng.random(), None if for_good else back, lost_s)
        )
    for _ in range(rng.choice((0, 0, 1, 2))):
        at = rng.uniform(0.0, 6.0)
        drawn.append(Pause(at, rng.randrange(size), at + rng.choice((0.7, 1.5, 3.0, 5.0))))
    if size > 2 and rng.random() < 0.15:
        apart = tuple(sorted(rng.sample(range(size), rng.randint(1, size // 2))))
        at = rng.uniform(0.5, 4.0)
        drawn.append(Split(at, at + rng.choice((1.0, 4.0, 6.0)), apart))
    if len(members) > 3 and rng.random() < 0.5:
        drawn.append(Orphan(rng.uniform(0.5, 5.0), rng.choice(members), rng.choice((4.0, 6.0))))
    return tuple(drawn)


def neighbours(plan: Plan) -> Plan:
    """The same over edges of the cube only."""
    return structs.replace(plan, watch="neighbours")


def clocks(plan: Plan) -> Plan:
    """The thesis's chapter 4: members never change, stamps are clocks, and they are bundled by."""
    calls = tuple(call for call in plan.calls if call.verb == "publish")
    return structs.replace(
        plan, calls=calls, members=tuple(range(plan.count)), order={"stamps": "clock"},
        aggregate="causal",
    )  # fmt: skip
