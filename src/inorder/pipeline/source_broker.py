"""A broker's log for Spark: what the seam reads, as Arrow columns.

The broker is asked from outside any event loop: each log has a runner of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from inorder.brokers import broker_at
from inorder.core.errors import Damaged, Misuse
from inorder.core.limits import SOURCE_BYTES_AT_ONCE, SOURCE_WAIT_S
from inorder.logs.broker import Rows, Run
from inorder.logs.topics import EVERYTHING
from inorder.pipeline.source_columns import Columns, collector_off
from inorder.pipeline.source_log import EVENT_COLUMNS, Extent
from inorder.pipeline.source_options import READS_ON, Settings, wanted

T = TypeVar("T")


class BrokerLog:
    """The one log of a broker; reads beside whoever writes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topics, self._matches = wanted(settings)
        if settings.place and not Path(settings.place).exists():
            raise Misuse(f"{settings.place}: there is no such file")
        self._runner = asyncio.Runner()
        self._broker = broker_at(settings.url, SOURCE_WAIT_S)
        if not self._broker.traits.shares:
            raise Misuse(
                f"{settings.url}: other processes cannot open it, and Spark's tasks are such"
            )
        try:
            self._run(self._broker.open())
            logs = self._run(self._broker.logs(EVERYTHING))
        except BaseException:
            self._runner.close()
            raise
        if len(logs) != 1:
            self.close()
            raise Misuse(f"{settings.url} has {len(logs)} logs, and Spark reads one")
        self._log = logs[0]

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)

    def columns(self) -> dict[str, str]:
        return EVENT_COLUMNS

    def extent(self) -> Extent:
        ends = self._run(self._broker.settle([self._log]))
        if self._log.identity not in ends:
            raise Misuse(f"{self._log.name} does not say where it ends")
        end = ends[self._log.identity]
        return Extent(self._log.identity, end.first, end.stable)

    def mark(self, offset: int) -> str:
        return (self._run(self._broker.mark(self._log, offset)) or b"").hex()

    def at(self, time: float) -> int:
        return self._run(self._broker.at(self._log, time))

    def reach(self, start: int, stop: int, rows: int) -> int:
        left = rows
        for offset, found in self._rows(start, stop, strict=False):
            run: Run
            for run in found:
                begin = max(run.offset, offset, start)
                end = min(run.offset + run.count, stop)
                if end - begin >= left:
                    return begin + left
                left -= max(0, end - begin)
        return stop

    def batches(self, start: int, stop: int) -> Iterator[Any]:
        settings = self._settings
        columns = Columns(self._log.identity, settings.url, settings.quarantine)
        with collector_off():
            for offset, found in self._rows(start, stop, strict=True):
                if isinstance(found, Damaged):
                    yield columns.damaged(offset, str(found))
                elif found:
                    yield columns.batch(found, max(start, offset), stop)

    def _rows(self, start: int, stop: int, strict: bool) -> Iterator[tuple[int, Any]]:
        """Runs of wanted events with the offset they were asked from, and what is damaged between
        them. Unless `strict`, what is damaged or gone is passed over."""
        offset = start
        while offset < stop:
            try:
                rows = self._run(
                    self._broker.read(self._log, offset, SOURCE_BYTES_AT_ONCE, self._topics)
                )
            except Damaged as error:
                if strict and not self._settings.quarantine:
                    raise
                if strict:
                    yield offset, error
                offset = max(offset + 1, stop if error.upto is None else error.upto)
                continue
            if strict:
                self._check_loss(rows, offset, stop)
            yield offset, self._chosen(rows.runs, offset, stop)
            if rows.upto <= offset:
                break
            offset = rows.upto

    def _chosen(self, runs: Sequence[Run], offset: int, stop: int) -> list[Run]:
        return [
            run
            for run in runs
            if run.count and offset < run.offset + run.count and run.offset < stop
            and self._matches(run.topic)
        ]  # fmt: skip

    def _check_loss(self, rows: Rows, offset: int, stop: int) -> None:
        if not self._settings.fail_on_loss:
            return
        gone = [(max(low, offset), min(high, stop)) for low, high in rows.removed]
        if rows.upto <= offset:
            gone.append((offset, stop))
        for low, high in gone:
            if low < high:
                told = f"has lost its offsets {low} to {high - 1}"
                raise Damaged(self._log.name, f"{told} {READS_ON}", low, high)

    def close(self) -> None:
        try:
            self._run(self._broker.close())
        finally:
            self._runner.close()
