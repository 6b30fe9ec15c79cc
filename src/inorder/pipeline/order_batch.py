"""`order` on a table: rows stay in Spark, only the columns that decide pass through Python.

Spark evaluates a function of columns beside the rows: it keeps the rows (on disk, if they are many)
until the answers come, and puts the two together in the order of the rows. So the answer of a row
that waits may come late, as long as the answers come in the order of the rows.

Rule 1: rows come sorted by subscriber, then by arrival; when the next subscriber begins, nothing
        will come any more for the one before.
Rule 2: an answer is one number: twice the `nth`, plus one if it is in order; 0 for a row that is
        left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from inorder.pipeline.order_columns import Columns
from inorder.pipeline.order_lane import Answers, Lane, Plan

_OPEN = -1


class Judge(Struct, frozen=True):
    """The function Spark calls, with the names of the columns it is given."""

    plan: Plan
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        lane = Lane(self.plan)
        slips = Slips(not self.plan.strict)
        for batch in batches:
            columns = Columns(dict(zip(self.names, batch, strict=True)), self.plan.subscriber)
            slips.open(columns.count)
            slips.note(lane.feed(columns))
            if (last := columns.last_subscriber()) is not None:
                slips.note(lane.finish(keep=last))
            yield from slips.ready()
        slips.note(lane.finish())
        yield from slips.ready()


def answering(plan: Plan, names: tuple[str, ...]) -> Any:
    """The same as a function with the hints that Spark asks for."""
    judge = Judge(plan, names)

    def answers(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return judge(batches)

    return answers


def beside_rows(function: Any, kind: str) -> Any:
    """A function that Spark evaluates beside the rows, once and where it stands."""
    from pyspark.sql.pandas.functions import arrow_udf

    make: Any = arrow_udf
    return make(function, kind).asNondeterministic()


class Slips:
    """Answers in the order of the rows, batch by batch, as soon as all of a batch are there."""

    def __init__(self, with_reasons: bool) -> None:
        self._with_reasons = with_reasons
        # Of each batch that is not answered: its first ticket, answers, reasons, how many are open.
        self._batches: list[tuple[int, Any, dict[int, str], list[int]]] = []
        self._next = 0

    def open(self, count: int) -> None:
        answers = np.full(count, _OPEN, np.int64)
        self._batches.append((self._next, answers, {}, [count]))
        self._next += count

    def note(self, found: Answers) -> None:
        self._write(found.tickets, 2 * found.nths + found.in_order)
        self._write(found.passed_over, np.zeros(len(found.passed_over), np.int64))
        refused = np.array([ticket for ticket, _ in found.refused], np.int64)
        self._write(refused, np.zeros(len(refused), np.int64))
        if self._with_reasons:
            for ticket, reason in found.refused:
                first, _, reasons, _ = self._batches[self._batch_of(ticket)]
                reasons[ticket - first] = reason

    def _batch_of(self, ticket: int) -> int:
        firsts = [first for first, _, _, _ in self._batches]
        return int(np.searchsorted(firsts, ticket, side="right")) - 1

    def _write(self, tickets: Any, answers: Any) -> None:
        for first, written, _, still in self._batches if len(tickets) else ():
            mine = (tickets >= first) & (tickets < first + len(written))
            places = tickets[mine] - first
            written[places] = answers[mine]
            still[0] -= len(places)

    def ready(self) -> Iterator[pa.Array]:
        while self._batches and self._batches[0][3][0] == 0:
            _, answers, reasons, _ = self._batches.pop(0)
            if not self._with_reasons:
                yield pa.array(answers)
            else:
                words = [reasons.get(row) for row in range(len(answers))]
                yield pa.StructArray.from_arrays(
                    [pa.array(answers), pa.array(words, pa.string())], ["answer", "reason"]
                )
