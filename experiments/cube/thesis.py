"""Every number that the thesis states of its simulations, as data.

João Paulo de Araujo's "A communication-efficient causal broadcast publish/subscribe system"
(thesis, Sorbonne Université, 2019) shows curves without values; these are the numbers in its text,
its tables and its captions. Times are units of time unless the quantity says ms.

    stated("5.6", "latency", curve="VCube-PS", nodes=4096, share=25)   # 533.0

Where its numbers do not agree with each other, all of them stand here, and the note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

PS, S, B = "VCube-PS", "SRPT", "SRPT-B"
PLAIN, AGGR = "no aggregation", "aggregation"


class Stated(Struct, frozen=True):
    """One number: of which figure, what is measured, where; `sign` is =, <, >, <= or >=."""

    figure: str
    quantity: str
    value: float
    at: Mapping[str, Any] = {}
    sign: str = "="
    note: str = ""

    @property
    def text(self) -> str:
        """As it stands in a table.

        >>> Stated("3.1", "entries", 6.0, sign="<").text
        '< 6'
        """
        return f"{self.value:g}" if self.sign == "=" else f"{self.sign} {self.value:g}"


def _table(
    figure: str, keys: str, quantities: str, rows: Iterable[tuple[Any, ...]], **at: Any
) -> list[Stated]:
    """Rows of a table: the first columns say where, the others are quantities; None is no entry."""
    where, what = keys.split(), quantities.split()
    return [
        Stated(figure, quantity, value, {**at, **dict(zip(where, row[: len(where)], strict=True))})
        for row in rows
        for quantity, value in zip(what, row[len(where) :], strict=True)
        if value is not None
    ]


def _chapters_2_and_3() -> list[Stated]:
    return [
        Stated("2.9", "queueing begins above", 128, {"curve": "single tree"},
               note="the same curves as figure 4.8; the rate of the messages is not stated"),
        Stated("3.1", "entries", 47.0, {"curve": "vector clock", "nodes": 1024}),
        Stated("3.1", "entries", 6.0, {"curve": "causal barrier", "nodes": 1024}, "<"),
        Stated("3.1", "indirect dependencies at most", 31, {"nodes": 1024}),
    ]  # fmt: skip


PACKETS = (
    (8, 56, 56, 0.0, 0.0), (16, 240, 232, 3.33, 3.02), (32, 992, 919, 7.36, 5.77),
    (64, 4032, 3513, 12.87, 9.05), (128, 16256, 13759, 15.36, 11.04),
    (256, 65280, 49262, 24.54, 15.41), (512, 261632, 191528, 26.79, 16.70),
    (1024, 1047552, 745943, 28.79, 19.14),
)  # fmt: skip
PER_PACKET = (
    ("1", 84.59, None), ("2", 9.16, 59.46), ("3", 3.12, 20.25), ("4", 1.26, 8.18),
    ("5", 0.66, 4.31), ("6 to 15", 1.2, 7.8),
)  # fmt: skip
SIZES = (
    ("to 100", 63.67, 52.66), ("to 200", 30.30, 31.28), ("to 300", 6.03, 7.62),
    ("to 400", 0.0, 3.91), ("above 400", 0.0, 4.54),
)  # fmt: skip


def _chapter_4_tables() -> list[Stated]:
    packets = "packets packets-aggregated reduction[%] several[%]"
    return [
        # 8 nodes: the text of figure 4.5.
        *_table("table 4.1", "nodes", packets, PACKETS),
        *_table("table 4.2", "messages", "of-all[%] of-aggregated[%]", PER_PACKET, nodes=256),
        Stated("table 4.2", "2 or 3, of aggregated", 79.71, {"nodes": 256}),
        Stated("table 4.2", "packets with 15", 4, {"nodes": 256}),
        *_table("table 4.3", "bytes", "plain[%] aggregated[%]", SIZES, nodes=256),
        Stated("table 4.3", "aggregated above all plain", 8.45, {"nodes": 256}),
        Stated("table 4.3", "aggregated above 1400", 0.29, {"nodes": 256},
               note="143 of 49262 packets, while 117 were closed because of the MTU"),
        Stated("table 4.3", "closed because of the MTU", 117, {"nodes": 256}),
        Stated("4.3", "no dependency", 27.0, {"nodes": 256}),
        Stated("4.3", "1 to 4", 28.5, {"nodes": 256}),
        Stated("4.3", "5 to 9", 16.8, {"nodes": 256}),
        Stated("4.3", "above 12", 23.0, {"nodes": 256}),
        Stated("4.3", "most", 54, {"nodes": 256}),
        Stated("4.3", "without aggregation, differs by", 2.73, {"nodes": 256}, "<="),
    ]  # fmt: skip


def _chapter_4_figures() -> list[Stated]:
    large = {"nodes": 1024}
    return [
        # Read as (new - old) / old: hops alone give 1.9 from 8 to 1,024 nodes.
        Stated("4.4", "reception grows by", 2.1, {"curve": AGGR, **large}),
        Stated("4.4", "reception grows by", 2.2, {"curve": PLAIN, **large}),
        Stated("4.4", "longest reception grows by", 3.9, {"curve": AGGR, **large}),
        Stated("4.4", "longest reception grows by", 4.1, {"curve": PLAIN, **large}),
        Stated("4.4", "reception, aggregated above plain", 8.1, {"nodes": 256}),
        Stated("4.4", "reception, aggregated above plain", -7.4, large),
        Stated("4.4", "delivery, aggregated above plain", -12.2, large),
        Stated("4.4", "delivery differs by", 3.2, {"nodes": 32}, "<="),
        Stated("4.4", "wait in the sending queue", 50.0, {"curve": PLAIN, **large}),
        Stated("4.4", "wait in the sending queue, plain above aggregated", 53.4, large,
               note="the same number as that of the time held"),
        Stated("4.4", "time held, plain above aggregated", 5.0, {"nodes": 16}),
        Stated("4.4", "time held, plain above aggregated", 53.4, large),
        Stated("4.5", "reception, aggregated above plain", 13.6, sign="<="),
        Stated("4.5", "time held, aggregated above plain", -59.0, {"nodes": 512}),
        Stated("4.5", "time held, aggregated above plain", -74.0, {"nodes": 64}),
        Stated("4.6", "nodes with at most 50", 569, {"curve": AGGR, **large}),
        Stated("4.6", "nodes with at most 50", 256, {"curve": PLAIN, **large}, "<"),
        Stated("4.6", "nodes with more than 250", 24, {"curve": AGGR, **large}),
        Stated("4.6", "nodes with more than 250", 212, {"curve": PLAIN, **large}),
        Stated("4.7", "nodes between 7 and 11 [%]", 95.5, {"payload": 50, **large}),
        Stated("4.7", "most", 14, {"payload": 50, **large}, "<=",
               note="table 4.2 has packets of 15 at 256 nodes: other runs"),
        Stated("4.7", "nodes between 8 and 12 [%]", 81.3, {"payload": 5, **large}),
        Stated("4.7", "nodes between 8 and 12", 833, {"payload": 5, **large}),
        Stated("4.9", "fewer aggregations [%]", 86.0, {"nodes": 32}, ">="),
        Stated("4.9", "fewer delayed messages [%]", 84.0, {"nodes": 128}, ">="),
    ]  # fmt: skip


QUEUES = (
    ("0", 0, 512), ("to 2", 0, 448), ("to 4", 0, 60), ("to 8", 495, 3), ("to 16", 510, 0),
    ("to 32", 19, 0), ("to 4096", 0, 0), ("to 8192", 0, 1),
)  # fmt: skip


def _one_publisher() -> list[Stated]:
    quarter = {"nodes": 4096, "share": 25}
    # The caption of figure 5.7 says 8,192 nodes, the text 4,096.
    return [
        Stated("5.2", "relays", 2, {"curve": S}),
        Stated("5.2", "relays", 0, {"curve": PS}),
        Stated("5.2", "hops more", 1, {"curve": S}),
        Stated("5.6", "latency", 533.0, {"curve": PS, **quarter}),
        Stated("5.6", "latency", 720.0, {"curve": S, **quarter}),
        Stated("5.6", "latency, VCube-PS below SRPT [%]", 26.0, quarter),
        Stated("5.6", "PUB a subscriber", 1.0, {"curve": PS, **quarter}),
        Stated("5.6", "PUB a subscriber", 1.79, {"curve": S, **quarter}),
        Stated("5.6", "PUB, VCube-PS below SRPT [%]", 43.0, quarter, ">="),
        Stated("5.7", "latency, 100 % above 10 % [%]", 36.0, {"curve": PS, "nodes": 4096}),
        Stated("5.7", "latency varies by [%]", 2.7, {"curve": S, "nodes": 4096}, "<="),
        Stated("5.7", "latency, SRPT above VCube-PS", 100.0, {"nodes": 4096, "share": 100}),
        Stated("5.7", "relays", 779, {"curve": S, "nodes": 4096, "share": 30}),
        Stated("5.7", "nodes of the tree [%]", 50.0, {"curve": S, "nodes": 4096, "share": 30},
               "<="),
        Stated("5.7", "relays", 0, {"curve": S, "nodes": 4096, "share": 100}),
        Stated("5.7", "hops", 7.0, {"curve": S, "nodes": 4096}),
    ]  # fmt: skip


def _several_publishers() -> list[Stated]:
    return [
        Stated("5.8", "latency, 100 % above 25 % [%]", 38.8, {"curve": PS, "nodes": 4096}),
        Stated("5.8", "latency, SRPT above VCube-PS", 102.0, {"nodes": 128, "share": 100},
               note="one hop"),
        Stated("5.8", "latency, SRPT over VCube-PS", 2.48, {"nodes": 256, "share": 100}),
        *_table("table 5.1", "queue", f"{PS} {S}", QUEUES, nodes=1024),
        Stated("table 5.1", "queue of 4 to 16 [%]", 98.0, {"curve": PS, "nodes": 1024}),
        # 9240 is outside the root's class (4096, 8192]: see several.py.
        Stated("table 5.1", "root", 9240, {"curve": S, "nodes": 1024}),
        Stated("table 5.1", "root, sd", 4617, {"curve": S, "nodes": 1024}),
        Stated("5.9", "messages", 65280, {"nodes": 256}),
        Stated("5.9", "fewer than 5 [%]", 51.6, {"nodes": 256, "questions": 1}),
        Stated("5.9", "one [%]", 19.9, {"nodes": 256, "questions": 1}),
        Stated("5.9", "10 [%]", 35.2, {"nodes": 256, "questions": 10}),
        Stated("5.9", "fewer than 15 [%]", 79.7, {"nodes": 256, "questions": 10}),
        Stated("5.9", "held for less than 10 [%]", 95.1, {"nodes": 256, "questions": 1}),
        Stated("5.9", "not held [%]", 87.2, {"nodes": 256, "questions": 1}),
        Stated("5.9", "held for more than 50", 81, {"nodes": 256, "questions": 1}),
        Stated("5.9", "held at most", 150, {"nodes": 256, "questions": 1}),
        Stated("5.9", "not held [%]", 84.2, {"nodes": 256, "questions": 10}),
        Stated("5.9", "held for more than 50", 457, {"nodes": 256, "questions": 10}),
        Stated("5.9", "held at most", 187, {"nodes": 256, "questions": 10}),
        Stated("5.10", "latency, Zipf above uniform [%]", 30.6, {"curve": S, "messages": 2**14}),
        Stated("5.10", "latency, Zipf above uniform [%]", 9.2, {"curve": PS, "messages": 2**14}),
    ]  # fmt: skip


def _churn_and_brokers() -> list[Stated]:
    fast = {"curve": S, "subscribers": 4000, "t_med min": 1}
    return [
        # Of hashtags, by Sanli and Lambiotte.
        Stated("5.1", "coefficient of Zipf's law", 0.825),
        Stated("5.1", "topics with one message [%]", 60.0),
        Stated("5.1", "topics with at most 5 [%]", 83.0),
        Stated("5.1", "topics with more than 1000 [%]", 0.15),
        Stated("5.11a", "latency above static [%]", 10.0, {"curve": PS}, "<="),
        Stated("5.11a", "latency above static [%]", 1.4, {"curve": S}, "<="),
        Stated("5.11a", "latency over static", 3.56, fast),
        Stated("5.11a", "false positives [%]", 2.74, fast),
        Stated("5.11a", "leaves a minute", 46, fast, note="4000 ln 2 / 60 is 46 a second"),
        Stated("5.11b", "latency, 10 % over 1 %", 2.55, {"curve": PS}),
        Stated("5.11b", "false positives [%]", 2.2, {"curve": PS}),
        Stated("5.11b", "wait ms", 28.36, {"curve": PS}, "<="),
        Stated("5.11b", "saturates from [%]", 4, {"curve": S}),
        Stated("5.11b", "wait ms", 468.0, {"curve": S, "percent": 5}, note="sd 185"),
        Stated("5.11b", "wait ms", 10_000.0, {"curve": S, "percent": 10}, note="sd 451"),
        *_table("5.11b", "percent", "t_med", ((1, 69), (4, 17), (10, 7))),
        *_table("5.12", "brokers", "guests", ((32, 127), (256, 15), (2048, 1)), nodes=4096),
        Stated("5.12", "latency, VCube-PS below [%]", 22.0, {"curve": B, "brokers": 256}),
    ]  # fmt: skip


STATED: tuple[Stated, ...] = (
    *_chapters_2_and_3(), *_chapter_4_tables(), *_chapter_4_figures(), *_one_publisher(),
    *_several_publishers(), *_churn_and_brokers(),
)  # fmt: skip


def find(figure: str, quantity: str, **at: Any) -> Stated | None:
    """The number stated for exactly this place."""
    for each in STATED:
        if (each.figure, each.quantity, dict(each.at)) == (figure, quantity, at):
            return each
    return None


def stated(figure: str, quantity: str, **at: Any) -> float:
    number = find(figure, quantity, **at)
    if number is None:
        raise KeyError(f"figure {figure}: no {quantity} is stated at {at}")
    return number.value


def text(figure: str, quantity: str, **at: Any) -> str:
    """The number as it stands in a table, or nothing."""
    number = find(figure, quantity, **at)
    return number.text if number else ""
