"""Network models: when does a message arrive?

| model  | arrival                                                                          |
|--------|----------------------------------------------------------------------------------|
| ideal  | at once                                                                          |
| delay  | after a delay drawn per message from a named law                                 |
| wan    | the papers' wide-area network: a pair of hosts is fast (80 %) or slow (20 %) for |
|        | the whole run, and draws each message's delay from its class; or each message    |
|        | draws the class as well                                                          |
| plane  | the further apart two hosts stand on a plane, the later (plane.py)               |
| packet | processing + wait in the sender's output queue + transmission (so long a copy,   |
|        | or so long a byte) + propagation                                                 |
| biased | exponential, each link with a speed of 1, 4, 30 or 200 for the whole run         |

The two-class figures are those of "Total notification order" (technical report 9/2011, section 6).
The biased model is for exploration: with exponential delays the next arrival is a weighted random
choice among all messages in flight, and a fixed spread of speeds finds overtaking that even odds
miss.

`Paired` around a model lets two runs that send different things draw the same delays.
"""

from __future__ import annotations

from random import Random
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from inorder.sim.laws import Law, Normal
from inorder.sim.network import Model

FAST = Normal(mean=0.021, std=0.01085)
SLOW = Normal(mean=0.240, std=0.12927)
FAST_SHARE = 0.8

SPEEDS = (1.0, 4.0, 30.0, 200.0)


@runtime_checkable
class Far(Protocol):
    """A model in which a pair of hosts is near or far for the whole run."""

    def mean_s(self, one: str, other: str) -> float:
        """How long a message takes between two different hosts, on average, either way."""


class Ideal:
    sized = False

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        return now


class Delay:
    sized = False

    def __init__(self, law: Law) -> None:
        self._law = law

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        return now + self._law.draw(rng)


class _PerPair:
    """Something drawn once for each unordered pair of hosts, whatever the order of asking."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._drawn: dict[tuple[str, str], float] = {}

    def uniform(self, one: str, other: str) -> float:
        pair = (one, other) if one <= other else (other, one)
        value = self._drawn.get(pair)
        if value is None:
            value = Random(f"{self._seed}/{pair[0]}/{pair[1]}").random()
            self._drawn[pair] = value
        return value


class Wan:
    """Whether a link keeps its class is not in the report; `WanPerMessage` is the other reading."""

    sized = False

    def __init__(self, seed: str) -> None:
        self._class = _PerPair(f"{seed}/wan")

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        return now + (FAST if self.fast(source, target) else SLOW).draw(rng)

    def fast(self, one: str, other: str) -> bool:
        return self._class.uniform(one, other) < FAST_SHARE

    def mean_s(self, one: str, other: str) -> float:
        return (FAST if self.fast(one, other) else SLOW).mean


class WanPerMessage:
    """Every message of any link is slow with the same odds: no pair of hosts is near."""

    sized = False

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        return now + (FAST if rng.random() < FAST_SHARE else SLOW).draw(rng)


class Queue(Struct):
    """What has gone through one node's output queue: the waits begin after the processing and end
    when the transmission begins."""

    copies: int = 0
    waited_s: float = 0.0
    longest_s: float = 0.0

    def note(self, wait_s: float) -> None:
        self.copies += 1
        self.waited_s += wait_s
        if wait_s > self.longest_s:
            self.longest_s = wait_s

    @property
    def mean_wait_s(self) -> float:
        return self.waited_s / self.copies if self.copies else 0.0

    def mean_length(self, period_s: float) -> float:
        """How many copies wait, on average over a period, the one under way not counted.

        Every copy is in line for as long as it waits, so the sum of the waits is the length summed
        over time: exact if the line is empty when the period begins and when it ends.
        """
        return self.waited_s / period_s


class Packet:
    """A node sends one packet at a time: copies for several destinations queue up, first in, first
    out. Processing only delays: a node works on any number of packets at once.

    A transmission takes `transmission_s`, and longer by the size if there is a bandwidth. With
    `watch`, `queues` says what each node's queue has seen.
    """

    def __init__(
        self,
        processing_s: float,
        bits_per_s: float | None,
        propagation: Law,
        *,
        transmission_s: float = 0.0,
        watch: bool = False,
    ) -> None:
        self.sized = bits_per_s is not None
        self.queues: dict[str, Queue] = {}
        self._processing_s = processing_s
        self._transmission_s = transmission_s
        self._s_per_byte = 8.0 / bits_per_s if bits_per_s is not None else 0.0
        self._propagation = propagation
        self._watch = watch
        self._free_at: dict[str, float] = {}

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        ready = now + self._processing_s
        free = self._free_at.get(source, 0.0)
        begun = ready if ready > free else free
        sent = begun + self._transmission_s + size * self._s_per_byte
        self._free_at[source] = sent
        if self._watch:
            self._note(source, begun - ready)
        return sent + self._propagation.draw(rng)

    def is_busy(self, source: str, now: float) -> bool:
        """Whether a copy that is sent now would have to wait."""
        return self._free_at.get(source, 0.0) > now + self._processing_s

    def _note(self, source: str, wait_s: float) -> None:
        queue = self.queues.get(source)
        if queue is None:
            queue = self.queues[source] = Queue()
        queue.note(wait_s)


class Biased:
    """`mean_s` is the mean delay of the slowest link."""

    sized = False

    def __init__(self, seed: str, mean_s: float) -> None:
        self._seed = f"{seed}/biased"
        self._mean_s = mean_s
        self._link_mean: dict[tuple[str, str], float] = {}

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        mean = self._link_mean.get((source, target))
        if mean is None:
            speeds = Random(f"{self._seed}/{source}/{target}").choice(SPEEDS)
            # A slow subscriber is slow for everybody, on top of its links.
            slowness = Random(f"{self._seed}/{target}").choice(SPEEDS)
            mean = self._mean_s * (1.0 / speeds + 1.0 / slowness) / 2.0
            self._link_mean[(source, target)] = mean
        return now + rng.expovariate(1.0) * mean


def identity(message: Any) -> Any:
    """What two runs would call the same message: its `key`, or that of the first of its `messages`
    if it is a packet; None if it has neither."""
    key = getattr(message, "key", None)
    if callable(key):
        key = key()
    if key is None and (inside := getattr(message, "messages", None)):
        return identity(inside[0])
    return key


class Paired:
    """A model whose chance belongs to the message and the link, and not to the order of use.

    A message that two runs send over the same link then takes the same draws in both, whatever
    else either of them sends: a run with bundling stands beside the same run without. A queue is no
    chance and stays the run's own. Messages without an identity draw from their sender's stream, as
    do the weather and all hops on `ways` of the network (sim/network.py), which show no message.
    """

    def __init__(self, model: Model, seed: str) -> None:
        self.sized = model.sized
        self._model = model
        self._seed = f"{seed}/paired"
        self._rng = Random()
        self._key: Any = None

    def show(self, message: Any) -> None:
        self._key = identity(message)

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        if self._key is not None:
            rng = self._rng
            rng.seed(f"{self._seed}/{self._key}/{source}/{target}")
            self._key = None
        return self._model.arrival(source, target, size, now, rng)


Delays = dict[tuple[str, str, float], float]


class Remembered:
    """Another model's arrivals by link and time of sending, so that a run with less in it can be
    told again with the delays it had."""

    def __init__(self, model: Model, delays: Delays, record: bool) -> None:
        self.sized = model.sized
        self._model = model
        self._delays = delays
        self._record = record

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        link = (source, target, now)
        arrival = self._delays.get(link)
        if arrival is None:
            arrival = self._model.arrival(source, target, size, now, rng)
            if self._record:
                self._delays[link] = arrival
        return arrival
