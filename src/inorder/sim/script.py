"""Scripts: a schedule written by hand, with everything that could be seen beside it.

A script is a text of blocks. A block is comment lines (`#`), commands, `----` and what happened.
Running a script again must give the same text; `pytest --rewrite` writes it anew, and the diff is
the review.

| command                              | does                                                    |
|--------------------------------------|---------------------------------------------------------|
| clients a b [guarantee=none ...]     | makes the machines; `topics=x,y` names the topics       |
|                                      | (default t1), `links=any` lets messages of one link     |
|                                      | overtake each other, `network=cube` makes them peers    |
|                                      | of a hypercube with trusted links (`window=2` and other |
|                                      | words of protocols/cube/options.py, `preset=a,b` for    |
|                                      | members of all topics from the start),                  |
|                                      | other words are the order's options                     |
| publish a x [key=value ...]          | a publishes on x                                        |
| subscribe a x y / unsubscribe a x    | a changes its subscription                              |
| flying                               | lists what is in flight                                 |
| deliver a->b [2]                     | the first (or second ...) message of a link arrives     |
| lose a->b [2] / double a->b [2]      | the network misbehaves                                  |
| hold a->b / release a->b             | keeps a link out of `stabilize`; `*` stands for anybody |
| stabilize [a b]                      | delivers until nothing more can be (at these nodes)     |
| fire a timer / timers                | a timer runs out / lists those that run                 |
| wait 2.5                             | so many seconds go by, and no timer runs out by itself  |
| crash a [2] / restart a              | memory is lost (with a number: in a's next step, behind |
|                                      | so many effects); comes back from its disk              |
| delivered                            | everybody's deliveries so far                           |
| quiet Ack joins                      | leaves out lines with one of these words, until the     |
|                                      | next `quiet`                                            |

A second `clients` begins a new world in the same file. To play one file and see what happens:

    python -m inorder.sim.script tests/scripts/none/disagreement.txt
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from msgspec import Struct

from inorder.core.effect import Effect
from inorder.core.errors import InorderError, Misuse
from inorder.core.event import Scalar
from inorder.core.machine import Machine, make_all
from inorder.core.settings import assignment, convert
from inorder.guarantee.peer import Peered, order_of
from inorder.guarantee.registry import guarantee
from inorder.protocols.cube.options import Options as CubeOptions
from inorder.protocols.cube.peers import Peers
from inorder.sim import cube
from inorder.sim.pool import Op, Pool, Step

# A script that has not settled after so many steps never will.
STABILIZE_STEPS_MAX = 10_000


class Block(Struct):
    """`head` is comments and blank lines, kept as they are; `seen` is what the file says."""

    head: list[str]
    commands: list[str]
    seen: list[str]


def parse(text: str) -> list[Block]:
    """The blocks of a script.

    >>> [block.commands for block in parse("# hello\\nflying\\n----\\nnothing\\n")]
    [['flying']]
    """
    blocks: list[Block] = []
    head: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.startswith("#"):
            head.append(line)
            continue
        block = Block(head, [line.strip()], [])
        head = []
        while (rule := next(lines, "")) != "----":
            if not rule.strip() or rule.startswith("#"):
                raise Misuse(f"after the command {block.commands[-1]!r} comes ----, not {rule!r}")
            block.commands.append(rule.strip())
        for seen in lines:
            if not seen.strip():
                head = [seen]
                break
            block.seen.append(seen)
        blocks.append(block)
    return blocks


def play(text: str) -> str:
    """Run a script; returns it with what really happened."""
    stage = Stage()
    out: list[str] = []
    for block in parse(text):
        seen: list[str] = []
        for command in block.commands:
            try:
                seen += stage.run(command)
            except InorderError as error:
                seen.append(f"error: {error}")
        out += [*block.head, *block.commands, "----", *(seen or ["ok"])]
    return "\n".join(out) + "\n"


class Stage:
    """Carries out the commands of one script."""

    def __init__(self) -> None:
        self.pool = Pool({})
        self._topics: tuple[str, ...] = ("t1",)
        self._held: list[tuple[str, str]] = []
        # Nodes that are down; nodes that crash in their next step, behind so many effects.
        self._down: set[str] = set()
        self._cut: dict[str, int] = {}
        self._quiet: set[str] = set()
        self._options: dict[str, object] = {}
        self._guarantee = guarantee("none")
        self._peers: Peers | None = None
        self._cube = CubeOptions()
        self._commands: dict[str, Callable[..., list[str]]] = {
            "clients": self._clients,
            "publish": self._publish,
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "flying": self._flying,
            "deliver": self._deliver,
            "lose": self._lose,
            "double": self._double,
            "hold": self._hold,
            "release": self._release,
            "stabilize": self._stabilize,
            "timers": self._timers,
            "fire": self._fire,
            "wait": self._wait,
            "crash": self._crash,
            "restart": self._restart,
            "delivered": self._delivered,
            "quiet": self._leave_out,
        }

    def run(self, line: str) -> list[str]:
        command, *words = line.split()
        handler = self._commands.get(command)
        if handler is None:
            raise Misuse(f"unknown command {command!r}")
        lines = handler(*words)
        return [line for line in lines if not self._quiet.intersection(line.split())]

    def _leave_out(self, *words: str) -> list[str]:
        self._quiet = {*words}
        return []

    def _take(self, step: Step) -> list[str]:
        cut = self._cut.pop(step.node, None)
        if cut is not None:
            self._down.add(step.node)
        return self.pool.take(step, crash_after=cut)

    def _clients(self, *words: str) -> list[str]:
        names = [word for word in words if "=" not in word]
        options: dict[str, object] = dict(assignment(word) for word in words if "=" in word)
        topics = options.pop("topics", None)
        if topics is not None:
            self._topics = tuple(str(topics).split(","))
        self._guarantee = guarantee(str(options.pop("guarantee", "none")))
        # What carries the messages is the pool's business, not the machines'.
        ordered = options.get("links") != "any"
        if not ordered:
            del options["links"]
        network = options.pop("network", "direct")
        preset, chosen = "", {"window": 1, "links": "trusted"}
        if network == "cube":
            preset = str(options.pop("preset", ""))
            told = [name for name in CubeOptions.__struct_fields__ if name in options]
            chosen |= {name: options.pop(name) for name in told}
        self._options = options
        machines = self._services()
        begins: dict[str, list[Effect]] = {}
        if network == "cube":
            self._peers = Peers([*machines, *names])
            self._cube = convert(chosen, CubeOptions, "network.cube")
            machines = {name: self._peer(name) for name in [*machines, *names]}
            if preset:
                cube.preset(machines.values(), self._topics, preset.split(","))
            begins = {name: cast(Peered, each).begin(0.0) for name, each in machines.items()}
        elif network == "direct":
            self._peers = None
            machines |= {name: self._client(name) for name in names}
        else:
            raise Misuse(f"network={network}: is neither direct nor cube")
        self.pool = Pool(machines, ordered)
        for name, effects in begins.items():
            self.pool.begin(name, effects)
        self._held.clear()
        self._down.clear()
        self._cut.clear()
        return []

    def _client(self, name: str) -> Machine:
        options = convert(self._options, self._guarantee.options, "order")
        return self._guarantee.client(name, self._topics, options)

    def _peer(self, name: str) -> Machine:
        options = convert(self._options, self._guarantee.options, "order")
        order = order_of(self._guarantee, options, self._topics)
        assert self._peers is not None
        return Peered(name, self._peers, self._cube, order)

    def _services(self) -> dict[str, Machine]:
        options = convert(self._options, self._guarantee.options, "order")
        return make_all(self._guarantee.services(self._topics, options))

    def _publish(self, node: str, topic: str, *words: str) -> list[str]:
        value: dict[str, Scalar] = dict(assignment(word) for word in words)
        return self.pool.perform(node, Op("publish", (topic,), value))

    def _subscribe(self, node: str, *topics: str) -> list[str]:
        return self.pool.perform(node, Op("subscribe", topics))

    def _unsubscribe(self, node: str, *topics: str) -> list[str]:
        return self.pool.perform(node, Op("unsubscribe", topics))

    def _flying(self) -> list[str]:
        lines: list[str] = []
        for table in (self.pool.links, self.pool.diffused):
            for (source, node), queue in sorted(table.items()):
                lines += [
                    f"{source}->{node} {self.pool.tell(source, node, message)}" for message in queue
                ]
        return lines or ["nothing"]

    def _deliver(self, link: str, which: str = "1") -> list[str]:
        source, node = _link(link)
        queue = self.pool.links.get((source, node), ())
        index = self._index(source, node, which)
        if node in self._down:
            raise Misuse(f"{node} is down")
        if index < len(queue):
            return self._take(Step("receive", node, source, index, False))
        return self._take(Step("receive", node, source, index - len(queue), True))

    def _lose(self, link: str, which: str = "1") -> list[str]:
        source, node = _link(link)
        return [self.pool.lose(source, node, self._index(source, node, which))]

    def _double(self, link: str, which: str = "1") -> list[str]:
        source, node = _link(link)
        return [self.pool.double(source, node, self._index(source, node, which))]

    def _index(self, source: str, node: str, which: str) -> int:
        tables = (self.pool.links, self.pool.diffused)
        flying = sum(len(table.get((source, node), ())) for table in tables)
        if not 1 <= int(which) <= flying:
            raise Misuse(f"{flying} messages are in flight from {source} to {node}")
        return int(which) - 1

    def _hold(self, *links: str) -> list[str]:
        self._held += [_link(link) for link in links]
        return []

    def _release(self, *links: str) -> list[str]:
        gone = [_link(link) for link in links]
        self._held = [link for link in self._held if link not in gone]
        return []

    def _is_held(self, source: str, node: str) -> bool:
        return any(one in ("*", source) and other in ("*", node) for one, other in self._held)

    def _stabilize(self, *nodes: str) -> list[str]:
        lines: list[str] = []
        for _ in range(STABILIZE_STEPS_MAX):
            steps = [
                step
                for step in self.pool.steps(lambda timer: False)
                if not (step.kind == "receive" and self._is_held(step.source, step.node))
                and (not nodes or step.node in nodes)
                and step.node not in self._down
            ]
            if not steps:
                return lines or ["quiet"]
            lines += self._take(steps[0])
        raise Misuse(f"not quiet after {STABILIZE_STEPS_MAX} steps")

    def _timers(self) -> list[str]:
        return [f"{node} {name}" for node in sorted(self.pool.timers) for name in
                self.pool.timers[node]] or ["none"]  # fmt: skip

    def _fire(self, node: str, timer: str) -> list[str]:
        if timer not in self.pool.timers.get(node, ()):
            raise Misuse(f"{node} has no timer {timer}")
        return self._take(Step("fire", node, timer))

    def _wait(self, seconds: str) -> list[str]:
        self.pool.now += float(seconds)
        return []

    def _crash(self, node: str, effects: str = "") -> list[str]:
        if effects:
            self._cut[node] = int(effects)
        else:
            self._down.add(node)
            self.pool.crash(node)
        return []

    def _restart(self, node: str) -> list[str]:
        self._down.discard(node)
        services = self._services()
        if self._peers is not None:
            return self.pool.restart(node, self._peer(node))
        machine = services[node] if node in services else self._client(node)
        return self.pool.restart(node, machine)

    def _delivered(self) -> list[str]:
        return [
            f"{node}: " + " ".join(event + ("" if in_order else "*") for event, in_order in log)
            for node, log in sorted(self.pool.delivered.items())
        ] or ["nothing"]


def _link(text: str) -> tuple[str, str]:
    source, arrow, node = text.partition("->")
    if not arrow:
        raise Misuse(f"{text!r} is not a link: write source->target")
    return source, node


def main(name: str) -> int:
    """Play one file, print what really happened; 1 if the file says otherwise."""
    text = Path(name).read_text()
    played = play(text)
    print(played, end="")
    return int(played != text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m inorder.sim.script FILE")
    sys.exit(main(sys.argv[1]))
