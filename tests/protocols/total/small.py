"""Tiny configurations for the exhaustive explorer: every schedule, not some.

A configuration is a set-up (who holds what, done before the search starts) and a program per
client. Links are trusted: the explorer's own are reliable and in order, and diffusions may
overtake each other, which is the most favourable network the papers allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

from inorder.core.machine import make_all
from inorder.protocols.total import Client, Options, services
from inorder.protocols.total.messages import Accepted, Ask, Left, Ready
from inorder.sim.exhaust import Exhausted, exhaust
from inorder.sim.pool import Op, Pool, Step

FORMS: dict[str, dict[str, Any]] = {
    "tag compact": {"mode": "tag", "stamp": "compact", "path": "sg"},
    "tag": {"mode": "tag", "buffer": 0},
    "ttl": {"mode": "tag", "buffer": 100, "ttl": 1.0},
    "hold": {"mode": "hold"},
}


class Small(Pool):
    """A pool in which steps that concern nobody else are taken at once.

    An `Accepted` changes only its publisher, a `Left` only a count that nothing but a freeze looks
    at, and a join has no effect on others before the walk that follows it. An `Ask` and a `Ready`
    change only when the ranking freezes, and its `Freeze` may take as long as it likes. Taking them
    early loses no schedule that a judge could tell apart, and there are far fewer to try.
    """

    # Changes that may still be given up.
    aborts = 0

    def steps(self, timer_may_fire: Callable[[str], bool] = lambda timer: True) -> list[Step]:
        return super().steps(
            lambda timer: timer_may_fire(timer) or (timer == "change" and self.aborts > 0)
        )

    def take(self, step: Step, crash_after: int | None = None) -> list[str]:
        lines = super().take(step, crash_after)
        self.aborts -= step.source == "change"
        while early := self._early():
            lines += super().take(early)
        self.done = tuple(sorted(self.done))
        return lines

    def _early(self) -> Step | None:
        for node, topic in self.joining:
            return Step("join", node, source=topic)
        frozen = "ranking" in self.machines
        early = Accepted | Ask | Ready if frozen else Accepted | Left
        for (source, node), queue in sorted(self.links.items()):
            if queue and isinstance(queue[0], early):
                return Step("receive", node, source)
        return None


def pool(
    order: Mapping[str, Any],
    topics: int,
    setup: Mapping[str, str],
    programs: Mapping[str, Sequence[str]],
    reorder: Sequence[str] = (),
    *,
    ordered: bool = True,
) -> Pool:
    """Topics are named 1, 2, ... by rank; `setup={"A": "12"}`, `programs={"p": ["publish 1"]}`.
    Where links do not keep their order, sessions do."""
    names = [str(number) for number in range(1, topics + 1)]
    # Nobody asks for a change but the pool: states that differ only in what is counted are one.
    quiet = {"metric": "f", "beta": 10.0} if "swaps" in order else {}
    links = "trusted" if ordered else "sessions"
    options = Options(links=links, **order, **quiet)  # type: ignore[arg-type]
    machines: dict[str, Any] = dict(make_all(services(names, options)))
    for name in sorted({*setup, *programs}):
        machines[name] = Client(name, names, options)
    made = Small(machines, ordered)
    for name, held in setup.items():
        made.perform(name, Op("subscribe", tuple(held)))
        _settle(made)
    for number, order_to_come in enumerate(reorder):
        commit(made, number)
        ranking = made.machines["ranking"]
        made._carry_out("ranking", ranking.reorder(tuple(order_to_come), 0.0), [])
    for name, lines in programs.items():
        made.programs[name] = tuple(_op(line) for line in lines)
    return made


def commit(made: Pool, epoch: int) -> None:
    """Go on until the ranking has decided for this epoch; nobody has heard of it yet."""
    while made.machines["ranking"].s.epoch < epoch:
        steps = made.steps(lambda timer: timer == "collect")
        made.take(next(step for step in steps if "ranking" in (step.node, step.source)))


def _op(line: str) -> Op:
    verb, topics, *rest = line.split()
    return Op(verb, tuple(topics), wait=bool(rest))  # type: ignore[arg-type]


def _settle(made: Pool) -> None:
    while steps := made.steps(lambda timer: timer == "collect"):
        made.take(steps[0])
    made.timers.clear()


def search(
    made: Pool, *, safety: bool = False, aborts: int = 0, states_max: int = 300_000
) -> Exhausted:
    """Every schedule; buffers' timers and the ranking's may fire whenever they run.

    `safety` looks for two orders only, and passes over what is merely lost or left waiting. So many
    changes may be given up.
    """
    judge = (lambda made, final: _two_orders(made)) if safety else verdict
    if isinstance(made, Small):
        made.aborts = aborts
    return exhaust(made, judge, timer_may_fire=_may_fire, states_max=states_max)


def wander(made: Pool, seed: int) -> tuple[str | None, int]:
    """One random schedule to its end: every link has a speed of its own (see sim/models.py)."""
    rng = Random(seed)
    made = made.fork()
    speeds: dict[str, float] = {}
    taken = 0
    while steps := made.steps(_may_fire):
        weights = []
        for step in steps:
            lane = f"{step.kind} {step.source} {step.node} {step.diffused and step.index}"
            weights.append(speeds.setdefault(lane, rng.choice((1.0, 4.0, 30.0, 200.0))))
        made.take(rng.choices(steps, weights)[0])
        taken += 1
        if problem := verdict(made, False):
            return problem, taken
    return verdict(made, True), taken


def _may_fire(timer: str) -> bool:
    return timer.startswith("ttl/") or timer == "collect"


def verdict(made: Pool, final: bool) -> str | None:
    for check in (_twice, _two_orders, _fifo):
        if problem := check(made):
            return problem
    if not final:
        return None
    return _left_over(made) or _cycle(made)


def _twice(made: Pool) -> str | None:
    for name, log in made.delivered.items():
        if len({event for event, _ in log}) != len(log):
            return f"{name} delivers twice"
    return None


def _two_orders(made: Pool) -> str | None:
    places = {
        name: {event: place for place, (event, in_order) in enumerate(log) if in_order}
        for name, log in made.delivered.items()
    }
    for a, b in combinations(sorted(places), 2):
        common = sorted({*places[a]} & {*places[b]})
        for e, f in combinations(common, 2):
            if (places[a][e] < places[a][f]) != (places[b][e] < places[b][f]):
                return f"{a} and {b} deliver {e} and {f} in two orders"
    return None


def _fifo(made: Pool) -> str | None:
    topic = {event: where for kind, event, where, _ in made.done if kind == "publish"}
    for name, log in made.delivered.items():
        last: dict[tuple[str, str], int] = {}
        for event, in_order in log:
            publisher, _, seq = event.rpartition(":")
            key = (publisher, topic[event])
            if in_order:
                if int(seq) < last.get(key, 0):
                    return f"{name} delivers {event} behind a later one"
                last[key] = int(seq)
    return None


def _left_over(made: Pool) -> str | None:
    counts: dict[str, int] = {}
    for machine in made.machines.values():
        for topic, manager in getattr(machine, "managers", {}).items():
            counts[topic] = manager.s.count
    for name, machine in sorted(made.machines.items()):
        if not machine.idle:  # type: ignore[attr-defined]
            return f"{name} keeps something back"
        if isinstance(machine, Client):
            for topic, numbers in machine.subscriber.s.numbers.items():
                if numbers.have != counts[topic]:
                    return f"{name} misses {topic} {numbers.have + 1}"
    return f"{sorted(made._waiting)} wait" if made._waiting else None


def _cycle(made: Pool) -> str | None:
    """Hold only: all delivery orders together have no cycle."""
    if any(not in_order for log in made.delivered.values() for _, in_order in log):
        return None
    client = next(m for m in made.machines.values() if isinstance(m, Client))
    if client._s.options.mode != "hold":
        return None
    after: dict[str, set[str]] = {}
    for log in made.delivered.values():
        events = [event for event, _ in log]
        for index, event in enumerate(events):
            after.setdefault(event, set()).update(events[index + 1 : index + 2])
    done: dict[str, bool] = {}

    def visit(event: str) -> bool:
        if event in done:
            return done[event]
        done[event] = False
        done[event] = all(visit(other) for other in sorted(after.get(event, ())))
        return done[event]

    return None if all(visit(event) for event in sorted(after)) else "the orders make a circle"


Case = Callable[[Mapping[str, Any]], Pool]

# The scenarios of the errata, by their names there.
CASES: dict[str, tuple[int, dict[str, str], dict[str, list[str]]]] = {
    "R1": (3, {"A": "123", "B": "12", "C": "23"}, {"p": ["publish 2"], "q": ["publish 3"]}),
    "R2": (2, {"A": "12", "B": "2"},
           {"B": ["subscribe 1"], "p": ["publish 2"], "q": ["publish 1"]}),
    "R3": (2, {"A": "12", "B": "12"},
           {"A": ["unsubscribe 1"], "p": ["publish 2"], "q": ["publish 1"]}),
    "R4": (3, {"A": "12", "B": "12"},
           {"A": ["subscribe 3"], "p": ["publish 1"], "q": ["publish 2"]}),
    "R5": (1, {"B": "1"}, {"A": ["subscribe 1"], "p": ["publish 1", "publish 1"]}),
    "R6": (1, {"A": "1"}, {"B": ["subscribe 1"], "p": ["publish 1"]}),
    "S1": (1, {"A": "1", "B": "1"}, {"p": ["publish 1", "publish 1"]}),
    "R7": (2, {"A": "12", "B": "12"}, {"p": ["publish 2"], "q": ["publish 1"]}),
    "S2": (3, {"A": "12", "B": "23"}, {"p": ["publish 2"], "q": ["publish 3"], "r": ["publish 1"]}),
    "S3": (3, {"A": "12"}, {"B": ["subscribe 23"], "p": ["publish 2"]}),
    "S4": (1, {"A": "1"}, {"B": ["subscribe 1"], "p": ["publish 1", "publish 1"]}),
    "S5": (2, {"A": "1"}, {"A": ["subscribe 2"], "p": ["publish 1"], "q": ["publish 2"]}),
    "S6": (2, {"A": "12", "B": "12"},
           {"B": ["unsubscribe 1"], "p": ["publish 2"], "q": ["publish 1"]}),
    "S11": (2, {"A": "12"}, {"B": ["subscribe 12"], "p": ["publish 2"], "q": ["publish 1"]}),
    "F": (1, {"A": "1", "B": "1"}, {"p": ["publish 1", "publish 1"], "q": ["publish 1"]}),
    # Two topics sequenced through a third that one of the subscribers does not hold.
    "third": (3, {"A": "23", "B": "12", "C": "23"}, {"p": ["publish 2"], "q": ["publish 3"]}),
    "add": (2, {"A": "2", "B": "2"},
            {"A": ["subscribe 1"], "B": ["subscribe 1"], "p": ["publish 2"], "q": ["publish 1"]}),
    "reply": (2, {"A": "12", "B": "12"}, {"A": ["publish 1"], "B": ["publish 2"]}),
}  # fmt: skip

# Larger ones: not in every form, and cut by a limit.
LARGE: dict[str, tuple[int, dict[str, str], dict[str, list[str]]]] = {
    "R1b": (4, {"A": "1234", "B": "1234"},
            {"p": ["publish 4"], "q": ["publish 3"], "r": ["publish 1"]}),
    "S8": (4, {"A": "1234", "B": "12", "C": "23", "D": "34", "E": "14"},
           {"p": ["publish 1"], "q": ["publish 2"], "r": ["publish 3"], "t": ["publish 4"]}),
    "S9": (4, {"A": "134", "D": "24"},
           {"p": ["publish 4"], "q": ["publish 3"], "r": ["publish 1"]}),
    "S13": (2, {"A": "12", "B": "12"},
            {"A": ["unsubscribe 1", "subscribe 1"], "p": ["publish 2"], "q": ["publish 1"]}),
    "S13 both": (2, {"A": "12", "B": "12"},
                 {"A": ["unsubscribe 1", "subscribe 1"], "B": ["unsubscribe 1", "subscribe 1"],
                  "p": ["publish 2"], "q": ["publish 1"]}),
}  # fmt: skip

# Changes of the order: the orders to come, asked for one after the other.
SWAPS: dict[str, tuple[int, dict[str, str], dict[str, list[str]], list[str]]] = {
    "E1": (3, {"A": "12", "C": "13"},
           {"p": ["publish 3"], "q": ["publish 2"], "r": ["publish 1"]}, ["213"]),
    "E1 both": (3, {"A": "12", "B": "12", "C": "13"},
                {"p": ["publish 3"], "q": ["publish 2"], "r": ["publish 1"]}, ["213"]),
    "E2": (2, {"A": "12"}, {"p": ["publish 2"], "q": ["publish 1"]}, ["21"]),
    "E3": (2, {"A": "12", "B": "2"}, {"B": ["subscribe 1"], "p": ["publish 2"]}, ["21"]),
    "E4": (2, {"A": "12", "B": "12"}, {"p": ["publish 2"], "q": ["publish 1"]}, ["21", "12"]),
    "E5": (2, {"A": "12", "B": "12"}, {"p": ["publish 1"], "q": ["publish 2"]}, ["21"]),
}  # fmt: skip
