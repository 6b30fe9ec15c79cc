"""Chapter 4: tables 4.1 to 4.3 and figures 4.3 to 4.7 and 4.9, with and without causal aggregation.

All of them are different columns of the same runs (chapter4.py), under two loads:

- the stated one, "a Poisson distribution with interval rate 1000", read as exponential with mean
  1,000, and delays with a standard deviation of 25. Aggregation is 3 to 8 times too rare;
- a calibrated one, even in [0, 400] and a standard deviation of 40: two numbers fitted to table
  4.1's row of 256 nodes (and to figure 4.3). Everything else is its prediction.

Figure 4.9 compares with a single tree: how a message comes to root 0 is not said; one hop, as in
SRPT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from experiments.chart import Frame, Layer, line, marks, page
from experiments.cube import chapter4, shown, thesis, workloads
from experiments.cube.chapter4 import AGGR, PLAIN
from experiments.figure import Column, Figure, Row, holds
from experiments.points import Settings

LOADS = (workloads.CALIBRATED, workloads.STATED)
SOURCE, SINGLE = "source", "single"
SMALL, MIDDLE, LARGE = 64, 256, 1024
SETTING = (
    f"Every node publishes once; {workloads.CALIBRATED}: fitted at 256 nodes; "
    f"{workloads.STATED}: as stated, with sd 25; machines: peers with stamps = clock, aggregate = "
    "none and causal, each pair of runs with the same delays"
)


def _point(load: str, nodes: int, payload: int = 50, trees: str = SOURCE) -> Settings:
    return {"load": load, "nodes": nodes, "payload": payload, "trees": trees}


def points_by_size(quick: bool) -> list[Settings]:
    return [_point(load, nodes) for load in LOADS for nodes in shown.sizes(quick, LARGE)]


def points_middle(quick: bool) -> list[Settings]:
    return [_point(load, SMALL if quick else MIDDLE) for load in LOADS]


def points_large(quick: bool) -> list[Settings]:
    return [_point(load, 128 if quick else LARGE) for load in LOADS]


def points_payload(quick: bool) -> list[Settings]:
    nodes = 128 if quick else LARGE
    return [_point(workloads.CALIBRATED, nodes, payload) for payload in (50, 5)]


def points_trees(quick: bool) -> list[Settings]:
    return [
        _point(workloads.CALIBRATED, nodes, trees=trees)
        for trees in (SOURCE, SINGLE)
        for nodes in shown.sizes(quick, LARGE)
    ]


def runs_at(point: Settings) -> int:
    """The thesis's 30 up to 128 nodes; a pair of runs is 7 s at 256, and 3 minutes at 1,024."""
    nodes: int = point["nodes"]
    return 30 if nodes <= 128 else 10 if nodes <= 256 else 4 if nodes <= 512 else 2


def fitted(rows: Sequence[Row], **settings: object) -> list[Row]:
    return shown.where(rows, load=workloads.CALIBRATED, **settings)


def close(figure: str, quantity: str, ours: float, within: float, **at: object) -> str:
    """A number of the calibrated load beside the stated one."""
    places = ", ".join(str(value) for value in at.values())
    stated = thesis.stated(figure, quantity, **at)
    return shown.close(f"({figure}; {places}) {quantity}", ours, stated, within)


def percent(row: Row, key: str) -> float:
    return 100.0 * row.mean(key)


def above(row: Row, ours: str, others: str) -> float:
    """By how many percent the mean of one number exceeds that of another."""
    return 100.0 * (row.mean(ours) / row.mean(others) - 1.0)


# Table 4.1.


def judge_41(rows: list[Row]) -> list[str]:
    lines = []
    for row in fitted(rows):
        nodes = row.settings["nodes"]
        at = {"nodes": nodes}
        packets = row.mean(f"{AGGR} packets")
        lines.append(close("table 4.1", "packets-aggregated", packets, 0.05, **at))
        if nodes > 8:
            lines.append(
                close("table 4.1", "several[%]", percent(row, f"{AGGR} several"), 0.15, **at)
            )
    exact = all(row.mean(f"{PLAIN} packets") == row.settings["nodes"] * (row.settings["nodes"] - 1)
                for row in rows)  # fmt: skip
    lines.append(holds("(table 4.1) without aggregation exactly N (N - 1) packets", exact))
    for row in shown.where(rows, load=workloads.STATED):
        if row.settings["nodes"] in (SMALL, MIDDLE, LARGE):
            theirs = thesis.stated("table 4.1", "reduction[%]", nodes=row.settings["nodes"])
            claim = f"(table 4.1; {row.settings['nodes']}) the stated load's reduction [%]"
            lines.append(shown.close(claim, percent(row, "packets"), theirs, 0.15))
    return lines


def paper_41(settings: Settings) -> str:
    at = {"nodes": settings["nodes"]}
    names = ("packets-aggregated", "reduction[%]", "several[%]")
    packets, reduction, several = (thesis.text("table 4.1", name, **at) for name in names)
    return f"{packets} (-{reduction} %), {several} %"


def charts_41(rows: list[Row]) -> dict[str, str]:
    def theirs(row: Row) -> float | None:
        if row.settings["load"] != workloads.CALIBRATED:
            return None
        return shown.number("table 4.1", "reduction[%]", nodes=row.settings["nodes"])

    layers = shown.curves(
        shown.named(rows, "load"), "nodes", lambda row: percent(row, "packets"), theirs
    )
    return _pages("table-4.1", [_by_nodes("packets saved [%], by nodes", layers, rows)])


def _by_nodes(title: str, layers: Sequence[Layer], rows: Sequence[Row], log: bool = False) -> Frame:
    ticks = sorted({float(row.settings["nodes"]) for row in rows})
    return Frame(title, layers, x_log=True, y_log=log, ticks=ticks)


def _pages(name: str, frames: Sequence[Frame]) -> dict[str, str]:
    return {f"figure-{name}.svg": page(frames, height=260)}


# Table 4.2, table 4.3 and figure 4.3: shares by class.

CLASSES_42 = chapter4.SEVERAL[:-1]
CLASSES_43 = ("none", "1 to 4", "5 to 9", "above 12")


def judge_42(rows: list[Row]) -> list[str]:
    lines = []
    for row in fitted(rows, nodes=MIDDLE):
        for name in CLASSES_42:
            at = {"messages": name, "nodes": MIDDLE}
            lines.append(
                close("table 4.2", "of-all[%]", percent(row, f"{AGGR} of all {name}"), 0.15, **at)
            )
        few = percent(row, f"{AGGR} of several 2") + percent(row, f"{AGGR} of several 3")
        lines.append(close("table 4.2", "2 or 3, of aggregated", few, 0.05, nodes=MIDDLE))
    return lines


def paper_42(settings: Settings) -> str:
    return _listed("table 4.2", "of-all[%]", "messages", CLASSES_42, settings)


def _listed(
    figure: str, quantity: str, key: str, classes: Sequence[str], settings: Settings
) -> str:
    at = {"nodes": settings["nodes"]}
    values = [thesis.text(figure, quantity, **{key: name}, **at) for name in classes]
    return " / ".join(values) if all(values) else "shape"


def charts_42(rows: list[Row]) -> dict[str, str]:
    def theirs(name: str) -> float:
        return thesis.stated("table 4.2", "of-all[%]", messages=name, nodes=MIDDLE)

    def ours(row: Row, name: str) -> float:
        return percent(row, f"{AGGR} of all {name}")

    title = "packets [%] with 1, 2, 3, 4, 5, 6 to 15 messages"
    return _pages("table-4.2", [_classes(title, rows, CLASSES_42, ours, theirs, log=True)])


def _classes(
    title: str,
    rows: Sequence[Row],
    names: Sequence[str],
    ours: Callable[[Row, str], float],
    theirs: Callable[[str], float],
    log: bool = False,
) -> Frame:
    """A line for each load over the classes, and the thesis's numbers."""
    x = [float(place + 1) for place in range(len(names))]
    layers = [
        Layer("line", x, [ours(row, name) for name in names], str(row.settings["load"]),
              colour=place)
        for place, row in enumerate(rows)
    ]  # fmt: skip
    layers.append(marks(x, [theirs(name) for name in names], 0))
    return Frame(title, layers, y_log=log, ticks=x)


def judge_t43(rows: list[Row]) -> list[str]:
    lines = []
    for row in fitted(rows, nodes=MIDDLE):
        for way, quantity in ((PLAIN, "plain[%]"), (AGGR, "aggregated[%]")):
            for name in chapter4.SIZES:
                at = {"bytes": name, "nodes": MIDDLE}
                ours = percent(row, f"{way} bytes {name}")
                lines.append(close("table 4.3", quantity, ours, 0.15, **at))
        ours = percent(row, "above all plain")
        lines.append(close("table 4.3", "aggregated above all plain", ours, 0.25, nodes=MIDDLE))
        ours = percent(row, f"{AGGR} above 1400")
        lines.append(close("table 4.3", "aggregated above 1400", ours, 0.5, nodes=MIDDLE))
        ours = row.mean(f"{AGGR} full")
        lines.append(close("table 4.3", "closed because of the MTU", ours, 0.5, nodes=MIDDLE))
    return lines


def paper_t43(settings: Settings) -> str:
    both = (_listed("table 4.3", quantity, "bytes", chapter4.SIZES, settings)
            for quantity in ("plain[%]", "aggregated[%]"))  # fmt: skip
    return "; ".join(both)


def charts_t43(rows: list[Row]) -> dict[str, str]:
    frames = []
    for way, quantity in ((PLAIN, "plain[%]"), (AGGR, "aggregated[%]")):

        def theirs(name: str, quantity: str = quantity) -> float:
            return thesis.stated("table 4.3", quantity, bytes=name, nodes=MIDDLE)

        def ours(row: Row, name: str, way: str = way) -> float:
            return percent(row, f"{way} bytes {name}")

        title = f"packets [%] up to 100, 200, 300, 400 bytes and above, {quantity[:-3]}"
        frames.append(_classes(title, rows, chapter4.SIZES, ours, theirs))
    return _pages("table-4.3", frames)


def judge_43(rows: list[Row]) -> list[str]:
    lines = []
    for row in fitted(rows, nodes=MIDDLE):
        quantities = {"none": "no dependency", "1 to 4": "1 to 4", "5 to 9": "5 to 9",
                      "above 12": "above 12"}  # fmt: skip
        for name, quantity in quantities.items():
            ours = percent(row, f"{AGGR} rests on {name}")
            lines.append(close("4.3", quantity, ours, 0.2, nodes=MIDDLE))
        lines.append(close("4.3", "most", row.mean(f"{AGGR} rests on most"), 0.25, nodes=MIDDLE))
        differs = max(
            abs(percent(row, f"{AGGR} rests on {name}") - percent(row, f"{PLAIN} rests on {name}"))
            for name in CLASSES_43
        )
        most = thesis.stated("4.3", "without aggregation, differs by", nodes=MIDDLE)
        claim = f"(4.3) without aggregation it differs by {differs:.2f} (thesis: at most {most})"
        lines.append(holds(claim, differs <= most))
    return lines


def paper_43(settings: Settings) -> str:
    return "27 / 28.5 / 16.8 / 23, most 54" if settings["nodes"] == MIDDLE else "shape"


def charts_43(rows: list[Row]) -> dict[str, str]:
    quantity = {"none": "no dependency"}

    def theirs(name: str) -> float:
        return thesis.stated("4.3", quantity.get(name, name), nodes=MIDDLE)

    def ours(row: Row, name: str) -> float:
        return percent(row, f"{AGGR} rests on {name}")

    title = "messages [%] with no dependency, 1 to 4, 5 to 9, above 12"
    return _pages("4.3", [_classes(title, rows, CLASSES_43, ours, theirs)])


# Figures 4.4 and 4.5.


def judge_44(rows: list[Row]) -> list[str]:
    mine = fitted(rows)
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


def charts_44(rows: list[Row]) -> dict[str, str]:
    frames = []
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
    return _pages("4.5", [_by_nodes("latency of messages in packets of two", layers, mine)])


# Figures 4.6, 4.7 and 4.9.


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
        drawn = line([value + 12.5 for value in found], [*found.values()])
        layers.append(Layer("line", drawn.x, drawn.y, name, colour=colour))
    return _pages("4.6", [Frame("nodes by the most messages held at once (25 a step)", layers)])


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
    single = shown.where(rows, trees=SINGLE)
    if single and single[-1].settings["nodes"] == LARGE:
        last, before = single[-1], single[-2]
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
        quick_runs=3, runs_at=runs_at, workers=shown.WORKERS,
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
