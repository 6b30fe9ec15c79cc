"""What the thesis claims of VCube-PS, alone and against single trees, figure by figure.

Each function takes the rows of a figure and judges what can be judged with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.cube import shown, thesis
from experiments.cube.vcube import VCUBE
from experiments.figure import Row, holds

SRPT = "SRPT"
# Both with the same order of copies.
FAR = "far first"


def _percent(row: Row, base: Row, key: str = "latency") -> float:
    """By how many percent a mean exceeds that of another row."""
    return 100.0 * (row.mean(key) / base.mean(key) - 1.0)


def example(rows: Sequence[Row]) -> list[str]:
    mine = shown.where(rows, curve=VCUBE)
    if not mine:
        return []
    relays = max(row.mean("relays") for row in mine)
    stated = thesis.stated("5.2", "relays", curve=VCUBE)
    return [shown.close("(5.2) relays of VCube-PS", relays, stated, 0.0)]


def by_size(rows: Sequence[Row]) -> list[str]:
    """Figure 5.6."""
    lines = []
    at = {"nodes": 4096, "share": 25}
    ours = shown.only(rows, curve=VCUBE, **at)
    theirs = shown.only(rows, curve=SRPT, order=FAR, **at)
    if ours and theirs:
        for key, quantity in (("latency", "latency, VCube-PS below SRPT [%]"),
                              ("pubs", "PUB, VCube-PS below SRPT [%]")):  # fmt: skip
            stated = thesis.stated("5.6", quantity, **at)
            lines.append(
                shown.close(f"(5.6) {quantity}", -_percent(ours, theirs, key), stated, 0.1)
            )
    full = shown.where(rows, curve=VCUBE, share=100)
    gaps = {
        row.settings["nodes"]: single.mean("latency") - row.mean("latency")
        for row in full
        if (single := shown.only(rows, curve=SRPT, order=FAR, share=100,
                                 nodes=row.settings["nodes"]))
    }  # fmt: skip
    if gaps:
        listed = ", ".join(f"{nodes}: {gap:.0f}" for nodes, gap in gaps.items())
        good = all(80.0 < gap < 140.0 for nodes, gap in gaps.items() if nodes >= 32)
        lines.append(
            holds(f"(5.6a) with 100 % SRPT is one hop (102) slower than VCube-PS: {listed}", good)
        )
        exact = all(
            row.mean("pubs") == row.settings["nodes"] * row.settings["share"] // 100 - 1
            for row in shown.where(rows, curve=VCUBE)
        )
        claim = "(5.6b) VCube-PS sends one PUB for each subscriber but the publisher"
        lines.append(holds(claim, exact))
    return lines


def by_share(rows: Sequence[Row]) -> list[str]:
    """Figure 5.7."""
    mine = shown.where(rows, curve=VCUBE)
    single = shown.where(rows, curve=SRPT, order=FAR)
    if not mine or not single:
        return []
    lines = []
    few, full = shown.only(mine, share=10), shown.only(mine, share=100)
    if few and full and full.settings["nodes"] == 4096:
        stated = thesis.stated("5.7", "latency, 100 % above 10 % [%]", curve=VCUBE, nodes=4096)
        claim = "(5.7a) VCube-PS, 100 % above 10 % of subscribers [%]"
        lines.append(shown.close(claim, _percent(full, few), stated, 0.1))
        at = {"nodes": 4096, "share": 100}
        if other := shown.only(single, **at):
            gap = other.mean("latency") - full.mean("latency")
            stated = thesis.stated("5.7", "latency, SRPT above VCube-PS", **at)
            lines.append(shown.close("(5.7a) SRPT above VCube-PS at 100 %", gap, stated, 0.2))
    pairs = [(row, shown.only(single, share=row.settings["share"])) for row in mine]
    higher = all(other.mean("latency") > row.mean("latency") for row, other in pairs if other)
    lines.append(holds("(5.7a) SRPT is slower than VCube-PS at every share", higher))
    return lines


def publishers(rows: Sequence[Row]) -> list[str]:
    """Figure 5.8."""
    lines = []
    fast = shown.where(rows, propagation=100)
    at = {"nodes": 4096}
    few = shown.only(fast, curve=VCUBE, share=25, **at)
    full = shown.only(fast, curve=VCUBE, share=100, **at)
    if few and full:
        stated = thesis.stated("5.8", "latency, 100 % above 25 % [%]", curve=VCUBE, **at)
        claim = "(5.8a) VCube-PS at 4,096 nodes, 100 % above 25 % of publishers [%]"
        lines.append(shown.close(claim, _percent(full, few), stated, 0.2))
    for nodes in (128, 256):
        at = {"nodes": nodes, "share": 100}
        ours, other = (shown.only(fast, curve=curve, **at) for curve in (VCUBE, SRPT))
        if not ours or not other:
            continue
        if nodes == 128:
            gap = other.mean("latency") - ours.mean("latency")
            stated = thesis.stated("5.8", "latency, SRPT above VCube-PS", **at)
            claim = "(5.8a) SRPT above VCube-PS at 128 nodes, one hop"
            lines.append(shown.close(claim, gap, stated, 0.3))
        else:
            ratio = other.mean("latency") / ours.mean("latency")
            stated = thesis.stated("5.8", "latency, SRPT over VCube-PS", **at)
            lines.append(shown.close("(5.8a) SRPT over VCube-PS at 256 nodes", ratio, stated, 0.05))
    mine = shown.where(fast, curve=VCUBE, share=100)
    if len(mine) > 1:
        waits = ", ".join(f"{row.settings['nodes']}: {row.mean('wait'):.1f}" for row in mine)
        calm = all(row.mean("wait") < 10.0 for row in mine if row.settings["nodes"] <= 512)
        lines.append(
            holds(f"(5.8a) one tree a source spreads the load; wait in a queue: {waits}", calm)
        )
    return lines


def queues(rows: Sequence[Row], classes: Sequence[str], met: str) -> list[str]:
    """Table 5.1."""
    row = shown.only(rows, curve=VCUBE, mean=met, nodes=1024)
    if row is None:
        return []
    lines = [
        shown.close(f"(table 5.1) VCube-PS nodes with a queue {name}", row.mean(name),
                    thesis.stated("table 5.1", VCUBE, queue=name, nodes=1024), 0.1)
        for name in classes
    ]  # fmt: skip
    middle = 100.0 * (row.mean("to 8") + row.mean("to 16")) / 1024
    at = {"curve": VCUBE, "nodes": 1024}
    stated = thesis.stated("table 5.1", "queue of 4 to 16 [%]", **at)
    lines.append(shown.close("(table 5.1) VCube-PS nodes between 4 and 16 [%]", middle, stated))
    return lines


def topics(rows: Sequence[Row]) -> list[str]:
    """Figure 5.10: what its own judge does not say."""
    mine = shown.where(rows, curve=VCUBE, law="uniform")
    pairs = [(row, shown.only(rows, curve=SRPT, law="uniform",
                              messages=row.settings["messages"])) for row in mine]  # fmt: skip
    apart = {
        row.settings["messages"]: _percent(other, row, "call") for row, other in pairs if other
    }
    if not apart:
        return []
    listed = ", ".join(f"{messages}: {value:+.1f}" for messages, value in apart.items())
    alike = all(abs(value) < 5.0 for value in apart.values())
    return [holds(f"(5.10) uniform: SRPT is like VCube-PS (within 5 %): {listed} %", alike)]


def sessions(rows: Sequence[Row]) -> list[str]:
    """Figure 5.11 (a)."""
    lines = []
    most = thesis.stated("5.11a", "latency above static [%]", curve=VCUBE)
    for row in shown.where(rows, curve=VCUBE):
        settings = row.settings
        if settings["t_med min"] == "static":
            continue
        still = {**settings, "t_med min": "static", "changes a": "second"}
        static = shown.only(rows, **still)
        if static is None:
            continue
        gain = _percent(row, static)
        claim = (
            f"(5.11a) VCube-PS, {settings['subscribers']} of {settings['nodes']}, t_med "
            f"{settings['t_med min']} min [a {settings['changes a']}]: {gain:+.1f} % of static "
            f"(thesis: up to {most:g} %)"
        )
        lines.append(holds(claim, gain <= most))
    return lines


def rates(rows: Sequence[Row]) -> list[str]:
    """Figure 5.11 (b)."""
    lines = []
    for reading in ("second", "minute"):
        mine = shown.where(rows, curve=VCUBE, a=reading)
        slow, fast = shown.only(mine, percent=1), shown.only(mine, percent=10)
        name = f"(5.11b) VCube-PS [a {reading}]"
        if slow and fast:
            stated = thesis.stated("5.11b", "latency, 10 % over 1 %", curve=VCUBE)
            ratio = fast.mean("latency") / slow.mean("latency")
            lines.append(shown.close(f"{name} latency, 10 % over 1 %", ratio, stated, 0.2))
        if fast:
            stated = thesis.stated("5.11b", "false positives [%]", curve=VCUBE)
            ours = 100.0 * fast.mean("false")
            lines.append(shown.close(f"{name} false positives at 10 % [%]", ours, stated, 0.3))
            most = thesis.stated("5.11b", "wait ms", curve=VCUBE)
            wait = fast.mean("wait")
            claim = f"{name} wait in a queue at 10 %: {wait:.2f} ms (thesis: up to {most:g})"
            lines.append(holds(claim, wait <= most))
    return lines


def brokers(rows: Sequence[Row]) -> list[str]:
    """Figure 5.12."""
    lines = []
    stated = thesis.stated("5.12", "latency, VCube-PS below [%]", curve="SRPT-B", brokers=256)
    for ours in shown.where(rows, curve=VCUBE):
        publishers = ours.settings["publishers"]
        others = shown.where(rows, curve="SRPT-B", publishers=publishers)
        for other in (each for each in others if each.settings["brokers"] == 256):
            claim = (
                f"(5.12) [{publishers} publishers, {other.settings['queues']}] VCube-PS below 256 "
                "brokers [%]"
            )
            lines.append(shown.close(claim, -_percent(ours, other), stated, 0.2))
        if others:
            least = min(others, key=lambda row: row.mean("latency"))
            claim = (
                f"(5.12) [{publishers} publishers] VCube-PS below all brokers: "
                f"{ours.mean('latency'):.0f}, least {least.mean('latency'):.0f}"
            )
            lines.append(holds(claim, ours.mean("latency") < least.mean("latency")))
    return lines
