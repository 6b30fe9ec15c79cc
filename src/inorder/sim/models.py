"""Network models: when does a message arrive?

| model  | arrival                                                                          |
|--------|----------------------------------------------------------------------------------|
| ideal  | at once                                                                          |
| delay  | after a delay drawn per message from a named law                                 |
| wan    | the papers' wide-area network: a pair of hosts is fast (80 %) or slow (20 %) for |
|        | the whole run, and draws each message's delay from its class; or each message    |
|        | draws the class as well                                                          |
| packet | processing + wait in the sender's output queue + transmission + propagation      |
| biased | exponential, each link with a speed of 1, 4, 30 or 200 for the whole run         |

The two-class figures are those of "Total notification order" (technical report 9/2011, section 6).
The biased model is for exploration: with exponential delays the next arrival is a weighted random
choice among all messages in flight, and a fixed spread of speeds finds overtaking that even odds
miss.
"""

from __future__ import annotations

from random import Random

from inorder.sim.laws import Law, Normal
from inorder.sim.network import Model

FAST = Normal(mean=0.021, std=0.01085)
SLOW = Normal(mean=0.240, std=0.12927)
FAST_SHARE = 0.8

SPEEDS = (1.0, 4.0, 30.0, 200.0)


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


class WanPerMessage:
    """Every message of any link is slow with the same odds: no pair of hosts is near."""

    sized = False

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        return now + (FAST if rng.random() < FAST_SHARE else SLOW).draw(rng)


class Packet:
    """A node sends one packet at a time: copies for several destinations queue up."""

    sized = True

    def __init__(self, processing_s: float, bits_per_s: float, propagation: Law) -> None:
        self._processing_s = processing_s
        self._s_per_byte = 8.0 / bits_per_s
        self._propagation = propagation
        self._free_at: dict[str, float] = {}

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        ready = now + self._processing_s
        free = self._free_at.get(source, 0.0)
        sent = (ready if ready > free else free) + size * self._s_per_byte
        self._free_at[source] = sent
        return sent + self._propagation.draw(rng)


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
