"""An event loop whose time is a number and whose order is drawn: a run is its seed.

- Time stands while something can run, and then jumps to the next timer.
- What is ready together runs in a drawn order. (asyncio keeps the order of `call_soon`; callbacks
  from threads come in any, and nothing of ours may lean on either.)
- Everything belongs to a *process*, a context variable. A process that was killed takes no step
  any more, not even those of its `finally`.
- Sockets are real, and are looked at when nothing else is ready; what they bring may be lost.
- The threads of a file's connection are jobs of this loop. A call has three steps with drawn times
  between them: it begins, it happens, it is answered; a kill may come between any two.
"""

from __future__ import annotations

import asyncio
import random
import select
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop
from typing import Any

PROCESS: ContextVar[str] = ContextVar("process", default="")

# More than any run takes: something spins.
TURNS_MAX = 100_000


class Stuck(AssertionError):
    """Nothing is left that could ever happen."""


class Loop(asyncio.BaseEventLoop):
    """`slow` is how long a step of a store takes, in seconds, at most."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance = random.Random(seed)
        self.killed: set[str] = set()
        self.slow = 0.002
        # How often one takes fifty times as long.
        self.stalls = 0.02
        # Whether what is ready together is shuffled, and how often a datagram is lost.
        self.shuffles = self.chance.random() < 0.8
        self.deaf = self.chance.choice([0.0, 0.3, 1.0])
        self.failures: list[dict[str, Any]] = []
        self._now = 0.0
        self._turns = 0
        # Held, so that the collector of garbage does not end those of killed processes.
        self._tasks: list[asyncio.Task[Any]] = []
        self.set_task_factory(_held)
        self._sockets: dict[Any, tuple[Callable[..., Any], tuple[Any, ...], Context]] = {}
        self.set_exception_handler(lambda _, about: self.failures.append(about))

    def time(self) -> float:
        return self._now

    def pause(self) -> float:
        """How long a step of a store takes."""
        slow = self.slow * 50 if self.chance.random() < self.stalls else self.slow
        return self.chance.random() * slow

    def run(self, job: Coroutine[Any, Any, Any]) -> Any:
        """Run to the end, then let everything that is left end in good order."""
        try:
            return self.run_until_complete(job)
        finally:
            self.killed.clear()
            self._end()
            self.close()

    def _end(self) -> None:
        """The processes that were killed too: what they hold is let go of."""
        failures, self.failures = self.failures, []
        self._turns = -TURNS_MAX
        for _ in range(20):
            if left := [task for task in self._tasks if not task.done()]:
                for task in left:
                    task.cancel()
                self.run_until_complete(asyncio.wait(left, timeout=30))
        # A step that was dropped with its process leaves a task that can never end.
        self.set_exception_handler(lambda loop, about: None)
        self.failures = failures

    def lives(self, context: Context) -> bool:
        return context.get(PROCESS, "") not in self.killed

    def _run_once(self) -> None:
        self._turns += 1
        if self._turns > TURNS_MAX:
            raise Stuck(f"{TURNS_MAX} turns, and it is {self._now:g} s")
        timers, ready = self._scheduled, self._ready
        if not ready and not self._stopping:
            self._hear()
        while timers and timers[0]._cancelled:
            heappop(timers)._scheduled = False
        if not ready and not self._stopping:
            if not timers:
                raise Stuck(f"nothing is left to do at {self._now:g} s")
            self._now = max(self._now, timers[0]._when)
        while timers and timers[0]._when <= self._now:
            timer = heappop(timers)
            timer._scheduled = False
            ready.append(timer)
        batch = [*ready]
        ready.clear()
        if self.shuffles:
            self.chance.shuffle(batch)
        for handle in batch:
            if not handle._cancelled and self.lives(handle._context):
                handle._run()

    def _hear(self) -> None:
        sockets = [each for each, (_, _, by) in self._sockets.items() if self.lives(by)]
        if not sockets:
            return
        heard, _, _ = select.select(sockets, [], [], 0)
        for socket in [each for each in sockets if each in heard]:
            call, values, context = self._sockets[socket]
            if self.chance.random() < self.deaf:
                while socket in select.select([socket], [], [], 0)[0]:
                    socket.recv(16)
            else:
                self.call_soon(call, *values, context=context)

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        self._sockets[fd] = callback, args, copy_context()

    def remove_reader(self, fd: Any) -> bool:
        return self._sockets.pop(fd, None) is not None

    def _write_to_self(self) -> None:
        """There is one thread."""

    def _process_events(self, event_list: Any) -> None:
        """Sockets are heard in `_hear`."""


def _held(loop: Any, job: Any, **named: Any) -> asyncio.Task[Any]:
    task = asyncio.Task(job, loop=loop, **named)
    loop._tasks.append(task)
    return task


class Worker:
    """In the place of a thread: one call after the other, each in three steps."""

    def __init__(self, name: str) -> None:
        self._loop: Loop = asyncio.get_running_loop()  # type: ignore[assignment]
        self._jobs: deque[Any] = deque()
        self._busy = False
        self._answered = 0.0

    def do(self, call: Callable[..., Any], *values: Any, **named: Any) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        self._jobs.append((future, call, values, named))
        self._begin()
        return future

    def stop(self) -> None:
        """What was asked for is done all the same."""

    def _begin(self) -> None:
        if self._jobs and not self._busy:
            self._busy = True
            self._loop.call_later(self._loop.pause(), self._happen)

    def _happen(self) -> None:
        future, call, values, named = self._jobs.popleft()
        result, failure = None, None
        try:
            result = call(*values, **named)
        except BaseException as error:
            failure = error
        # Answers of one thread come in their order.
        self._answered = max(self._answered, self._loop.time() + self._loop.pause())
        self._loop.call_at(self._answered, _answer, future, result, failure)
        self._busy = False
        self._begin()


def _answer(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
