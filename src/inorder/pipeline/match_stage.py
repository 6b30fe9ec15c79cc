"""Content matching in Spark: which subscriber wants which event, for tables and for streams.

Rule 1: the answer is that of the matching clients: an event is for a subscriber that holds its
        topic, if the `where` it holds the topic with is true under the parameters of the version.
Rule 2: one version for one answer. Subscriptions in a DataFrame or a list are read when the plan is
        made; a batch uses the version a table has then. A stream uses one version of the table in
        each micro-batch, the same when the batch is run again (subscriptions.py).
Rule 3: bad subscriptions are refused when the plan is made, or when they are appended to a table.
        Bad events never stop a job that asked for `quarantine`.

Inside `foreachBatch` frames are no streams any more, but belong to a micro-batch: there the version
is pinned too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from inorder.core.errors import Misuse
from inorder.pipeline.boundary import boundary
from inorder.pipeline.match_state import Holdings, rows_of
from inorder.pipeline.subscriptions import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from inorder.pipeline.match_worker import Shipped, Stored

_NEEDED = ("topic", "attributes")
_GIVEN = ("subscriber", "op", "topics", "where", "parameters", "at", "after", "version")


def match(
    events: DataFrame,
    subscriptions: DataFrame
    | SubscriptionTable
    | Holdings
    | str
    | os.PathLike[str]
    | Iterable[Any],
    *,
    unmatched: bool = False,
    quarantine: bool = False,
) -> DataFrame:
    """A row for each event and subscriber it is for: the event's columns and `subscriber`.

    `events` has a `topic` and `attributes`, JSON text. `subscriptions` is a changelog: rows as in a
    trace, a table or the path of one, or the holdings of a version (`table.at(3)`).

    With `unmatched` there is a row for every subscriber that holds the topic, and `matched` tells
    whether the event is for it. With `quarantine` bad events have one row without a subscriber, and
    the reason in `quarantine` (with `unmatched` also one that is not matched for whoever holds the
    topic: their place is taken); without, they are an error that names the event.
    """
    from inorder.pipeline.match_worker import Task

    schema = _output(events, unmatched, quarantine)
    task = Task(_source(events, subscriptions), unmatched, quarantine)
    return events.mapInArrow(task, schema)


def _output(events: DataFrame, unmatched: bool, quarantine: bool) -> Any:
    from pyspark.sql.types import BooleanType, StringType, StructField, StructType

    kinds = {field.name: field.dataType for field in events.schema.fields}
    for name in _NEEDED:
        if name not in kinds:
            raise Misuse(f"events have no column {name!r}")
        if not isinstance(kinds[name], StringType):
            raise Misuse(f"the column {name!r} of events is {kinds[name].simpleString()}, not text")
    added = [StructField("subscriber", StringType())]
    if unmatched:
        added.append(StructField("matched", BooleanType()))
    if quarantine:
        added.append(StructField("quarantine", StringType()))
    known = {name.lower() for name in kinds}
    for field in added:
        if field.name in known:
            raise Misuse(f"events have a column {field.name!r} already, which match adds")
    return StructType([*events.schema.fields, *added])


def _source(events: DataFrame, subscriptions: Any) -> Shipped | Stored:
    from pyspark.sql import DataFrame

    spark = events.sparkSession
    if isinstance(subscriptions, str | os.PathLike):
        subscriptions = SubscriptionTable(subscriptions, create=False)
    if isinstance(subscriptions, SubscriptionTable):
        return _stored(spark, subscriptions, events.isStreaming)
    if isinstance(subscriptions, Holdings):
        return _shipped(spark, subscriptions)
    if isinstance(subscriptions, DataFrame):
        if subscriptions.isStreaming:
            raise Misuse("subscriptions cannot be a stream: append them to a SubscriptionTable")
        with boundary("subscriptions"):
            chosen = [name for name in _GIVEN if name in subscriptions.columns]
            subscriptions = subscriptions.select(*chosen).collect()
    holdings = Holdings()
    holdings.take(holdings.staged(rows_of(subscriptions)))
    return _shipped(spark, holdings)


def _stored(spark: SparkSession, table: SubscriptionTable, streaming: bool) -> Stored:
    from inorder.pipeline.match_worker import BATCH_KEY, QUERY_KEY, Stored

    if streaming:
        return Stored(table.path, None)
    # Set in the thread that runs foreachBatch.
    query = spark.sparkContext.getLocalProperty(QUERY_KEY)
    batch = spark.sparkContext.getLocalProperty(BATCH_KEY)
    if query is not None and batch is not None:
        return Stored(table.path, table.pin(query, int(batch)))
    return Stored(table.path, table.latest())


def _shipped(spark: SparkSession, holdings: Holdings) -> Shipped:
    from inorder.pipeline.match_worker import Shipped

    rows = msgspec.json.encode(holdings.rows())
    digest = hashlib.sha256(rows).hexdigest()
    return Shipped(digest, spark.sparkContext.broadcast(rows))
