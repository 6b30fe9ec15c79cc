"""Figures 4.4 to 4.9: what aggregation does to times, to buffers and to the size of packets.

The runs are those of bundles.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from msgspec import structs

from experiments.chart import Frame, Layer, line, marks
from experiments.cube import shown, thesis, workloads
from experiments.cube.bundles import (
    LARGE,
    LOADS,
    SINGLE,
    SOURCE,
    _by_nodes,
    _pages,
    above,
    close,
    fitted,
    percent,
)
from experiments.cube.chapter4 import AGGR, PLAIN
from experiments.figure import Row, holds
from experiments.points import Settings


def judge_44(rows: list[Row]) -> list[str]:
    mine = fitted(rows)
    if not mine:
        return []
    least, largest = mine[0], mine[-1]
    lines = []
    if largest.settings["nodes"] == LARGE:
        for way, curve in ((AGGR, thesis.AGGR), (PLAIN, thesis.PLAIN)):
            for key, quantity in (("reception", "reception grows by"),
                                  ("longest", "longest reception grows by")):  # fmt: skip
                grows = largest.mean(f"{way} {key}") / least.mean(f"{way} {key}") - 1.0
                lines.append(close("4.4", quantity, grows, 0.2, curve=curve, nodes=LARGE))
        ours = largest.mean(f"{PLAIN} wait")
        at = {"curve": thesis.PLAIN, "nodes": LARGE}
        lines.append(close("4.4", "wait in the sending queue", ours, 0.2, **at))
        ours = above(largest, f"{AGGR} delivery", f"{PLAIN} delivery")
        lines.append(close("4.4", "delivery, aggregated above plain", ours, 0.25, nodes=LARGE))
    for row in mine:
        at = {"nodes": row.settings["nodes"]}
        if (theirs := shown.number("4.4", "reception, aggregated above plain", **at)) is not None:
            ours = above(row, f"{AGGR} reception", f"{PLAIN} reception")
            claim = f"(4.4; {at['nodes']}) reception, aggregated above plain [%]"
            lines.append(shown.close(claim, ours, theirs, 0.25))
    lines += _judge_delivery(mine)
    return lines


def _judge_delivery(mine: Sequence[Row]) -> list[str]:
    small = [row for row in mine if row.settings["nodes"] <= 512]
    apart = {row.settings["nodes"]: above(row, f"{AGGR} delivery", f"{PLAIN} delivery")
             for row in small}  # fmt: skip
    listed = ", ".join(f"{nodes}: {value:+.1f}" for nodes, value in apart.items())
    most = thesis.stated("4.4", "delivery differs by", nodes=32)
    held = {row.settings["nodes"]: (row.mean(f"{PLAIN} held"), row.mean(f"{AGGR} held"))
            for row in mine if row.settings["nodes"] > 8}  # fmt: skip
    longer = ", ".join(f"{nodes}: {100 * (plain / aggr - 1):+.0f}"
                       for nodes, (plain, aggr) in held.items())  # fmt: skip
    return [
        holds(
            f"(4.4) up to 512 nodes delivery differs by at most {most} %: {listed}",
            all(abs(value) <= most for value in apart.values()),
        ),
        holds(
            f"(4.4) messages are held for longer without aggregation (thesis: by 5 % at 16 to "
            f"53.4 % at 1024): {longer} %",
            all(plain > aggr for plain, aggr in held.values()),
        ),
    ]


def paper_44(settings: Settings) -> str:
    theirs = thesis.text("4.4", "reception, aggregated above plain", nodes=settings["nodes"])
    return f"reception {theirs} %" if theirs else "shape"


# What aggregation changes, in percent; the thesis states some of them.
EFFECTS = {
    "reception": "reception, aggregated above plain",
    "delivery": "delivery, aggregated above plain",
}


def _effects(rows: Sequence[Row]) -> Frame:
    layers = []
    for colour, (key, quantity) in enumerate(EFFECTS.items()):

        def ours(row: Row, key: str = key) -> float:
            return above(row, f"{AGGR} {key}", f"{PLAIN} {key}")

        def theirs(row: Row, quantity: str = quantity) -> float | None:
            return shown.number("4.4", quantity, nodes=row.settings["nodes"])

        for layer in shown.curves([(key, rows)], "nodes", ours, theirs):
            layers.append(structs.replace(layer, colour=colour))
    title = f"aggregated above plain [%], by nodes, {workloads.CALIBRATED}"
    return _by_nodes(title, layers, rows)


def charts_44(rows: list[Row]) -> dict[str, str]:
    frames = [_effects(fitted(rows))] if fitted(rows) else []
    for load in LOADS:
        mine = shown.where(rows, load=load)
        layers: list[Layer] = []
        for colour, (way, key) in enumerate(
            (way, key) for key in ("reception", "delivery") for way in (PLAIN, AGGR)
        ):
            named = f"{key}, {way}"
            drawn = _line(mine, f"{way} {key}", named, colour)
            layers += drawn
        frames.append(_by_nodes(f"latency by nodes, {load}", layers, mine))
    return _pages("4.4", frames)


def _line(rows: Sequence[Row], key: str, name: str, colour: int) -> list[Layer]:
    known = [row for row in rows if row.values(key)]
    drawn = line([float(row.settings["nodes"]) for row in known], [row.mean(key) for row in known])
    return [Layer("line", drawn.x, drawn.y, name, colour=colour)] if known else []


def judge_45(rows: list[Row]) -> list[str]:
    mine = [row for row in fitted(rows) if row.values("twos aggr held")]
    lines = []
    gains = {row.settings["nodes"]: above(row, "twos aggr reception", "twos plain reception")
             for row in mine}  # fmt: skip
    most = thesis.stated("4.5", "reception, aggregated above plain")
    listed = ", ".join(f"{nodes}: {gain:+.1f}" for nodes, gain in gains.items())
    small = [gain for nodes, gain in gains.items() if nodes < LARGE]
    lines.append(
        holds(f"(4.5) in packets of two, reception is up to {most} % later below 1,024: {listed}",
              bool(small) and 0.5 * most < max(small) < 1.5 * most)
    )  # fmt: skip
    for row in mine:
        at = {"nodes": row.settings["nodes"]}
        if shown.number("4.5", "time held, aggregated above plain", **at) is not None:
            ours = above(row, "twos aggr held", "twos plain held")
            lines.append(close("4.5", "time held, aggregated above plain", ours, 0.2, **at))
    apart = {row.settings["nodes"]: above(row, "twos aggr delivery", "twos plain delivery")
             for row in mine if row.settings["nodes"] < LARGE}  # fmt: skip
    listed = ", ".join(f"{nodes}: {value:+.1f}" for nodes, value in apart.items())
    lines.append(
        holds(f"(4.5) in packets of two, delivery is the same below 1,024 (within 5 %): {listed}",
              all(abs(value) < 5.0 for value in apart.values()))
    )  # fmt: skip
    alone = shown.where(rows, load=workloads.CALIBRATED, nodes=8)
    if alone:
        few = alone[0].mean("in twos") / 2.0
        lines.append(holds(f"(4.5) nothing to see at 8 nodes: {few:.1f} packets of two", few < 1.0))
    return lines


def paper_45(settings: Settings) -> str:
    theirs = thesis.text("4.5", "time held, aggregated above plain", nodes=settings["nodes"])
    return f"held {theirs} %" if theirs else "shape"


def charts_45(rows: list[Row]) -> dict[str, str]:
    mine = fitted(rows)
    layers = [
        layer
        for colour, (way, key) in enumerate(
            (way, key) for key in ("reception", "delivery", "held") for way in (PLAIN, AGGR)
        )
        for layer in _line(mine, f"twos {way} {key}", f"{key}, {way}", colour)
    ]
    title = "messages in packets of two: latency by nodes, and how long they are held"
    return _pages("4.5", [_by_nodes(title, layers, mine)])


# Figures 4.6, 4.7 and 4.9.

# As chapter4.py counts what nodes hold.
STEP = 25


def judge_46(rows: list[Row]) -> list[str]:
    lines = []
    for row in fitted(rows, nodes=LARGE):
        for way, curve in ((AGGR, thesis.AGGR), (PLAIN, thesis.PLAIN)):
            for key, quantity in (("nodes to 50", "nodes with at most 50"),
                                  ("nodes above 250", "nodes with more than 250")):  # fmt: skip
                at = {"curve": curve, "nodes": LARGE}
                lines.append(close("4.6", quantity, row.mean(f"{way} {key}"), 0.25, **at))
    for row in fitted(rows):
        fewer = row.mean(f"{AGGR} nodes to 50") >= row.mean(f"{PLAIN} nodes to 50")
        lines.append(holds("(4.6) more nodes have few messages with aggregation", fewer))
    return lines


def _histogram(row: Row, key: str) -> dict[int, float]:
    """Nodes by a whole number, on average over the runs."""
    counts: Counter[int] = Counter()
    for numbers in row.runs:
        # Keys of JSON are strings.
        counts.update({int(value): count for value, count in numbers[key].items()})
    return {value: counts[value] / len(row.runs) for value in sorted(counts)}


def charts_46(rows: list[Row]) -> dict[str, str]:
    layers = []
    for colour, (row, way) in enumerate((row, way) for row in rows for way in (AGGR, PLAIN)):
        found = _histogram(row, f"{way} most held")
        name = f"{way}, {row.settings['load']}"
        x = [value + float(STEP) for value in found]
        layers.append(Layer("line", x, [*accumulate(found.values())], name, colour=colour))
        if row.settings == {**row.settings, "load": workloads.CALIBRATED, "nodes": LARGE}:
            curve = thesis.AGGR if way == AGGR else thesis.PLAIN
            few, many = (
                thesis.stated("4.6", f"nodes with {words}", curve=curve, nodes=LARGE)
                for words in ("at most 50", "more than 250")
            )
            layers.append(marks([50.0, 250.0], [few, LARGE - many], colour))
    title = "nodes that never hold more messages at once than this (steps of 25)"
    return _pages("4.6", [Frame(title, layers)])


def judge_47(rows: list[Row]) -> list[str]:
    lines = []
    for row in shown.where(rows, nodes=LARGE):
        payload = row.settings["payload"]
        at = {"payload": payload, "nodes": LARGE}
        low, high = ("7 to 11", "7 and 11") if payload == 50 else ("8 to 12", "8 and 12")
        ours = percent(row, f"{AGGR} {low}")
        lines.append(close("4.7", f"nodes between {high} [%]", ours, 0.15, **at))
        if payload == 50:
            most = row.mean(f"{AGGR} largest")
            claim = f"(4.7) no packet above 14 messages of 50 bytes: {most:.1f}"
            lines.append(holds(claim, most <= 14))
    return lines


def paper_47(settings: Settings) -> str:
    if settings["nodes"] != LARGE:
        return "shape"
    return "95.5 % in 7 to 11" if settings["payload"] == 50 else "81.3 % in 8 to 12"


def charts_47(rows: list[Row]) -> dict[str, str]:
    layers = []
    for colour, row in enumerate(rows):
        found = _histogram(row, f"{AGGR} largest packets")
        name = f"{row.settings['payload']} bytes"
        drawn = line([float(value) for value in found], [*found.values()])
        layers.append(Layer("line", drawn.x, drawn.y, name, colour=colour))
    return _pages("4.7", [Frame("nodes by the messages in their largest packet", layers)])


def judge_49(rows: list[Row]) -> list[str]:
    lines = []
    gaps: Mapping[str, tuple[str, int]] = {
        "aggregations": ("fewer aggregations [%]", 32),
        "delayed": ("fewer delayed messages [%]", 128),
    }
    for key, (quantity, at) in gaps.items():
        fewer = {}
        for row in shown.where(rows, trees=SOURCE):
            nodes = row.settings["nodes"]
            single = shown.only(rows, trees=SINGLE, nodes=nodes)
            if single is not None and row.mean(f"{AGGR} {key}"):
                share = single.mean(f"{AGGR} {key}") / row.mean(f"{AGGR} {key}")
                fewer[nodes] = 100.0 * (1.0 - share)
        most = thesis.stated("4.9", quantity, nodes=at)
        listed = ", ".join(f"{nodes}: {value:.0f}" for nodes, value in fewer.items())
        good = all(value >= most for nodes, value in fewer.items() if nodes >= 32)
        lines.append(
            holds(f"(4.9) single tree: at least {most:g} % {quantity[:-4]} from 32 nodes on: "
                  f"{listed} %", good)
        )  # fmt: skip
    last = shown.only(rows, trees=SINGLE, nodes=LARGE)
    before = shown.only(rows, trees=SINGLE, nodes=LARGE // 2)
    if last and before:
        drops = last.mean(f"{AGGR} aggregations") < before.mean(f"{AGGR} aggregations")
        lines.append(holds("(4.9) the single tree's aggregations drop at 1,024 nodes", drops))
    return lines


def charts_49(rows: list[Row]) -> dict[str, str]:
    layers = []
    for colour, (trees, key) in enumerate(
        (trees, key) for key in ("aggregations", "delayed") for trees in (SOURCE, SINGLE)
    ):
        mine = shown.where(rows, trees=trees)
        name = f"{key}, {'one tree a source' if trees == SOURCE else 'single tree'}"
        layers += _line(mine, f"{AGGR} {key}", name, colour)
    return _pages("4.9", [_by_nodes("packets with several messages; messages that are held",
                                    layers, rows, log=True)])  # fmt: skip
