"""Scripts: a schedule written by hand, with everything that could be seen beside it.

A script is a text of blocks. A block is comment lines (`#`), a command, `----` and what happened.
Running a script again must give the same text; `pytest --rewrite` writes it anew, and the diff is
the review.

| command                              | does                                                    |
|--------------------------------------|---------------------------------------------------------|
| clients a b [guarantee=none ...]     | makes the machines; `topics=x,y` names the topics       |
|                                      | (default t1), other words are the order's options       |
| publish a x [key=value ...]          | a publishes on x                                        |
| subscribe a x y / unsubscribe a x    | a changes its subscription                              |
| flying                               | lists what is in flight                                 |
| deliver a->b [2]                     | the first (or second ...) message of a link arrives     |
| lose a->b [2] / double a->b [2]      | the network misbehaves                                  |
| hold a->b / release a->b             | keeps a link out of `stabilize`; `*` stands for anybody |
| stabilize [a b]                      | delivers until nothing more can be (at these nodes)     |
| fire a timer / timers                | a timer runs out / lists those that run                 |
| crash a / restart a                  | memory is lost; comes back from its disk                |
| delivered                            | everybody's deliveries so far                           |
"""

from __future__ import annotations

from msgspec import Struct

from inorder.errors import InorderError, Misuse
from inorder.event import Scalar
from inorder.guarantee import guarantee
from inorder.machine import Machine
from inorder.settings import convert
from inorder.sim.narrate import brief
from inorder.sim.pool import Op, Pool, Step

# A script that has not settled after so many steps never will.
STABILIZE_STEPS_MAX = 10_000


class Block(Struct):
    """`head` is comments and blank lines, kept as they are; `seen` is what the file says."""

    head: list[str]
    command: str
    seen: list[str]


def parse(text: str) -> list[Block]:
    """The blocks of a script.

    >>> [block.command for block in parse("# hello\\nflying\\n----\\nnothing\\n")]
    ['flying']
    """
    blocks: list[Block] = []
    head: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.startswith("#"):
            head.append(line)
            continue
        block = Block(head, line.strip(), [])
        head = []
        if (rule := next(lines, "")) != "----":
            raise Misuse(f"after the command {block.command!r} comes ----, not {rule!r}")
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
        try:
            seen = stage.run(block.command)
        except InorderError as error:
            seen = [f"error: {error}"]
        out += [*block.head, block.command, "----", *(seen or ["ok"])]
    return "\n".join(out) + "\n"


class Stage:
    """Carries out the commands of one script."""

    def __init__(self) -> None:
        self.pool = Pool({})
        self._topics: tuple[str, ...] = ("t1",)
        self._held: list[tuple[str, str]] = []
        self._options: dict[str, object] = {}
        self._guarantee = guarantee("none")

    def run(self, line: str) -> list[str]:
        command, *words = line.split()
        handler = getattr(self, f"_{command}", None)
        if handler is None:
            raise Misuse(f"unknown command {command!r}")
        lines: list[str] = handler(*words)
        return lines

    def _clients(self, *words: str) -> list[str]:
        names = [word for word in words if "=" not in word]
        options: dict[str, object] = dict(_assignment(word) for word in words if "=" in word)
        topics = options.pop("topics", None)
        if topics is not None:
            self._topics = tuple(str(topics).split(","))
        self._guarantee = guarantee(str(options.pop("guarantee", "none")))
        self._options = options
        machines = self._services()
        for name in names:
            machines[name] = self._client(name)
        self.pool = Pool(machines)
        return []

    def _client(self, name: str) -> Machine:
        options = convert(self._options, self._guarantee.options, "order")
        return self._guarantee.client(name, self._topics, options)

    def _services(self) -> dict[str, Machine]:
        options = convert(self._options, self._guarantee.options, "order")
        return dict(self._guarantee.services(self._topics, options))

    def _publish(self, node: str, topic: str, *words: str) -> list[str]:
        value: dict[str, Scalar] = dict(_assignment(word) for word in words)
        return self.pool.perform(node, Op("publish", (topic,), value))

    def _subscribe(self, node: str, *topics: str) -> list[str]:
        return self.pool.perform(node, Op("subscribe", topics))

    def _unsubscribe(self, node: str, *topics: str) -> list[str]:
        return self.pool.perform(node, Op("unsubscribe", topics))

    def _flying(self) -> list[str]:
        lines: list[str] = []
        for table in (self.pool.links, self.pool.diffused):
            for (source, node), queue in sorted(table.items()):
                lines += [f"{source}->{node} {brief(message)}" for message in queue]
        return lines or ["nothing"]

    def _deliver(self, link: str, which: str = "1") -> list[str]:
        source, node = _link(link)
        queue = self.pool.links.get((source, node), ())
        index = int(which) - 1
        if index < len(queue):
            return self.pool.take(Step("receive", node, source, index, False))
        return self.pool.take(Step("receive", node, source, index - len(queue), True))

    def _lose(self, link: str, which: str = "1") -> list[str]:
        return [self.pool.lose(*_link(link), int(which) - 1)]

    def _double(self, link: str, which: str = "1") -> list[str]:
        return [self.pool.double(*_link(link), int(which) - 1)]

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
            ]
            if not steps:
                return lines or ["quiet"]
            lines += self.pool.take(steps[0])
        raise Misuse(f"not quiet after {STABILIZE_STEPS_MAX} steps")

    def _timers(self) -> list[str]:
        return [f"{node} {name}" for node in sorted(self.pool.timers) for name in
                self.pool.timers[node]] or ["none"]  # fmt: skip

    def _fire(self, node: str, timer: str) -> list[str]:
        return self.pool.take(Step("fire", node, timer))

    def _crash(self, node: str) -> list[str]:
        self.pool.crash(node)
        return []

    def _restart(self, node: str) -> list[str]:
        services = self._services()
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


def _assignment(word: str) -> tuple[str, bool | int | float | str]:
    key, equals, text = word.partition("=")
    if not equals:
        raise Misuse(f"{word!r} is not key=value")
    if text in ("true", "false"):
        return key, text == "true"
    for kind in (int, float):
        try:
            return key, kind(text)
        except ValueError:
            continue
    return key, text
