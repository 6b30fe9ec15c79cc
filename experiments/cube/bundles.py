"""Tables 4.1 to 4.3 and figure 4.3: packets with and without causal aggregation.

These and the figures of delays.py are different columns of the same runs (chapter4.py), under two
loads:

- the stated one, "a Poisson distribution with interval rate 1000", read as exponential with mean
  1,000, and delays with a standard deviation of 25. Aggregation is 3 to 8 times too rare;
- a calibrated one, even in [0, 400] and a standard deviation of 40: two numbers fitted to table
  4.1's row of 256 nodes (and to figure 4.3). Everything else is its prediction.

Figure 4.9 compares with a single tree: how a message comes to root 0 is not said; one hop, as in
SRPT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.chart import Frame, Layer, marks, page
from experiments.cube import chapter4, shown, thesis, workloads
from experiments.cube.chapter4 import AGGR, PLAIN
from experiments.figure import Row, holds
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
    if nodes <= MIDDLE:
        return 30 if nodes < MIDDLE else 10
    if point == _point(workloads.CALIBRATED, nodes):
        return 4 if nodes < LARGE else 2
    return 2 if nodes < LARGE else 1


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

    title = "packets [%] by their messages"
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
    return Frame(title, layers, y_log=log, ticks=x, ticks_named=names)


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

        title = f"packets [%] by their bytes, {quantity[:-3]}"
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

    title = "messages [%] by their dependencies"
    return _pages("4.3", [_classes(title, rows, CLASSES_43, ours, theirs)])


# Figures 4.4 and 4.5.
