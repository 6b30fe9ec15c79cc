"""Tiny configurations for the exhaustive explorer: every schedule, not some.

Four peers, a window of one, three to five calls, links that are trusted and keep no order. A case
says who is a member from the start, and what each application does. Names are letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import structs

from inorder.core import wire
from inorder.protocols.cube.messages import PUB, Ack, Sub
from inorder.protocols.cube.wave import ROOT
from inorder.sim.exhaust import Exhausted, exhaust
from inorder.sim.pool import Op, Pool, Step
from tests.protocols.cube.judge import Broken
from tests.protocols.cube.world import Cube

NAMES = ("a", "b", "c", "d")

Case = tuple[str, dict[str, Sequence[str]]]


class Tiny(Cube):
    """A pool in which steps that commute with all others are taken at once.

    They are: an acknowledgement that does not end a wave at its source, since it changes one wave's
    list and nothing looks at that before the last one; one that ends a publication at a source with
    nothing more to do; and whatever comes to a peer that holds no topic and will not. Each would
    come sooner or later, none changes what another step does, and no judge sees when it happened.
    """

    # Off where packets may come twice, which does not commute with acknowledgements.
    eager = True
    # So many packets may still come twice. Such a step is marked as one of a diffusion.
    doubles = 0
    problem = ""

    def take(self, step: Step, crash_after: int | None = None) -> list[str]:
        lines: list[str] = []
        link = (step.source, step.node)
        again = self.links[link][step.index] if step.diffused else None
        try:
            lines += super().take(structs.replace(step, diffused=False))
            if again is not None:
                self.doubles -= 1
                self.links[link] = (*self.links[link], again)
            while self.eager and (early := self._early()):
                lines += super().take(early)
        except Broken as error:
            self.problem = str(error)
        return lines

    def steps(self, timer_may_fire: Callable[[str], bool] = lambda timer: True) -> list[Step]:
        if self.problem:
            return []
        found = super().steps(timer_may_fire)
        if self.doubles:
            found += [
                structs.replace(step, diffused=True)
                for step in found
                if step.kind == "receive" and self._may_come_twice(step)
            ]
        return found

    def _may_come_twice(self, step: Step) -> bool:
        """Trusted links must not double a `Sub`: see tests/scripts/cube/doubled.txt."""
        return not isinstance(self.links[(step.source, step.node)][step.index], Sub)

    def _early(self) -> Step | None:
        for (source, node), bag in sorted(self.links.items()):
            for place, message in enumerate(bag):
                if self._is_silent(node, message):
                    return Step("receive", node, source, place)
        return None

    def _is_silent(self, node: str, message: Any) -> bool:
        peer = self.peer(node)
        resting = not self.programs.get(node)
        if isinstance(message, Ack):
            key = (message.kind, message.topic, message.source, message.number)
            wave = peer._trees._waves.get(key)
            if wave is None or wave.parent != ROOT or len(wave.parts) > 1:
                return True
            topic = peer._topics[message.topic]
            return message.kind == PUB and resting and not topic.calls
        return resting and all(
            topic.phase == "out" and not topic.calls for topic in peer._topics.values()
        )

    def key(self) -> bytes:
        """As for a pool; the order in which acknowledgements have come is left out as well."""
        states = []
        for name in self.machines:
            known = self._snapshots.get(name)
            if known is None:
                packed = self.peer(name).packed()
                for _, wave in packed.trees.waves:
                    wave.standings = tuple(sorted(wave.standings))
                known = self._snapshots[name] = wire.encode(packed)
            states.append(known)
        flying = [
            ("->".join(link), sorted(wire.encode(_alike(message)) for message in bag))
            for link, bag in sorted(self.links.items())
            if bag
        ]
        programs = [(name, len(ops)) for name, ops in sorted(self.programs.items())]
        waiting = sorted(self._waiting.items())
        return wire.encode(
            [states, flying, programs, waiting, self.judge.key(), self.problem, self.doubles]
        )

    def _machine(self, node: str) -> Any:
        """Copied by a true snapshot: the one that is kept for keys is no state."""
        if node in self._shared:
            machine = self.machines[node]
            self.machines[node] = type(machine).restore(machine.snapshot())  # type: ignore[attr-defined]
        self._touch(node)
        return self.machines[node]


def _alike(message: Any) -> Any:
    if not isinstance(message, Ack):
        return message
    standings = tuple(sorted(message.standings))
    return Ack(message.kind, message.topic, message.source, message.number, standings)


def pool(case: Case, *, guarantee: str = "causal", window: int = 1, doubles: int = 0) -> Tiny:
    members, programs = case
    made = Tiny(NAMES, ("t",), window, guarantee, [*members])
    made.doubles, made.eager = doubles, not doubles
    for name, lines in programs.items():
        made.programs[name] = tuple(_op(line) for line in lines)
    return made


def _op(line: str) -> Op:
    verb, *rest = line.split()
    verbs = {"pub": "publish", "sub": "subscribe", "uns": "unsubscribe"}
    return Op(verbs[verb], ("t",), wait=bool(rest))  # type: ignore[arg-type]


def verdict(made: Pool, final: bool) -> str | None:
    assert isinstance(made, Tiny)
    if made.problem:
        return made.problem
    if final:
        try:
            made.finish()
        except Broken as error:
            return str(error)
    return None


def search(made: Tiny, states_max: int) -> Exhausted:
    return exhaust(made, verdict, states_max=states_max)


# By the errata's names. Those under LARGE are cut in the normal run.
CASES: Mapping[str, Case] = {
    "P1": ("abc", {"a": ["pub"], "b": ["pub"]}),
    "P1b": ("ab", {"a": ["pub"], "b": ["pub"], "c": ["sub"]}),
    "P2": ("ad", {"a": ["pub"], "c": ["sub"]}),
    "P3": ("ad", {"a": ["pub"], "c": ["sub", "uns"]}),
    "P4": ("ac", {"a": ["pub"], "c": ["uns"], "d": ["sub"]}),
    "P5": ("ab", {"b": ["uns", "sub", "pub", "pub"]}),
    "P6": ("ab", {"a": ["pub", "pub", "uns"], "b": ["pub"], "c": ["sub"]}),
    "P7": ("ab", {"b": ["pub", "pub", "uns"], "c": ["sub"]}),
    "P11": ("ab", {"b": ["uns"], "c": ["sub"]}),
    "P12": ("a", {"c": ["sub"], "d": ["sub"]}),
    "P13": ("ab", {"a": ["pub", "pub", "uns", "sub", "pub"]}),
    "P14": ("ab", {"a": ["pub"], "b": ["pub", "pub"], "c": ["sub"]}),
    "P18": ("abc", {"a": ["pub"], "b": ["uns", "pub"]}),
    "last": ("ab", {"a": ["pub", "uns"], "b": ["pub"]}),
    "silent": ("bd", {"d": ["pub", "uns"], "b": ["pub", "pub"], "c": ["sub"]}),
    "again": ("ab", {"b": ["uns", "sub", "pub"], "c": ["pub", "sub"]}),
    "first": ("", {"a": ["sub"], "b": ["sub"], "d": ["pub"]}),
    "source": ("a", {"c": ["sub"], "d": ["pub", "pub"]}),
    "back": ("a", {"a": ["pub"], "c": ["sub", "uns", "sub"]}),
    "all leave": ("ab", {"a": ["uns", "sub"], "b": ["uns", "pub"]}),
    "upgrade": ("a", {"a": ["uns"], "b": ["pub", "sub"]}),
    "session": ("ab", {"a": ["pub"], "b": ["uns", "sub"]}),
}
