"""Keeps the services of a guarantee running: somewhere, once.

Rule 1: whoever finds a service without a living owner takes it over: claim, read its records, go
        on. The claim's token fences the former owner (brokers/sqlite/).
Rule 2: an owner says in time that it lives, also while it reads the records of the one before. One
        that could not is replaced, and learns it at its next write at the latest.
Rule 3: the owner of a service also sees to the mail of those who will not come for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from inorder.bus.host import Host
from inorder.bus.node import Node
from inorder.core.errors import Refused, Unsure
from inorder.core.limits import OWNER_SILENT_S_MAX
from inorder.core.machine import Durable, Machine
from inorder.guarantee.registry import GUARANTEES, NO_LOG, Guarantee

# How often a service without an owner is looked for, and how often we say that we live.
LOOK_S = 0.2
RENEW_S = OWNER_SILENT_S_MAX / 5
# How long records are read at a stretch.
PAUSE_S = 0.02


class Keeper:
    """The services of all guarantees in use at one bus."""

    def __init__(self, host: Host, failed: Callable[[Exception], None]) -> None:
        self._host = host
        self._failed = failed
        self._guarantees: dict[str, Guarantee] = {}
        # One at a time of this process: a second claim would fence the first.
        self._looking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def need(self, ordered: Guarantee) -> None:
        """See to it that a guarantee's services run here, unless they do elsewhere."""
        if ordered.name not in self._guarantees:
            self._guarantees[ordered.name] = ordered
            await self._look(ordered)

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    def halt(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        self.halt()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        since_renewed = 0.0
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                since_renewed += LOOK_S
                try:
                    if since_renewed >= RENEW_S:
                        since_renewed = 0.0
                        await self._renew()
                    for ordered in list(self._guarantees.values()):
                        await self._look(ordered)
                except Refused:
                    continue  # no room on the disk, say: later
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._failed(error)

    async def _look(self, ordered: Guarantee) -> None:
        services = ordered.services((), ordered.log.options(ordered.options()))
        async with self._looking:
            for name, builder in services.items():
                if name not in self._host.nodes and not await self._host.broker.owner_lives(name):
                    await self._take_over(name, builder.make(), ordered)

    async def _take_over(self, name: str, machine: Machine, ordered: Guarantee) -> None:
        broker = self._host.broker
        try:
            token = await broker.claim(name)
            records = [] if token is None else await broker.records(name)
        except Refused:
            return
        if token is None or not await self._replayed(name, token, machine, records):
            return
        node = Node(name, machine, ordered, None)
        self._host.owned[name] = token
        self._host.add(node)
        if isinstance(machine, Durable):
            self._host.ask(node, machine.resume)

    async def _replayed(
        self, name: str, token: int, machine: Machine, records: list[bytes]
    ) -> bool:
        """Whether the machine has read its records, and is still ours. Others get their turns."""
        now = self._host.now
        paused_at = renewed_at = now()
        for record in records:
            assert isinstance(machine, Durable)
            machine.replay(record)
            if now() - paused_at < PAUSE_S:
                continue
            await asyncio.sleep(0)
            paused_at = now()
            if paused_at - renewed_at >= RENEW_S:
                renewed_at = paused_at
                await self._renew()
                if await self._host.broker.renew({name: token}):
                    return False
        return True

    async def _renew(self) -> None:
        owned = dict(self._host.owned)
        for name in await self._host.broker.renew(owned):
            if self._host.owned.get(name) != owned[name]:
                continue  # given up, or claimed anew, meanwhile
            node = self._host.nodes.get(name)
            del self._host.owned[name]
            if node is not None and node.owner is None:
                self._host.remove(name)
            else:
                raise Unsure(f"{name}: another process has taken over")
        if any(node.owner is None for node in self._host.nodes.values()):
            await self._host.broker.drop_mail(sorted(service_names()))


def service_names() -> set[str]:
    """The names of all services there may be: nobody else can have them."""
    return {
        name
        for ordered in GUARANTEES.values()
        if ordered.log is not NO_LOG
        for name in ordered.services((), ordered.log.options(ordered.options()))
    }
