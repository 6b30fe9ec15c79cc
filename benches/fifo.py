"""Probabilistic FIFO: events through one receiver, the cost of gaps, bytes of header.

Events per second through one receiver, without network and world: streams of sim/path.py, headers
made beforehand, timers on virtual time.

- in order: nothing overtakes anything
- disorder: every event matches and 20 % come behind a later one
- every fifth: only 20 % of the publications match, so nearly every event opens a gap that the
  publication record must explain
"""

from __future__ import annotations

from time import perf_counter

from rich.console import Console
from rich.table import Table

from benches.measure import Contest
from inorder.core.event import Event
from inorder.protocols.fifo.header import Header, pack
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.record import RecordWriter
from inorder.protocols.fifo.summary import content_summary, elements, topic_summary
from inorder.sim.lane import Arrival, arrivals, listen
from inorder.sim.path import Path, stream

EVENTS = 50_000
STREAMS = {
    "in order": Path(law="constant", match=1.0),
    "disorder 20 %": Path(hops=2, mean_s=0.0037, match=1.0),
    "every fifth, disorder 19 %": Path(match=0.2),
}
COMMAND = "python -m benches.fifo"


def receivers() -> None:
    for name, path in STREAMS.items():
        drawn = stream(path, int(EVENTS / path.match), seed=1)
        heard = arrivals(drawn)
        contest = Contest(f"{name} ({drawn.late_share:.0%} late on arrival)", "events")
        for estimator in ("static", "laplace2", "predictive"):
            contest.add(estimator, _job(heard, Options(estimator=estimator)))
        contest.add("predictive, adapt", _job(heard, Options(adapt=True)))
        contest.run(COMMAND)


def _job(heard: list[Arrival], options: Options):  # type: ignore[no-untyped-def]
    def job() -> int:
        listen(heard, options)
        return len(heard)

    return job


def gaps() -> None:
    """Every event opens a gap of so many; nothing of it ever comes."""
    table = Table(title="the cost of a gap", caption=COMMAND)
    for heading in ("gap", "us an event, basic", "us an event, record 25 (best of 5)"):
        table.add_column(heading, justify="right")
    for gap in (1, 10, 100, 10_000, 1_000_000):
        row = [f"{gap:,}"]
        for record in (0, 25):
            heard = _with_gaps(gap, record)
            best = min(_seconds(heard) for _ in range(5))
            row.append(f"{best / len(heard) * 1e6:.1f}")
        table.add_row(*row)
    Console(width=100).print(table)


def _seconds(heard: list[Arrival]) -> float:
    started = perf_counter()
    listen(heard, Options(estimator="laplace2", tau_max=0.02))
    return perf_counter() - started


def _with_gaps(gap: int, record: int) -> list[Arrival]:
    writer = RecordWriter(record, 4, 0)
    frame = b""
    for _ in range(record + 1):
        frame = writer.next(1000, topic_summary("t1"))
    event = Event("p", 1, "t1")
    return [
        Arrival(turn * 0.01, Header(0, 1 + turn * (gap + 1), turn * 10_000, 10, frame), event)
        for turn in range(5000)
    ]


def header_bytes() -> None:
    table = Table(title="bytes of header by record length k", caption=COMMAND)
    for heading in ("k", "topics", "content (16-byte filters)"):
        table.add_column(heading, justify="right")
    shown = elements("orders", {"firm": "IBM", "price": 9.5, "size": 100})
    for size in (0, 1, 5, 25, 100, 255):
        row = [str(size)]
        for summary, summary_bytes, hashes in (
            (topic_summary("orders"), 4, 0),
            (content_summary(shown, 16, 4), 16, 4),
        ):
            writer = RecordWriter(size, summary_bytes, hashes)
            frame = b""
            for _ in range(size + 1):
                frame = writer.next(10_000, summary)
            header = Header(1_000_000, 100_000, 3_600_000_000, 10_000, frame)
            row.append(str(len(pack(header))))
        table.add_row(*row)
    Console(width=100).print(table)


def main() -> None:
    receivers()
    gaps()
    header_bytes()


if __name__ == "__main__":
    main()
