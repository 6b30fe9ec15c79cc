"""Accepted, of all publications at once: those that never got an answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from inorder.check.accepted import NO_ENDING, NO_OUTCOME, OUTCOMES
from inorder.check.ending import Ending
from inorder.check.verdict import Verdict, judged, not_judged
from inorder.pipeline.boundary import boundary
from inorder.pipeline.coded import Array, code
from inorder.pipeline.published import Published

COLUMNS = ("event", "topic", "publisher", "seq", "published_at")


def check(published: Published, ending: Ending | None) -> Verdict:
    told = published.outcome.copy()
    told[(told == 0) & ~np.isnan(published.accepted_at)] = 1
    silent = told == 0
    if ending is None and silent.any():
        return not_judged("accepted", NO_OUTCOME if silent.all() else NO_ENDING)
    young = np.zeros(len(published), dtype=np.bool_)
    if ending is not None and not ending.quiet:
        young = silent & (ending.ended_at - published.published_at < ending.within)
    never = np.flatnonzero(silent & ~young)
    counts = {"published": len(published)}
    counts |= {word: int(np.count_nonzero(told == n)) for n, word in enumerate(OUTCOMES, 1)}
    counts |= {"young": int(np.count_nonzero(young)), "never": len(never)}
    return judged("accepted", len(never), counts, _witness(published, never))


def _witness(published: Published, never: Array) -> dict[str, Any] | None:
    from pyspark.sql import functions as F

    if not len(never):
        return None
    when = published.published_at[never]
    first = [int(each) for each in published.code[never[when == when.min()]]]
    table = published.table
    coded = table.frame.withColumn("_code", code("event", published.attempt))
    chosen = coded.where(F.col("_code").isin(first)).select("event", "publisher", "topic")
    with boundary(table.path):
        event, publisher, topic = min(map(tuple, chosen.collect()))
    return {
        "event": event,
        "publisher": publisher,
        "topic": topic,
        "published_at": float(when.min()),
        "outcome": None,
    }
