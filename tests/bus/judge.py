"""Live runs before the same judges as everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from inorder.bus.bus import Bus
from inorder.check import History, judge
from inorder.check.ending import Ending
from inorder.check.trace import read_table
from inorder.guarantee.registry import guarantee

# What every guarantee keeps on a bus: a log loses nothing and doubles nothing.
ALWAYS = ("unique", "reliable", "filter")


DONE = Ending(quiet=True, ended_at=0.0, within=0.0)


def run(job: Callable[[], Coroutine[Any, Any, Any]], limit_s: float = 30.0) -> Any:
    """Run a test; one that hangs fails."""

    async def limited() -> Any:
        return await asyncio.wait_for(job(), limit_s)

    return asyncio.run(limited())


def gather(folders: Iterable[Path], within: float = 0.0) -> History:
    """The traces of several buses as one history. Nothing is under way any more, and everybody has
    read what was there for him: the caller says so by asking, or gives a window to those who left
    before."""
    tables: dict[str, list[Any]] = {"deliveries": [], "events": [], "subscriptions": []}
    for folder in folders:
        for table, rows in tables.items():
            if (folder / f"{table}.jsonl").exists():
                rows += read_table(folder, table)
    ending = replace(DONE, within=within)
    return History(**tables, complete=True, ending=ending, clock_error=0.0, source="live")


def judged(history: History, name: str, options: Any = None) -> dict[str, int]:
    """Fail if a promise is broken; what was looked at, so that a test can say it was something."""
    ordered = guarantee(name)
    promises = ordered.promises(options or ordered.log.options(ordered.options()), "log")
    verdicts = judge(history, dict.fromkeys((*promises, *ALWAYS)))
    for promise, verdict in verdicts.items():
        assert not verdict.broken, (promise, verdict.witness, verdict.also)
        assert verdict.judged, (promise, verdict.why)
    return verdicts["reliable"].counts


def traces(buses: Iterable[Bus]) -> None:
    """Put on disk what happened so far."""
    for bus in buses:
        bus.trace.flush()


async def take(events: Any, count: int, patience_s: float = 10.0) -> list[Any]:
    """So many events of a subscription, and no more of them at hand."""
    return [await events.next(patience_s) for _ in range(count)]


async def until(true: Callable[[], bool], patience_s: float = 10.0) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + patience_s
    while not true():
        assert loop.time() < end, "it never came about"
        await asyncio.sleep(0.005)
