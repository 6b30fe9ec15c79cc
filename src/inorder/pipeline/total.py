"""Total, over any number of subscribers.

First, in linear time: is there one order of all events that contains every subscriber's? It is so
when the graph of steps "e just before f" has no cycle, and then nobody disagrees with anybody.
Otherwise only events in its tangles (components of more than one event) can be in opposite orders,
and only their deliveries are compared, pair by pair of subscribers (see `inversions`). Large
comparisons go to Spark tasks, one for each pair of *blocks* of subscribers: a row is sent as often
as there are blocks, not as there are subscribers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from inorder.check import acyclic
from inorder.check.history import History
from inorder.check.verdict import Verdict, judged, not_judged
from inorder.pipeline import bounds
from inorder.pipeline.boundary import boundary
from inorder.pipeline.coded import Array, Log, Rows, edges_of
from inorder.pipeline.hashed import factorize, repeats, unique
from inorder.pipeline.inversions import Closest, Disagreements, Lines, disagreements
from inorder.pipeline.position import Positions
from inorder.pipeline.session import cores
from inorder.pipeline.unique import repeated

if TYPE_CHECKING:
    from pyspark.sql import Column, Row, SparkSession


class Order:
    """Gathers the steps of all subscribers slice by slice, then judges."""

    def __init__(self, slices: int, positions: Positions | Verdict) -> None:
        self._in_memory = slices <= 1
        self._positions = positions  # or why there is nothing to compare with
        self._sequences: Rows | None = None
        self._steps: list[tuple[Array, Array]] = []  # codes of e, codes of f
        self._step_count = 0
        self.crossings: list[dict[str, Any]] = []  # witnesses, the closest first
        self.subscribers = 0
        self.in_order_deliveries = 0

    def add(self, rows: Rows, mask: Array | None) -> None:
        """Take in a slice; `mask` tells the rows that repeat an earlier one."""
        sequences = first_in_order(rows, mask)
        self.subscribers += len(rows.subscribers)
        self.in_order_deliveries += len(sequences)
        if isinstance(self._positions, Positions):
            self._positions.add(sequences)
        first, then = steps(sequences)
        self._step_count += len(first)
        if self._in_memory:
            self._sequences = sequences
            self._steps = [(first, then)]
        elif self._step_count <= bounds.STEPS_MAX:
            self._steps.append((rows.events[first], rows.events[then]))

    def verdict(self, spark: SparkSession, log: Log) -> Verdict:
        tangled: Array | None = None  # codes of the events in tangles; None: may be all
        limit = self._step_count > bounds.STEPS_MAX
        tangles = _Tangles(np.empty(0, np.int64), np.empty(0, np.int64))
        if limit:
            why = f"not judged (limit): more than {bounds.STEPS_MAX} different steps"
            also = not_judged("acyclic", why)
        else:
            tangles = self._tangles()
            tangled = tangles.events
        found = Disagreements()
        if tangled is None or len(tangled):
            log.verify()
            found = self._compare(spark, log, tangled)
        counts = {
            "subscribers": self.subscribers,
            "in_order_deliveries": self.in_order_deliveries,
            "disagreeing_subscriber_pairs": found.pairs,
        }
        self.crossings = _witnesses(log, found.closest)
        witness = self.crossings[0] if self.crossings else None
        if not limit:
            also = _judge_tangles(log, tangles, witness)
        positions = self._positions
        if isinstance(positions, Positions):
            positions = positions.verdict(log)
        related = {"acyclic": also, "position": positions}
        return judged("total", found.violations, counts, witness, related)

    def _tangles(self) -> _Tangles:
        if self._sequences is not None:
            first, then = self._steps[0]
            return tangles_of(first, then, self._sequences.events)
        if not self._steps:
            return tangles_of(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))
        size = self._step_count
        numbers, events = factorize(
            np.concatenate([each[side] for side in (0, 1) for each in self._steps])
        )
        self._steps = []
        first, then = _unique_steps(numbers[:size], numbers[size:], len(events))
        return tangles_of(first, then, events)

    def _compare(self, spark: SparkSession, log: Log, tangled: Array | None) -> Disagreements:
        """Compare the deliveries of tangled events, here or in Spark tasks."""
        names = log.subscriber_names()
        ranked = sorted(names, key=lambda each: names[each])
        if self._sequences is not None:
            mine = self._sequences
            if tangled is not None:
                chosen = np.isin(mine.events, tangled)
                mine = mine.take(np.flatnonzero(chosen[mine.event]))
            if len(mine) * len(ranked) <= bounds.LOCAL_COMPARISONS_MAX:
                return disagreements(_lines(mine, ranked))
            del mine
            self._sequences = None  # the memory is needed by the tasks
        return compare_in_tasks(spark, log, ranked, tangled)


def first_in_order(rows: Rows, mask: Array | None) -> Rows:
    """Each subscriber's first in-order delivery of each event."""
    if rows.in_order is None:
        return rows if mask is None else rows.take(np.flatnonzero(~mask))
    kept = rows.take(np.flatnonzero(rows.in_order))
    again = None if mask is None else repeated(kept)
    return kept if again is None else kept.take(np.flatnonzero(~again))


def steps(rows: Rows) -> tuple[Array, Array]:
    """The different steps "e just before f" of all subscribers."""
    together = rows.subscriber[1:] == rows.subscriber[:-1]
    return _unique_steps(rows.event[:-1][together], rows.event[1:][together], len(rows.events))


def _unique_steps(first: Array, then: Array, events: int) -> tuple[Array, Array]:
    keys = unique(first.astype(np.int64) * max(1, events) + then)
    first, then = np.divmod(keys, max(1, events))
    return first.astype(np.int32), then.astype(np.int32)


class _Tangles:
    """The events that lie in components of more than one event, as codes, and their component."""

    def __init__(self, events: Array, label: Array) -> None:
        self.events = events
        self.label = label

    def __len__(self) -> int:
        return len(np.unique(self.label))

    def smallest(self, most: int) -> Array:
        """The events of components of the least size: at least one, else up to `most` events."""
        order = np.argsort(self.events)  # by code: the choice does not hang on how rows arrive
        events, labels = self.events[order], self.label[order]
        label, first, size = np.unique(labels, return_index=True, return_counts=True)
        least = int(size.min())
        chosen = label[size == least][np.argsort(first[size == least])][: max(1, most // least)]
        return np.asarray(events[np.isin(labels, chosen)])


def tangles_of(first: Array, then: Array, events: Array) -> _Tangles:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    if not len(events):
        return _Tangles(events, events)
    ones = np.ones(len(first), dtype=np.int8)
    graph = csr_matrix((ones, (first, then)), shape=(len(events), len(events)))
    _, label = connected_components(graph, directed=True, connection="strong")
    tangled = np.flatnonzero(np.bincount(label)[label] > 1)
    return _Tangles(events[tangled], label[tangled])


def _lines(rows: Rows, ranked: list[int]) -> Lines:
    """Lines of the subscribers by name, events renumbered without holes."""
    rank = {each: place for place, each in enumerate(ranked)}
    of_subscriber = np.array([rank[each] for each in rows.subscribers.tolist()], dtype=np.int64)
    order = np.argsort(of_subscriber[rows.subscriber], kind="stable")
    return lines_of(of_subscriber[rows.subscriber][order], rows.event[order], rows.nth[order])


def lines_of(subscriber: Array, event: Array, nth: Array) -> Lines:
    """Lines from rows sorted by (subscriber, nth)."""
    present = np.unique(subscriber)
    numbers, events = factorize(event)
    starts = edges_of(np.searchsorted(present, subscriber), len(present))
    return Lines(present.tolist(), starts, numbers, nth, len(events))


_TASK_RESULT = "violations long, pairs long, distance long, first long, a long, b long, then long"


def compare_in_tasks(
    spark: SparkSession, log: Log, ranked: list[int], tangled: Array | None
) -> Disagreements:
    """One Spark task for each pair of blocks of subscribers."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    coded = log.coded()
    rows = log.table.rows
    if tangled is not None:
        events = spark.createDataFrame(pa.table({"event": pa.array(tangled)}))
        coded = coded.join(F.broadcast(events), "event", "left_semi")
    with boundary(log.table.path):
        counted = dict(map(tuple, coded.groupBy("subscriber").count().collect()))
        rows = sum(counted.values())
        blocks = _blocks([counted.get(each, 0) for each in ranked], rows, cores(spark))
        pairs = [(i, j) for i in range(max(blocks) + 1) for j in range(i, max(blocks) + 1)]
        task = {pair: number for number, pair in enumerate(pairs)}
        tasks = [
            [task[min(block, other), max(block, other)] for other in range(max(blocks) + 1)]
            for block in blocks
        ]
        ranks = spark.createDataFrame(
            pa.table(
                {
                    "subscriber": pa.array(ranked, pa.int64()),
                    "rank": pa.array(range(len(ranked)), pa.int32()),
                    "tasks": pa.array(tasks, pa.list_(pa.int32())),
                }
            )
        )
        sent = coded.join(F.broadcast(ranks), "subscriber").select(
            "rank", "event", "nth", F.explode("tasks").alias("task")
        )
        compared = sent.repartitionById(len(pairs), "task").mapInArrow(
            _Comparison(blocks, pairs), _TASK_RESULT
        )
        found = Disagreements()
        for row in compared.collect():
            found.add(Disagreements(row[0], row[1], [tuple(row[2:])] if row[4] or row[5] else []))
    return found


def _blocks(sizes: list[int], rows: int, parallel: int) -> list[int]:
    """The block of each subscriber, by rank: neighbours together, blocks of about equal size."""
    count = -(-rows // bounds.BLOCK_ROWS_MAX)
    while count * (count + 1) // 2 < 2 * parallel:  # enough tasks for every core
        count += 1
    before = np.cumsum([0, *sizes[:-1]])
    place = np.minimum(count - 1, before * count // max(1, rows))
    blocks: list[int] = np.unique(place, return_inverse=True)[1].tolist()
    return blocks


class _Comparison:
    """What a task does; it is sent to the workers."""

    def __init__(self, blocks: list[int], pairs: list[tuple[int, int]]) -> None:
        self._blocks = np.array(blocks)
        self._pairs = pairs

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        held = list(batches)
        if not held:
            return
        first, second = self._pairs[held[0]["task"][0].as_py()]
        subscriber, nth, event, events = _sequences_of(held)
        left = self._blocks[subscriber] == first
        mine = lines_of_numbered(subscriber[left], event[left], nth[left], events)
        if first == second:
            found = disagreements(mine)
        else:
            other = lines_of_numbered(subscriber[~left], event[~left], nth[~left], events)
            found = disagreements(mine, other)
        # The counts go with the first of the closest pairs, and alone when there is none.
        counts = [(found.violations, found.pairs)] + [(0, 0)] * len(found.closest)
        results = [
            (*count, *closest)
            for count, closest in zip(counts, found.closest or [(0,) * 5], strict=False)
        ]
        names = [part.split()[0] for part in _TASK_RESULT.split(", ")]
        columns = [pa.array(column) for column in zip(*results, strict=True)]
        pa.default_memory_pool().release_unused()  # the worker lives on, idle, after this task
        yield pa.RecordBatch.from_arrays(columns, names=names)


def _sequences_of(held: list[Any]) -> tuple[Array, Array, Array, int]:
    """First deliveries sorted by (subscriber, nth), events numbered; empties the list."""
    import pyarrow as pa

    table = pa.Table.from_batches(held)
    held.clear()
    subscriber, nth = table["rank"].to_numpy(), table["nth"].to_numpy()
    event, events = factorize(table["event"].to_numpy())
    del table
    order = np.lexsort((nth, subscriber))
    subscriber, nth, event = subscriber[order], nth[order], event[order]
    del order
    first = ~repeats(subscriber.astype(np.int64) * len(events) + event)
    return subscriber[first], nth[first], event[first], len(events)


def lines_of_numbered(subscriber: Array, event: Array, nth: Array, events: int) -> Lines:
    """Lines whose events are numbered already, together with another block's."""
    present = np.unique(subscriber)
    starts = edges_of(np.searchsorted(present, subscriber), len(present))
    return Lines(present.tolist(), starts, event, nth, events)


def _witnesses(log: Log, closest: list[Closest]) -> list[dict[str, Any]]:
    """The disagreements with names, in two passes over the log for all of them."""
    if not closest:
        return []
    names = sorted(log.subscriber_names().values())
    at_a = {(names[a], at): "" for _, first, a, _, then in closest for at in (first, then)}
    for row in _in_order(log, [_is(name, "nth", at) for name, at in at_a]):
        at_a[row["subscriber"], row["nth"]] = row["event"]
    wanted = [
        (names[b], at_a[names[a], at]) for _, first, a, b, then in closest for at in (first, then)
    ]
    at_b: dict[tuple[str, str], int] = {}
    for row in _in_order(log, [_is(name, "event", event) for name, event in wanted]):
        key = (row["subscriber"], row["event"])
        at_b[key] = min(at_b.get(key, row["nth"]), row["nth"])
    found = []
    for _, first, a, b, then in closest:
        e, f = at_a[names[a], first], at_a[names[a], then]
        places = [at_b[names[b], e], at_b[names[b], f]]
        found.append(
            {
                "events": [e, f],
                "subscribers": [names[a], names[b]],
                "nths": {names[a]: [first, then], names[b]: places},
            }
        )
    return found


def _is(subscriber: str, column: str, value: Any) -> Column:
    from pyspark.sql import functions as F

    both: Column = (F.col("subscriber") == subscriber) & (F.col(column) == value)
    return both


def _in_order(log: Log, any_of: list[Column]) -> list[Row]:
    """In-order deliveries that fulfil one of the conditions."""
    frame = log.table.frame
    if log.table.has("in_order"):
        frame = frame.where("in_order")
    with boundary(log.table.path):
        chosen = frame.where(reduce(or_, any_of))
        return chosen.select("subscriber", "nth", "event").collect()


def _judge_tangles(log: Log, tangles: _Tangles, total: dict[str, Any] | None) -> Verdict:
    counts = {"tangles": len(tangles), "events_in_tangles": len(tangles.events)}
    witness = _cycle(log, tangles, total) if len(tangles) else None
    return judged("acyclic", len(tangles), counts, witness)


def _cycle(log: Log, tangles: _Tangles, total: dict[str, Any] | None) -> dict[str, Any]:
    """The shortest cycle of the smallest tangle, found by the in-process judge.

    A tangle too large for that is mostly one with a disagreement: two events, the shortest cycle.
    """
    from pyspark.sql import functions as F

    most = bounds.CYCLE_EVENTS_MAX
    smallest = tangles.smallest(most)
    if len(smallest) > most and total is not None:
        chosen = F.col("event").isin(total["events"])
    else:
        chosen = log.code("event").isin(smallest[:most].tolist())
    found = [tuple(row) for row in _in_order(log, [chosen])]
    below = 1 - min(nth for _, nth, _ in found)  # that judge counts places from 1
    lines = [(name, nth + below, event) for name, nth, event in found]
    witness = acyclic.check(History.foreign(lines, log.table.path)).witness
    if witness is None:  # the bound cut the tangle where its cycle closes
        return {"events": sorted({event for _, _, event in found})[:10], "cut": True}
    for step in witness["because"]:
        step["nths"] = [nth - below for nth in step["nths"]]
    return witness
