"""The figures and tables of chapter 4: columns of the same runs, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.cube import chapter4, shown
from experiments.cube.bundles import (
    CLASSES_43,
    SETTING,
    charts_41,
    charts_42,
    charts_43,
    charts_t43,
    judge_41,
    judge_42,
    judge_43,
    judge_t43,
    paper_41,
    paper_42,
    paper_43,
    paper_t43,
    points_by_size,
    points_large,
    points_middle,
    points_payload,
    points_trees,
    runs_at,
)
from experiments.cube.chapter4 import AGGR, PLAIN
from experiments.cube.delays import (
    charts_44,
    charts_45,
    charts_46,
    charts_47,
    charts_49,
    judge_44,
    judge_45,
    judge_46,
    judge_47,
    judge_49,
    paper_44,
    paper_45,
    paper_47,
)
from experiments.figure import Column, Figure, Row
from experiments.points import Settings


def _shares(start: str, names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(f"{start} {name}", f"{name} [%]", 2, 100.0) for name in names)


def _figure(
    name: str,
    title: str,
    points: Callable[[bool], list[Settings]],
    labels: Sequence[str],
    columns: Sequence[Column],
    judge: Callable[[list[Row]], list[str]],
    charts: Callable[[list[Row]], dict[str, str]],
    paper: Callable[[Settings], str] = lambda settings: "shape",
) -> Figure:
    return Figure(
        name=name, title=title, setting=SETTING, points=points, run=chapter4.run,
        columns=(*columns, *shown.COST), labels=labels, judge=judge, paper=paper, source="thesis",
        numbers=(name,), charts=charts, code=chapter4.CODE, kept_as="chapter-4", runs=30,
        quick_runs=3, runs_at=runs_at,
    )  # fmt: skip


def _both(key: str, heading: str, digits: int = 1) -> tuple[Column, Column]:
    return (
        Column(f"{PLAIN} {key}", f"{heading}, plain", digits),
        Column(f"{AGGR} {key}", f"{heading}, aggregated", digits),
    )


BY_LOAD = ("load", "nodes")
FIGURES = [
    _figure(
        "table-4.1", "packets", points_by_size, BY_LOAD,
        (*_both("packets", "packets", 0), Column("packets", "fewer packets [%]", 2, 100.0),
         Column(f"{AGGR} several", "with several messages [%]", 2, 100.0),
         Column("bytes", "fewer bytes [%]", 2, 100.0),
         Column("cost", "s + c w lower, s = 2 c [%]", 2, 100.0)),
        judge_41, charts_41, paper_41,
    ),
    _figure(
        "table-4.2", "messages a packet, % of all packets", points_middle, BY_LOAD,
        (*_shares(f"{AGGR} of all", chapter4.SEVERAL), Column(f"{AGGR} largest", "largest", 1)),
        judge_42, charts_42, paper_42,
    ),
    _figure(
        "table-4.3", "bytes of a packet, first plain, then aggregated", points_middle, BY_LOAD,
        (*_shares(f"{PLAIN} bytes", chapter4.SIZES), *_shares(f"{AGGR} bytes", chapter4.SIZES),
         Column("above all plain", "above all plain [%]", 2, 100.0),
         Column(f"{AGGR} above 1400", "above 1400 [%]", 2, 100.0),
         Column(f"{AGGR} full", "closed because of the MTU", 1)),
        judge_t43, charts_t43, paper_t43,
    ),
    _figure(
        "4.3", "dependencies of a message", points_middle, BY_LOAD,
        (*_shares(f"{AGGR} rests on", CLASSES_43), Column(f"{AGGR} rests on most", "most", 1),
         *_shares(f"{PLAIN} rests on", CLASSES_43)),
        judge_43, charts_43, paper_43,
    ),
    _figure(
        "4.4", "reception and delivery", points_by_size, BY_LOAD,
        (*_both("reception", "reception"), *_both("delivery", "delivery"), *_both("held", "held"),
         *_both("wait", "wait in a queue"), *_both("longest", "longest reception", 0)),
        judge_44, charts_44, paper_44,
    ),
    _figure(
        "4.5", "messages in packets of two, and the same messages without", points_by_size,
        BY_LOAD,
        (Column("in twos", "such messages", 0),
         *(Column(f"twos {way} {key}", f"{key}, {name}", 1)
           for key in ("reception", "delivery", "held")
           for way, name in ((PLAIN, "plain"), (AGGR, "aggregated")))),
        judge_45, charts_45, paper_45,
    ),
    _figure(
        "4.6", "nodes by the most messages they hold at once", points_large, BY_LOAD,
        (*_both("nodes to 50", "at most 50"), *_both("nodes above 250", "above 250"),
         *_both("held at once", "most")),
        judge_46, charts_46,
    ),
    _figure(
        "4.7", "nodes by the messages in their largest packet", points_payload,
        ("load", "payload", "nodes"),
        (Column(f"{AGGR} 7 to 11", "7 to 11 [%]", 1, 100.0),
         Column(f"{AGGR} 8 to 12", "8 to 12 [%]", 1, 100.0),
         Column(f"{AGGR} mode", "most often", 1), Column(f"{AGGR} largest", "largest", 1)),
        judge_47, charts_47, paper_47,
    ),
    _figure(
        "4.9", "one tree a source and one tree for all, with aggregation", points_trees,
        ("load", "trees", "nodes"),
        (Column(f"{AGGR} aggregations", "packets with several", 0),
         Column(f"{AGGR} delayed", "messages that are held", 0),
         Column(f"{AGGR} reception", "reception", 1), Column(f"{AGGR} held", "held", 1)),
        judge_49, charts_49,
    ),
]  # fmt: skip
