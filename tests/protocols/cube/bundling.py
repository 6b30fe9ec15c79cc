"""Peers that share packets, under the random schedules of world.py.

The judges see the messages of a packet one by one, so that whatever is said of messages without
bundling is said of them with it. Timers run out whenever the schedule wants it. Beside that, S8: a
packet has several messages and is not larger than the MTU.

    python -m tests.protocols.cube.bundling --schedules 10000 --aggregate hybrid
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from msgspec import Struct

from inorder.core.effect import CancelTimer, Effect, SetTimer
from inorder.protocols.cube.bundler import Bundler
from inorder.protocols.cube.messages import Ack, Packet, Pub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.sizes import WIRE
from inorder.sim.narrate import brief
from tests.protocols.cube.judge import Broken
from tests.protocols.cube.packets import Packets
from tests.protocols.cube.world import Drawn, Plan, draw


class Fire(Struct, frozen=True):
    """A timer of a node, in flight."""

    timer: str


def messages_of(message: Any) -> tuple[Any, ...]:
    return message.messages if isinstance(message, Packet) else (message,)


class Unpacked(Packets):
    """Sees the messages of packets."""

    # How many packets of publications have so many of them.
    sizes: Counter[int]
    mtu: int
    # Whom an event is for, at its launch: its copies may leave later.
    concerned: dict[tuple[str, str, int], tuple[frozenset[str], frozenset[str]]]

    def launch(self, node: str, topic: str, event: str) -> None:
        super().launch(node, topic, event)
        number = len(self.launched[(node, topic)])
        must = frozenset(self.judge.members(topic) - {node})
        may = frozenset(name for name in self.names if self._may_be(topic, node, name))
        self.concerned[(node, topic, number)] = (must, may)

    def _tree(self, root: str, message: Any) -> Any:
        tree = super()._tree(root, message)
        if isinstance(message, Pub):
            tree.must, tree.may = self.concerned[(root, message.topic, message.number)]
        return tree

    def sent(self, source: str, target: str, message: Any) -> None:
        inside = messages_of(message)
        if isinstance(message, Packet):
            size = WIRE.header + sum(map(WIRE.of, inside))
            if len(inside) < 2 or size > self.mtu:
                raise Broken("S8", f"{source} sends {len(inside)} messages in {size} bytes")
        if count := sum(isinstance(each, Pub) for each in inside):
            self.sizes[count] += 1
        for each in inside:
            super().sent(source, target, each)

    def received(self, node: str, source: str, message: Any) -> None:
        for each in messages_of(message):
            super().received(node, source, each)


class Single(Unpacked):
    """With a single tree the root of a tree is not its source: only what is sent is counted."""

    def sent(self, source: str, target: str, message: Any) -> None:
        for each in messages_of(message):
            if not isinstance(each, Pub | Ack) or (isinstance(each, Ack) and each.kind != 3):
                Packets.sent(self, source, target, each)

    def received(self, node: str, source: str, message: Any) -> None:
        for each in messages_of(message):
            if not isinstance(each, Ack) or each.kind != 3:
                Packets.received(self, node, source, each)


class Bundled(Drawn):
    """A random schedule of a plan, with these options of bundling."""

    def __init__(self, plan: Plan, **chosen: Any) -> None:
        self.chosen = chosen
        super().__init__(plan)
        packets: Any = self.packets
        packets.__class__ = Single if chosen.get("trees") == "single" else Unpacked
        packets.sizes, packets.concerned = Counter(), {}
        packets.mtu = chosen.get("mtu", 1500)
        self._forced: int | None = None

    def options(self, window: int) -> Options:
        return Options(window=window, links="trusted", **self.chosen)

    def bundler(self, name: str) -> Bundler:
        bundler = self.peer(name)._trees.bundler
        assert bundler is not None
        return bundler

    def _act(self, node: str, effect: Effect) -> None:
        if isinstance(effect, SetTimer | CancelTimer):
            fire = Fire(effect.name)
            self.flight = [each for each in self.flight if each[2:4] != (node, fire)]
            if isinstance(effect, SetTimer):
                self._fly(node, node, fire)
        else:
            super()._act(node, effect)

    def _choose(self) -> int:
        return super()._choose() if self._forced is None else self._forced

    def step(self) -> None:
        place = super()._choose()
        _, source, node, message, _ = self.flight[place]
        if not isinstance(message, Fire | Packet):
            self._forced = place
            super().step()
            self._forced = None
            return
        self.flight[place] = self.flight[-1]
        self.flight.pop()
        self.taken += 1
        if isinstance(message, Fire):
            self._say(node, f"{node} timer {message.timer}")
            self._carry(node, self.machines[node].fire(message.timer, 0.0))
        else:
            self._receive(node, source, message)

    def _receive(self, node: str, source: str, packet: Packet[Any]) -> None:
        self.packets.received(node, source, packet)
        self._say(node, f"{node} receives {brief(packet)} from {source}" if self.told else "")
        if self._doubles and self.rng.random() < 0.05:
            self._doubles -= 1
            self._fly(source, node, packet)
            self._say(node, "(and will again)")
        waited = node in self._waiting
        self._carry(node, self.machines[node].receive(source, packet, 0.0))
        if waited:
            self._go_on(node)

    def finish(self) -> None:
        for name, machine in self.machines.items():
            if not self.bundler(name).idle:
                raise Broken("L3", f"{name} still holds something back")
            assert machine.snapshot() == type(machine).restore(machine.snapshot()).snapshot()
        super().finish()


def run(plan: Plan, **chosen: Any) -> Bundled:
    """One schedule, judged; raises `Broken`."""
    bundled = Bundled(plan, **chosen)
    bundled.run()
    return bundled


def story(plan: Plan, **chosen: Any) -> list[str]:
    bundled = Bundled(plan, **chosen)
    bundled.told = True
    try:
        bundled.run()
    except Exception as error:
        bundled.lines.append(f"{type(error).__name__}: {error}")
    return bundled.lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--aggregate", default="causal")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--trees", default="source")
    parser.add_argument("--piggyback", action="store_true")
    asked = vars(parser.parse_args())
    schedules, first = asked.pop("schedules"), asked.pop("first")
    sizes: Counter[int] = Counter()
    held = 0.0
    for seed in range(first, first + schedules):
        plan = draw(seed)
        try:
            bundled = run(plan, **asked)
        except Exception as error:
            print(f"seed {seed}: {error}", plan, *story(plan, **asked), sep="\n")
            raise
        packets: Any = bundled.packets
        sizes.update(packets.sizes)
        held += sum(bundled.bundler(name).account().get("held", 0.0) for name in bundled.machines)
    print(f"{schedules} schedules, {held:g} held, packets by publications in them:")
    print(dict(sorted(sizes.items())))


if __name__ == "__main__":
    main()
