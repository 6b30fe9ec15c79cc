"""Filter: deliveries of filtered subscriptions match the parameters in force."""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.holding import NOT_HELD, Holding, State
from inorder.check.trace import DeliveryRow
from inorder.check.verdict import Verdict, judged
from inorder.pipeline.coded import Array, Log, Rows
from inorder.pipeline.matching import Matching
from inorder.pipeline.published import Published
from inorder.pipeline.reliable import Holdings

COLUMNS = ("event", "publisher", "seq", "published_at")
NEEDED = ("topic", "delivered_at")

Stranger = tuple[float, str, int, int, State]  # delivered_at, subscriber, nth, event, state


def check(log: Log, published: Published, holdings: Holdings, matching: Matching) -> Verdict:
    from pyspark.sql import functions as F

    filtered = {
        key: holding
        for key, holding in holdings.items()
        if any(state.where is not None for state in holding.states)
    }
    by_subscriber: dict[str, list[tuple[int, Holding]]] = {}
    codes = {topic: _topic_code(log, topic) for topic in sorted({key[1] for key in filtered})}
    for (subscriber, topic), holding in filtered.items():
        by_subscriber.setdefault(subscriber, []).append((codes[topic], holding))
    names = log.subscriber_names()
    more = {"topic": log.code("topic"), "delivered_at": F.col("delivered_at")}
    checked, strangers = 0, 0
    earliest: Stranger | None = None
    for rows in log.slices(more, ("subscriber", "nth", "event", *NEEDED)):
        events = published.find(rows)[rows.event]
        for owner, each in enumerate(rows.subscribers.tolist()):
            mine = np.arange(int(rows.bounds[owner]), int(rows.bounds[owner + 1]))
            for topic_code, holding in by_subscriber.get(names[each], ()):
                asked = mine[(rows.more["topic"][mine] == topic_code) & (events[mine] >= 0)]
                count, wrong = _strangers(rows, asked, events, holding, matching)
                checked += count
                strangers += len(wrong)
                for place, state in wrong[:1]:
                    at, nth = float(rows.more["delivered_at"][place]), rows.nth[place]
                    if earliest is None or (at, names[each], nth) < earliest[:3]:
                        earliest = (at, names[each], int(nth), int(events[place]), state)
    counts = {"checked": checked, "strangers": strangers}
    return judged("filter", strangers, counts, _witness(published, matching, earliest))


def _strangers(
    rows: Rows, asked: Array, events: Array, holding: Holding, matching: Matching
) -> tuple[int, list[tuple[int, State]]]:
    """How many deliveries were filtered, and those that do not match, the earliest first."""
    checked = 0
    wrong: list[tuple[int, State]] = []
    states = _states_at(rows, asked, holding)
    for number in np.unique(states).tolist():
        state = holding.states[number] if number >= 0 else NOT_HELD
        if state.where is None:
            continue
        here = asked[states == number]
        checked += len(here)
        passes = matching.passes(state, events[here])
        wrong += [(place, state) for place in here[~passes].tolist()]
    times = rows.more["delivered_at"]
    wrong.sort(key=lambda each: (float(times[each[0]]), int(rows.nth[each[0]])))
    return checked, wrong


def _states_at(rows: Rows, asked: Array, holding: Holding) -> Array:
    """The number of the state in force at each delivery, -1 for none."""
    afters = [state.after for state in holding.states]
    counted = [after for after in afters if after is not None]
    if len(counted) == len(afters) and counted == sorted(counted):
        return np.searchsorted(np.array(counted), rows.nth[asked], side="left") - 1
    number = {id(state): place for place, state in enumerate(holding.states)}
    times = rows.more["delivered_at"]
    found = []
    for place in asked.tolist():
        at = float(times[place])
        row = DeliveryRow("", int(rows.nth[place]), "", "", "", 0, at, at, at)
        found.append(number.get(id(holding.at(row)), -1))
    return np.array(found, dtype=np.int64)


def _topic_code(log: Log, topic: str) -> int:
    """The code Spark gives a topic's name."""
    from pyspark.sql import functions as F

    spark = log.table.frame.sparkSession
    row = spark.range(1).select(F.lit(topic).alias("topic")).select(log.code("topic")).first()
    assert row is not None, "one row"
    return int(row[0])


def _witness(
    published: Published, matching: Matching, earliest: Stranger | None
) -> dict[str, Any] | None:
    if earliest is None:
        return None
    _, subscriber, nth, event, state = earliest
    each = int(published.code[event])
    return {
        "event": published.names([each])[each],
        "subscriber": subscriber,
        "nth": nth,
        "where": state.where,
        "parameters": state.parameters,
        "attributes": dict(matching.attributes(event)),
    }
