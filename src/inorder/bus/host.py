"""Drives the machines of one bus: inputs in, one write, then what the machines asked for.

Rule 1: one *turn* at a time. All inputs at hand are given to the machines; everything they want
        written goes to the broker in one step; only then is carried out what stands behind a
        `Persist` or a `Diffuse` in their effects. So a receipt is never given for what may be
        lost, and many publications share one wait for the disk.
Rule 2: a turn that was refused never happened. Machines that wanted something written in it are
        no more: services are built again from their records, clients are told (`broken`). The
        same goes for a client that says what fits into no frame. The next try waits a little.
Rule 3: a machine that belongs to another process meanwhile is dropped with its part of the turn,
        and the rest of the turn is written.
Rule 4: when nobody can know what was written, the host stops.
Rule 5: whoever asked is told: an input that no machine took, because it ended or the host did,
        is refused.

Messages between machines of one process do not touch the broker. That changes nothing: they are
lost together with the machines they were meant for.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from inorder.bus.arrivals import Arrivals
from inorder.bus.node import Node
from inorder.bus.store.broker import Broker
from inorder.bus.store.rows import Append, Mail, Record, Turn
from inorder.core import wire
from inorder.core.effect import (
    Answer,
    CancelTimer,
    Deliver,
    Diffuse,
    Effect,
    Join,
    Leave,
    Note,
    Persist,
    Send,
    SetTimer,
)
from inorder.core.errors import (
    Damaged,
    InorderError,
    Misuse,
    PeerFault,
    Refused,
    Replaced,
    TooLarge,
    Unsure,
)
from inorder.core.machine import Client
from inorder.guarantee.compose import Filtering

# Before the broker is asked again that could not be read or written.
TRY_AGAIN_S = 0.1

Input = tuple[Node, Callable[[float], list[Effect]], Callable[[Exception], None] | None]


class Part(Struct):
    """What one machine wants of a turn: to be written, and to be done when it is."""

    node: Node
    appends: list[Append] = []
    mails: list[Mail] = []
    records: list[Record] = []
    taken: list[int] = []
    after: list[Effect] = []


class Clock:
    """Seconds since 1970 that never go back: comparable between processes of one host."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() + self._offset


class Host:
    """All machines of one bus, and the loop that serves them."""

    def __init__(self, broker: Broker, failed: Callable[[Exception], None]) -> None:
        self.broker = broker
        self.now = Clock()
        self.nodes: dict[str, Node] = {}
        # Machines this process is the owner of, by token.
        self.owned: dict[str, int] = {}
        # What machines noted, and what peers sent that was refused.
        self.marks: dict[str, int] = {}
        # The last reason why the broker could not be read or written, for people.
        self.trouble = ""
        self.turn = 1
        self.failed = failed
        self._inputs: deque[Input] = deque()
        self._parts: dict[str, Part] = {}
        self._arrivals = Arrivals(broker)
        self._wake = asyncio.Event()
        self._halted: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    # Coming and going.

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self.halt(Refused("the bus was closed"))
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        for node in self.nodes.values():
            node.stop()
        self.nodes.clear()

    def halt(self, error: Exception) -> None:
        """Serve nobody any more; whoever waits to be served is told."""
        if self._task is not None:
            self._task.cancel()
        self._halted = error
        inputs, self._inputs = self._inputs, deque()
        for node, _, failed in inputs:
            if failed is not None:
                failed(Refused(f"{node.name} was not asked: {error}"))

    def add(self, node: Node) -> None:
        assert node.name not in self.nodes, node.name
        self.nodes[node.name] = node
        self.ring()

    def remove(self, name: str) -> None:
        if node := self.nodes.pop(name, None):
            node.stop()
            self._parts.pop(name, None)

    def ask(
        self,
        node: Node,
        call: Callable[[float], list[Effect]],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Give a machine an input in the next turn; `failed` hears if it would not have it."""
        if self._halted is not None:
            if failed is not None:
                failed(Refused(f"{node.name} was not asked: {self._halted}"))
            return
        self._inputs.append((node, call, failed))
        self._wake.set()

    def ring(self) -> None:
        """There may be something new at the broker."""
        self._arrivals.expected = True
        self._wake.set()

    # The loop.

    async def _run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._take_turn()
                await asyncio.sleep(0)  # applications want their turns, too
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.failed(error)

    async def _take_turn(self) -> None:
        try:
            await self._receive()
        except Refused as error:
            # Of the moment: what was not read is still there.
            self._note("reading refused")
            asyncio.get_running_loop().call_later(TRY_AGAIN_S, self.ring)
            self.trouble = str(error)
        self._handle()
        if self._parts:
            await self._write()
        if self._inputs or self._parts or self._arrivals.behind(self.nodes):
            self._wake.set()

    async def _receive(self) -> None:
        """Joins, mail and log rows become inputs."""
        for member, topic in await self._arrivals.joins():
            self._inputs.append((member, _joined(member, topic), None))
        for mail in await self._arrivals.mail(self.nodes):
            if node := self.nodes.get(mail.target):
                self._part(node).taken.append(mail.id)
                self._inputs.append((node, _receiving(node, mail.source, mail.message), None))
        for member, arrivals in await self._arrivals.log(self.nodes):
            if isinstance(arrivals, Damaged):
                self._break(member, arrivals)
                continue
            for source, message in arrivals:
                self._inputs.append((member, _receiving(member, source, message), None))

    def _handle(self) -> None:
        """Give the machines their inputs, and sort what they ask for."""
        inputs = self._inputs
        while inputs:
            node, call, failed = inputs.popleft()
            if self.nodes.get(node.name) is not node:
                if failed is not None:
                    failed(Refused(f"{node.name} was not asked: it has ended meanwhile"))
                continue
            try:
                effects = call(self.now())
            except PeerFault as error:
                self._note(f"refused: {type(error).__name__}")
            except InorderError as error:
                if failed is None:
                    raise
                failed(error)
            else:
                try:
                    self._sort(node, effects)
                except TooLarge as error:
                    self._too_large(node, error)

    def _too_large(self, node: Node, error: TooLarge) -> None:
        """A machine has said what fits into no frame, and believes that it is said."""
        if node.owner is None:
            raise error
        self._note("said too much")
        self._break(node, Refused(f"{node.name}: {error}"))

    def _sort(self, node: Node, effects: list[Effect]) -> None:
        """What must be written, what can be done now, what must wait for the write."""
        part = self._parts.get(node.name)
        waits = part is not None and bool(part.after or part.records or part.appends)
        for effect in effects:
            kind = type(effect)
            if kind is Persist:
                self._persist(node, effect)  # type: ignore[arg-type]
                waits = True
            elif kind is Diffuse:
                self._diffuse(node, effect)  # type: ignore[arg-type]
                waits = True
            elif kind is Send and effect.target not in self.nodes:  # type: ignore[union-attr]
                self._post(node, effect)  # type: ignore[arg-type]
            elif waits:
                self._part(node).after.append(effect)
            else:
                self._act(node, effect)

    def _part(self, node: Node) -> Part:
        part = self._parts.get(node.name)
        if part is None:
            part = self._parts[node.name] = Part(node)
        return part

    def _persist(self, node: Node, effect: Persist) -> None:
        log = node.ordered.log
        whole = node.owner is not None or log.is_snapshot(effect.record)
        token = self.owned.get(node.name, 0)
        self._part(node).records.append(Record(node.name, token, effect.record, whole))
        node.dirty_in = self.turn

    def _diffuse(self, node: Node, effect: Diffuse) -> None:
        frame = wire.encode(effect.message)
        count = len(node.ordered.log.events(effect.message))
        self._part(node).appends.append(Append(effect.topic, frame, count))
        node.dirty_in = self.turn

    def _post(self, node: Node, effect: Send) -> None:
        frame = wire.encode(effect.message)
        self._part(node).mails.append(Mail(effect.target, node.name, frame))

    # Writing.

    async def _write(self) -> None:
        parts, self._parts = self._parts, {}
        turn = Turn(owned={name: self.owned[name] for name in parts})
        for part in parts.values():
            turn.appends += part.appends
            turn.mails += part.mails
            turn.records += part.records
            turn.taken += part.taken
        try:
            if turn:
                self._arrivals.wrote(await self.broker.write(turn))
        except Replaced as error:
            self._replaced(error, parts)
            return
        except Refused as error:
            self._refused(error, parts)
            return
        except (Damaged, Misuse) as error:
            self._refused(Refused(str(error)), parts)
            raise
        self.turn += 1
        for name, part in parts.items():
            if self.nodes.get(name) is part.node:
                for effect in part.after:
                    self._act(part.node, effect)

    def _replaced(self, error: Replaced, parts: dict[str, Part]) -> None:
        """Another process owns a machine of ours now: the rest of the turn still counts."""
        node = self.nodes.get(error.node)
        self.owned.pop(error.node, None)
        parts.pop(error.node, None)
        if node is not None:
            if node.owner is not None:
                raise Unsure(str(error))
            self._drop_service(node)
        rest = {name: part for name, part in parts.items() if self.nodes.get(name) is part.node}
        self._parts = {**rest, **self._parts}

    def _refused(self, error: Refused, parts: dict[str, Part]) -> None:
        """Nothing of the turn happened. Who wanted something written is told or built again; for
        the others it is as if their messages had been lost on the way."""
        self._note("turn refused")
        self.trouble = str(error)
        # What was read is still there; but a full disk is not emptied by asking.
        self._arrivals.expected = False
        asyncio.get_running_loop().call_later(TRY_AGAIN_S, self.ring)
        for node in list(self.nodes.values()):
            if node.owner is None and node.name in parts:
                self._drop_service(node)
            elif node.dirty_in == self.turn:
                if node.name in parts and parts[node.name].records:
                    node.unwritten = parts[node.name].records[-1]
                self._break(node, error)
        self.turn += 1

    def _drop_service(self, node: Node) -> None:
        self.remove(node.name)
        self.owned.pop(node.name, None)

    def _break(self, node: Node, error: Exception) -> None:
        self.remove(node.name)
        if node.owner is not None:
            node.owner.broken(error)

    # Effects.

    def _act(self, node: Node, effect: Effect) -> None:
        kind = type(effect)
        if kind is Deliver:
            assert node.owner is not None
            node.owner.delivered(effect)  # type: ignore[arg-type]
        elif kind is Send:
            self._send_here(node, effect)  # type: ignore[arg-type]
        elif kind is SetTimer:
            node.set_timer(effect.name, effect.after_s, self._fire)  # type: ignore[union-attr]
        elif kind is CancelTimer:
            node.cancel_timer(effect.name)  # type: ignore[union-attr]
        elif isinstance(effect, Answer):
            if node.owner is not None:
                node.owner.answered(effect)
        elif isinstance(effect, Join):
            self._arrivals.join(node, effect.topic)
            self._wake.set()
        elif isinstance(effect, Leave):
            node.joined.pop(effect.topic, None)
        elif isinstance(effect, Note):
            self._note(effect.mark)

    def _send_here(self, node: Node, effect: Send) -> None:
        target = self.nodes.get(effect.target)
        if target is None:
            self._post(node, effect)  # it has gone while we waited for the disk
        else:
            self._inputs.append((target, _receiving(target, node.name, effect.message), None))
            self._wake.set()

    def _fire(self, node: Node, timer: str) -> None:
        self.ask(node, lambda now: node.machine.fire(timer, now))

    def _note(self, mark: str) -> None:
        self.marks[mark] = self.marks.get(mark, 0) + 1


def _joined(node: Node, topic: str) -> Callable[[float], list[Effect]]:
    client: Client | Filtering = node.machine  # type: ignore[assignment]
    return lambda now: client.joined(topic, now)


def _receiving(node: Node, source: str, message: Any) -> Callable[[float], list[Effect]]:
    """An input: a message as such, or a frame still to be read."""
    if isinstance(message, bytes):
        frame = message

        def receive(now: float) -> list[Effect]:
            return node.machine.receive(source, node.decoder.decode(frame), now)

        return receive
    return lambda now: node.machine.receive(source, message, now)
