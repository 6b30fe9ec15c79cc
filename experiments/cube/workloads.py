"""What the applications of a run do: who publishes when, on which topic, who comes and who goes.

| load                 | as the thesis states it                    | as it fits its numbers       |
|----------------------|--------------------------------------------|------------------------------|
| chapter 4, one each  | a Poisson law with a rate of 1,000         | even in [0, 400], t_pp sd 40 |
| chapter 5, one each  | even in [0, 1000]                          | the same                     |
| many topics (5.10)   | each node every 500 on average, Zipf 0.825 | exponential gaps (a guess)   |
| churn (5.11)         | sessions of a Poisson process, t_med       | the same; rates a second     |
| an answer each (5.9) | a random wait                              | even in [0, 1000] (a guess)  |

Chapter 4's words do not say which law is meant. An exponential one of mean 1,000 and a whole number
by Poisson's law give 3 to 8 times too little aggregation. An even time in [0, 400] with a standard
deviation of 40 was fitted to table 4.1 at 256 nodes; the other sizes are its predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from itertools import accumulate
from math import exp, log
from random import Random

from msgspec import Struct

from experiments.cube.world import TOPIC, Links, Run
from inorder.core.event import Event
from inorder.sim.laws import Law, Normal

Moment = Callable[[Random], float]

ZIPF = 0.825


def exponential(mean: float) -> Moment:
    return lambda rng: rng.expovariate(1.0) * mean


def even(until: float, since: float = 0.0) -> Moment:
    return lambda rng: rng.uniform(since, until)


def poisson(mean: float) -> Moment:
    """A whole number by Poisson's law, by counting: exact, and quick enough for a mean of 1,000.

    >>> rng = Random(1)
    >>> [poisson(4.0)(rng) for _ in range(8)]
    [4.0, 4.0, 3.0, 5.0, 1.0, 4.0, 3.0, 3.0]
    """

    def draw(rng: Random) -> float:
        # In portions, as exp(-mean) of a large mean is nothing.
        count, left = 0, mean
        while left > 0.0:
            portion = min(left, 100.0)
            left -= portion
            floor, product = exp(-portion), rng.random()
            while product > floor:
                count += 1
                product *= rng.random()
        return float(count)

    return draw


class Load(Struct, frozen=True):
    """When each node publishes its one message, and how the propagation varies."""

    name: str
    at: Moment
    propagation: Law


# Chapter 4's load, in its words (two readings) and as it fits.
CHAPTER_4 = (
    Load("exponential, mean 1000", exponential(1000.0), Normal(mean=100.0, std=25.0)),
    Load("Poisson, mean 1000", poisson(1000.0), Normal(mean=100.0, std=25.0)),
    Load("even in 1000", even(1000.0), Normal(mean=100.0, std=25.0)),
    Load("even in 400, sd 40", even(400.0), Normal(mean=100.0, std=40.0)),
)
LOADS = {load.name: load for load in CHAPTER_4}
STATED, CALIBRATED = CHAPTER_4[0].name, CHAPTER_4[-1].name


def links(load: Load) -> Links:
    return Links(propagation=load.propagation)


def one_each(run: Run, nodes: Sequence[int], at: Moment, rng: Random) -> None:
    for node in nodes:
        run.publish(at(rng), node)


def zipf(topics: int, exponent: float = ZIPF) -> list[float]:
    """Weights of the ranks, summing to 1; exponent 0 is even.

    >>> zipf(4, 0.0)
    [0.25, 0.25, 0.25, 0.25]
    """
    weights = [rank**-exponent for rank in range(1, topics + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def stream(
    run: Run,
    messages: int,
    topics: Sequence[str],
    weights: Sequence[float],
    gap: float,
    rng: Random,
) -> float:
    """Every node publishes after exponential gaps of this mean, until there are so many messages
    in all; the time of the last."""
    due = [(rng.expovariate(1.0) * gap, node) for node in range(run.setting.size)]
    heapify(due)
    sums = list(accumulate(weights))
    at = 0.0
    for _ in range(messages):
        at, node = due[0]
        run.publish(at, node, rng.choices(topics, cum_weights=sums)[0])
        heapreplace(due, (at + rng.expovariate(1.0) * gap, node))
    return at


def churn(
    run: Run, median: float, every: float, until: float, rng: Random, topic: str = TOPIC
) -> int:
    """Each member stays for an exponential time of this median and is replaced at that moment by a
    node drawn from the others; an infinite median is no churn. At each multiple of `every` a member
    of that moment publishes. How many changes there are, of which half are joins."""
    seats = list(run.setting.members[topic])
    inside = set(seats)
    others = [node for node in range(run.setting.size) if node not in inside]
    mean = median / log(2.0)
    due = [(rng.expovariate(1.0) * mean, seat) for seat in range(len(seats))]
    heapify(due)
    changes, publication = 0, every
    while True:
        at, seat = due[0]
        while publication <= min(at, until):
            run.publish(publication, rng.choice(seats), topic)
            publication += every
        if at >= until:
            return changes
        place = rng.randrange(len(others))
        leaver, comer = seats[seat], others[place]
        seats[seat], others[place] = comer, leaver
        run.leave(at, leaver, topic)
        run.join(at, comer, topic)
        changes += 2
        heapreplace(due, (at + rng.expovariate(1.0) * mean, seat))


class Answers:
    """Figure 5.9: some nodes ask at the beginning, and every other one publishes once, a random
    wait after it has heard so many questions."""

    def __init__(self, run: Run, questions: int, wait: Moment, rng: Random) -> None:
        self._run = run
        self._questions = questions
        self._wait = wait
        self._rng = rng
        self._asking = rng.sample(range(run.setting.size), questions)
        self._names = {run.names[node] for node in self._asking}
        self._heard: dict[str, int] = {}
        run.world.application = self

    def begin(self) -> None:
        for node in self._asking:
            self._run.publish(0.0, node)

    def delivered(self, node: str, event: Event, in_order: bool) -> None:
        if event.publisher not in self._names or node in self._names:
            return
        self._heard[node] = heard = self._heard.get(node, 0) + 1
        if heard == self._questions:
            world = self._run.world
            wait = self._wait(self._rng)
            world.agenda.after(wait, world.publish, node, event.topic, {})

    def answered(self, node: str, call: str, outcome: str) -> None:
        pass

    def restarted(self, node: str) -> None:
        pass
