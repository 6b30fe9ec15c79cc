"""One page of all figures: `python -m experiments.cube` writes it beside the tables, and
`python -m experiments.cube.page [FOLDER]` puts it into docs/, with the pictures, drawn again from
the numbers in the folder.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from experiments.figure import NOT_RUN, Figure
from experiments.points import ROOT

NAME = "reproduction-cube.md"
PICTURES = "reproduction-cube"

HEAD = """\
# Causal order on the hypercube: the thesis's evaluation, run again

João Paulo de Araujo, "A communication-efficient causal broadcast publish/subscribe system", thesis,
Sorbonne Université, 2019, chapters 2 to 5, and the cells of its 6.2.2.3. Its curves are images
without numbers: what its text, tables and captions state is in the column *thesis*, in the lines
below each table, and as rings over our curves; "shape" means that only the shape can be compared.
Every number of ours is measured on machines in the simulator: our peers with causal order
(VCube-PS), and the thesis's baselines (SRPT, one tree a topic) as machines of their own. A size
that was not run says so; no row is computed from a formula.

```sh
python -m experiments.cube                # all of them, and a page; goes on where it stopped
python -m experiments.cube 5.6 table-4.1  # some of them
python -m experiments.cube --quick        # up to 128 nodes, minutes
python -m experiments.cube --most 256     # nothing larger; --most 0: tables of what has been run
python -m experiments.cube --master spark://host:7077   # on a cluster (docs/cluster.md)
python -m experiments.cube.page           # the page from what has been run, into docs/
```
"""

# Of the run that docs/ shows.
HOME = """\
What to take home:

- **One publisher is as stated.** With 4,096 nodes and 25 % subscribers VCube-PS takes 528
  units (thesis: 533) and SRPT 719 (720); SRPT sends 1.75 PUB a subscriber (1.79). From 10 to 100 %
  subscribers VCube-PS rises by 34 % (36), and SRPT needs 793 relays at 30 % (779). With 256
  publishers SRPT takes 2.50 times as long as VCube-PS (2.48). Every claim of figures 5.2, 5.6 and
  5.7 and every claim about SRPT in table 5.1 holds. VCube-PS's queues of table 5.1 are longer here
  (one run): 91 % of the nodes between 4 and 16, not 98 %.
- **Chapter 4's settings do not give its numbers.** Under its words aggregation is 3 to 8 times too
  rare. All nodes publishing within 400 units, with delays of standard deviation 40, fit table 4.1
  at 256 nodes; that predicts the packets of all smaller sizes within 2 %, 4 % too few at 512 and
  6 % too few at 1,024. Figure 2.9, whose root saturates above 128 nodes, needs 1,000 units instead.
  No load that was tried fits both.
- **"Per minute" in figure 5.11 is per second.** At 5 and 10 % a second a copy waits for 0.59 and
  10.7 s at the root of SRPT (thesis: 0.47 and 10 s), below 4 % for 24 ms at most. With
  4,000 members and sessions of a minute SRPT takes 3.5 times as long as without changes (3.56);
  60 times rarer, as "46 leaves per minute" would be, it takes 1.0 times as long.
- **VCube-PS has a price that its latency does not show.** With the thesis's stop and wait an event
  waits at its publisher until all members have acknowledged the one before it in its topic. The
  latency since the call of the application shows that wait: with 2,048 events Zipf's law of topics
  adds 16 % to it (thesis: 9 % at 16,384), and nothing to the latency since the event has left.
- **Zipf's law hurts single trees by the draw.** The popular topic's root saturated in one of two
  draws of the roots, and not in the other: 27 % above uniform on average at 16,384 events (31).
- **Figure 5.12's order of the brokers needs two things that are not said**: guests that are served
  from a queue of their own, and so many publishers that something queues. Its 22 % between
  VCube-PS and 256 brokers lie between our 1 % with one publisher and 35 % with 50.
- **Figure 5.9 needs delays that vary.** With the constant delays of chapter 5 98 % of the messages
  are delivered at once (87 %). A standard deviation of 7 gives 89 %, and still not the thesis's
  longest waits.
- **The thesis's numbers for one thing do not always fit each other**: 47 entries against 6 are 41
  indirect dependencies on average, and not at most 31 (figure 3.1); the root of table 5.1 with "an
  average load of 9,240" has that length at its longest, and its mean is what is called sd, 4,617.
- **What has not been run** is what takes longest: many publishers from 1,024 nodes on (figures 2.9
  and 5.8, VCube-PS), fast changes of 2,000 members and more (5.11a) or of more than 2 % (5.11b,
  VCube-PS) and all changes "a minute" of 5.11b, more than 2,048 events in VCube-PS (5.10), and
  chapter 4's stated load above 256 nodes. Many rows that move much have one run so far.
"""

READINGS = """\
## How to read it

- **Times** are the thesis's units; a hop is 1 (processing) + the wait in the sender's output queue
  + 1 (transmission) + propagation. `latency` is the mean over the subscribers, which all of the
  thesis's numbers fit, `to the last` what it defines.
- **Acknowledgements stand beside**: VCube-PS acknowledges, the thesis counts none. They arrive
  after a hop and take no place in the queues. `messages moved` counts them.
- **VCube-PS** has a window of 1 (stop and wait), causal barriers, and sends the copy with the
  longest way first. Members are preset; those of figure 5.11 come and go by the protocol.
- **Runs** are in each row. The thesis has 30 or 40. Here a point has 40 as long as a run moves up
  to 70,000 copies, then 20, 5, 3 and 2, and one from 2.5 million copies on: one run of figure 5.8
  with 4,096 publishers moves 33.5 million messages. A row with one run has no spread. `seconds`
  are processor seconds of one run.
- **A row without runs says so**: the points run in the order of what they cost, the longest last,
  and a page can be written before they have ended.
- **Noise**: the spread between seeds stands behind each mean. Delays of chapter 5 are constant, so
  that differences there come from who subscribes and when who publishes. The same seed gives the
  same numbers on every machine, but for the seconds.
"""

# By figure: what was chosen or fitted since the thesis does not say, and what remains different.
CHOSEN = {
    "2.9, 4.8": (
        "the loads of chapter 4",
        "a message's way to the single root is one hop more: below 128 nodes the curves are a hop "
        "apart, not on top of each other. That the root saturates above 128 nodes needs messages "
        "spread over 1,000 units; the load that fits table 4.1 saturates it at 128, whole numbers "
        "by Poisson's law at 64",
    ),
    "3.1": (
        "a rate of 0.012, and 0.115 N messages, fitted at 1,024 nodes",
        'means of 47 and 6 are 41 indirect dependencies on average, and not "up to 31": the two '
        "cannot both hold",
    ),
    "chapter 4": (
        "even in [0, 400] and sd 40, fitted to table 4.1 at 256 nodes; as stated beside it",
        "as stated, aggregation is 3 to 8 times too rare; fitted, it is too frequent at 1,024 "
        "nodes, and what follows from it is too strong there: reception is 13 % earlier "
        "(thesis: 7), delivery 18 % (12), while the wait in a queue is the thesis's 50. The "
        "thesis's tail of dependencies is longer (table 4.3, figure 4.3), and its nodes differ "
        "more in what they hold (figure 4.6): here all nodes do the same, and hold much the same",
    ),
    "4.9": (
        "one hop to root 0",
        "with 32 and 64 nodes the single tree has 70 and 83 % fewer aggregations, not 86 or more; "
        "from 128 nodes on it has 93 % fewer and more",
    ),
    "5.8": (
        "",
        "+38.8 % with all of 4,096 publishing cannot be, by arithmetic: each node then has 4,095 "
        "copies of one unit to send within little more than 1,000 units, whatever the trees",
    ),
    "table 5.1": (
        "a queue's length is what a copy meets, itself counted",
        "VCube-PS's queues are longer than stated, by about a class for a sixth of the nodes: 342, "
        "592 and 90 nodes in the classes to 8, 16 and 32, not 495, 510 and 19",
    ),
    "5.9": (
        "waits are exponential with mean 100, fitted to one number; a spread of 7 of the delays, "
        "fitted to another",
        "with constant delays hardly anything overtakes, and few messages are held; with the "
        "fitted spread as many are held as stated when one node asks, fewer when ten ask, and none "
        "for as long",
    ),
    "5.10": (
        "exponential gaps; roots are drawn for each topic and run",
        "single trees need one hop more under every law, so that 'like VCube-PS' is a hop apart. "
        "The popular topic's root is close to saturation: whether it saturates depends on what "
        "else its node relays, and so on the draw. In VCube-PS the law of topics changes no "
        "tree: it changes which events of one publisher wait for each other, which the latency "
        "since the call shows",
    ),
    "5.11": (
        "changes a second over 20 s, and a minute over 10 min: both are rows; 4,096 nodes",
        "SRPT passes every change on from its root, which the thesis does not say; if changes only "
        "went to the root, nothing would saturate",
    ),
    "5.12": (
        "how many publishers, and one or two queues at brokers: all are rows",
        "in one queue the root broker has as much to send as the single root; with one publisher "
        "nothing queues, and a broker is a hop more",
    ),
    "cells": (
        "all of it: the thesis names the trade-off and has no numbers",
        "",
    ),
}


def chosen() -> str:
    lines = ["## What was chosen, and what deviates", ""]
    for name, (free, left) in CHOSEN.items():
        parts = [f"chosen: {free}." if free else "", f"Different: {left}." if left else ""]
        text = f"**{name}**: {' '.join(part for part in parts if part)}"
        lines += wrap(text, 100, initial_indent="- ", subsequent_indent="  ")
    return "\n".join([*lines, ""])


def machine() -> str:
    model = "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists() and (found := re.search(r"model name\s*:\s*(.+)", info.read_text())):
        model = found[1].strip()
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}"


def tally(tables: Sequence[str], folder: Path) -> str:
    """How many claims hold, and what has been run for it, figure by figure."""
    lines = [
        "| figure | claims | reproduced | rows | rows run | runs | processor seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for table in tables:
        name = _name(table)
        bad = table.count("\n- NOT reproduced: ")
        good = table.count("\n- reproduced: ")
        kept = folder / f"figure-{name}.json"
        points = json.loads(kept.read_text())["points"] if kept.exists() else []
        runs = [numbers for point in points for numbers in point["runs"]]
        told = (
            f"Figure {name}", good + bad, good, len(points),
            sum(bool(point["runs"]) for point in points), len(runs),
            f"{sum(numbers['seconds'] for numbers in runs):.0f}",
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, told)) + " |")
    note = "Tables 4.1 to 4.3 and figures 4.3 to 4.9 are columns of the same runs."
    return "\n".join(["## Claims", "", *lines, "", note, ""])


def build(tables: Sequence[str], folder: Path, pictures: str, quick: bool) -> str:
    """The page; `pictures` is where it will find them."""
    size = "Small sizes (`--quick`). " if quick else ""
    where = (
        f"{size}Run on: {machine()}, shared with other work: seconds are upper bounds. "
        f"{_rows_run(tables)}\n"
    )
    drawn = [_with_picture(table, folder, pictures) for table in tables]
    home = [] if quick else [HOME]
    parts = [HEAD, where, *home, READINGS, chosen(), tally(tables, folder), *drawn]
    return "\n".join(parts)


def _rows_run(tables: Sequence[str]) -> str:
    missing = sum(table.count(f"| {NOT_RUN} |") for table in tables)
    if not missing:
        return "All rows have been run."
    return f"{missing} rows have not been run yet, and say so."


def _name(table: str) -> str:
    """`## Figure 5.6: ...`; a table's figure is called table-5.1."""
    return table.partition("\n")[0].removeprefix("## Figure ").partition(":")[0]


def _with_picture(table: str, folder: Path, pictures: str) -> str:
    heading, _, rest = table.partition("\n")
    name = _name(table)
    file = f"figure-{name}.svg"
    if not (folder / file).exists():
        return table
    return f"{heading}\n\n![Figure {name}]({pictures}{file})\n{rest}"


def write(folder: Path, tables: Sequence[str], quick: bool) -> None:
    """Beside the tables."""
    (folder / NAME).write_text(build(tables, folder, "", quick))


def publish(folder: Path, docs: Path, figures: Sequence[Figure]) -> None:
    """Into docs/: these figures, as far as they have been run."""
    tables = [
        figure.redraw(folder) or f"## Figure {figure.name}: {figure.title}\n\nNot run.\n"
        for figure in figures
    ]
    (docs / PICTURES).mkdir(exist_ok=True)
    for figure in figures:
        picture = folder / f"figure-{figure.name}.svg"
        if picture.exists():
            shutil.copy(picture, docs / PICTURES / picture.name)
    (docs / NAME).write_text(build(tables, folder, f"{PICTURES}/", False))


if __name__ == "__main__":
    from experiments.cube.__main__ import FIGURES

    publish(Path((sys.argv[1:] or [ROOT / "out/experiments/cube"])[0]), ROOT / "docs", FIGURES)
