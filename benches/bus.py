"""The bus over one file: events per second, latency and size, beside what else does the job.

Every way is a process of its own (benches/bus_ways.py), asked in turns, so that the noise of the
machine hits all alike; it measures itself. `today` is the bus before it was rebuilt over logs.

`python -m benches.bus [ROUNDS]`; every table names the goal that it is held against.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benches.bus_rivals import ROOT, pythons

MANY, FEW = 4000, 150


class Player:
    """A way, as a process."""

    def __init__(self, way: str, python: Path, folder: Path) -> None:
        self.way = way
        folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [python, ROOT / "benches" / "bus_ways.py", way, folder], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
        )  # fmt: skip
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{self.way} has ended")
        return line

    def say(self, words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def hear(self) -> tuple[float, list[float]]:
        took, *found = map(float, self.line().split())
        return took, found

    def ask(self, words: str) -> tuple[float, list[float]]:
        self.say(words)
        return self.hear()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


class Stage:
    """Players by way, in folders of their own."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds, self.pythons = folder, rounds, pythons()
        self._number = 0
        self.console = Console(width=110)

    def players(self, *ways: str) -> list[Player]:
        self._number += 1
        place = self.folder / str(self._number)
        return [Player(way, self.pythons[way], place / way) for way in ways if way in self.pythons]

    def contest(self, title: str, goals: dict[str, float], words: str, *ways: str) -> None:
        """Rates of each way; the first one's ratio to each other is held against its goal."""
        players = self.players(*ways)
        for player in players:
            player.ask(words)  # to warm up
        rates: dict[str, list[float]] = {player.way: [] for player in players}
        for _ in range(self.rounds):
            for player in players:
                took, [count] = player.ask(words)
                rates[player.way].append(count / took)
        for player in players:
            player.close()
        self.show(title, rates, goals)

    def show(self, title: str, rates: dict[str, list[float]], goals: dict[str, float]) -> None:
        ours = median(next(iter(rates.values())))
        table = Table(title=title, caption=f"python -m benches.bus, {self.rounds} rounds in turns")
        for heading in ("way", "events/s", "spread", "ours is", "goal", ""):
            table.add_column(heading, justify="left" if heading == "way" else "right")
        for way, values in rates.items():
            ratio, goal = ours / median(values), goals.get(way)
            verdict = "" if goal is None else "reached" if ratio >= goal else "missed"
            spread = f"{min(values):,.0f} to {max(values):,.0f}"
            table.add_row(
                way, f"{median(values):,.0f}", spread, f"{ratio:.2f}x",
                "" if goal is None else f">= {goal:g}", verdict,
            )  # fmt: skip
        self.console.print(table)

    def say(self, title: str, *rows: tuple[str, str, str]) -> None:
        table = Table(title=title)
        for heading in ("what", "found", "goal"):
            table.add_column(heading)
        for row in rows:
            table.add_row(*row)
        self.console.print(table)


def latency(stage: Stage, rate: int) -> None:
    """From `publish` to the event in another process's hands, and to the receipt."""
    rows = []
    halves: dict[str, list[tuple[float, float]]] = {}
    for _ in range(max(1, stage.rounds - 2)):
        for way in ("total", "today"):
            if way not in stage.pythons:
                continue
            folder = stage.folder / f"paced-{way}-{rate}-{len(halves.get(way, ()))}"
            hearing = Player(way, stage.pythons[way], folder)
            saying = Player(way, stage.pythons[way], folder)
            count = min(2 * rate, 600)
            hearing.say(f"hear {count}")
            assert hearing.line() == "hearing"
            _, waits = saying.ask(f"paced {count} {rate}")
            _, ages = hearing.hear()
            halves.setdefault(way, []).append((median(ages) * 1e3, median(waits) * 1e3))
            saying.close()
            hearing.close()
    for way, found in halves.items():
        age, wait = (median(each[k] for each in found) for k in (0, 1))
        spread = f"{min(a for a, _ in found):.2f} to {max(a for a, _ in found):.2f}"
        rows.append((way, f"p50 {age:.2f} ms ({spread}), receipt {wait:.2f} ms",
                     "<= 0.5 of today, <= receipt + 0.2 ms" if way == "total" else ""))  # fmt: skip
    stage.say(f"another process, {rate} a second", *rows)


def replay(stage: Stage) -> None:
    for title, written, goals in (
        ("replay, written 4,000 at once", "many 4000", {"sqlite": 0.5}),
        ("replay, written one at a time", "singly 4000", {"sqlite": 0.15}),
    ):
        players = stage.players("total" if "many" in written else "quick", "sqlite")
        for player in players:
            for _ in range(15 if "many" in written else 1):
                player.ask(written if player.way != "sqlite" else "many 4000")
        rates: dict[str, list[float]] = {player.way: [] for player in players}
        for _ in range(stage.rounds):
            for player in players:
                took, [count] = player.ask("replay")
                rates[player.way].append(count / took)
        for player in players:
            player.close()
        stage.show(title, rates, goals)


def topics(stage: Stage) -> None:
    found: dict[int, list[list[float]]] = {10: [], 1000: []}
    for _ in range(stage.rounds):
        for count, some in found.items():
            [player] = stage.players("total")
            some.append(player.ask(f"topics 600 {count}")[1])
            player.close()
    (few, few_bytes), (most, most_bytes) = (
        (600 / median(took for took, _ in some), median(size for _, size in some))
        for some in found.values()
    )
    stage.say(
        "10 and 1,000 topics, one at a time",
        ("events/s", f"{few:,.0f} and {most:,.0f}: {few / most:.2f}", "within 1.2"),
        ("bytes an event", f"{few_bytes:.0f} and {most_bytes:.0f}: {most_bytes / few_bytes:.2f}",
         "within 1.1"),
    )  # fmt: skip


def importing(stage: Stage) -> None:
    def cost(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare, ours = [], []
    for _ in range(7):
        bare.append(cost("pass"))
        ours.append(cost("import inorder; inorder.connect"))
    more = median(ours) - median(bare)
    stage.say("import inorder; inorder.connect", ("CPU", f"+ {more:.3f} s", "<= + 0.15 s"))


def crossed() -> set[str]:
    """The files of ours that one event crosses on its way from `publish` to delivery."""
    import inorder

    here = str(Path(inorder.__file__).parent) + os.sep
    files: set[str] = set()

    def seen(frame: Any, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if name.startswith(here) and frame.f_code.co_name != "<module>":
            files.add(name.removeprefix(here))

    async def job(folder: str) -> None:
        threading.setprofile(seen)
        async with (
            inorder.connect(f"sqlite:///{folder}/b.db") as bus, bus.subscribe("t") as events,
        ):  # fmt: skip
            await bus.publish("t", value := {"n": 1})
            await events.next(5)
            await asyncio.sleep(0.1)  # all quiet
            files.clear()
            sys.setprofile(seen)
            try:
                await bus.publish("t", value)
                await events.next(5)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)  # type: ignore[arg-type]
            print(*sorted(files))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(job(folder))
    return files


def lines(*places: str, without: tuple[str, ...] = ()) -> int:
    """Lines of source below these places."""
    files = [path for place in places for path in (ROOT / "src" / "inorder" / place).rglob("*.py")]
    return sum(len(path.read_text().splitlines()) for path in files if path.name not in without)


def size(stage: Stage) -> None:
    looked_after = ("repair.py", "check.py", "care.py", "inspect.py", "copying.py")
    plane = lines("bus", "logs", "brokers", without=looked_after)
    stage.say(
        "size",
        ("files one event crosses", str(len(crossed())), "<= 14 (before: 30)"),
        ("lines of src/", f"{lines('.'):,}", "said"),
        ("lines of bus/, logs/, brokers/ without check and repair", f"{plane:,}", "<= 2,600"),
    )


def main(rounds: int = 5) -> None:
    with tempfile.TemporaryDirectory() as name:
        stage = Stage(Path(name), rounds)
        print("load:", os.getloadavg())
        at_once = {"umadb": 0.8, "sqlite": 0.8, "eventsourcing": 4.0}
        jobs: list[Callable[[], None]] = [
            lambda: stage.contest(
                f"{MANY} at once, published and delivered", at_once, f"many {MANY}",
                "total", "umadb", "sqlite", "eventsourcing", "today",
            ),
            lambda: stage.contest(
                "one at a time", {"none": 0.95, "umadb": 1.1, "thread": 0.75}, f"singly {FEW}",
                "total", "none", "umadb", "thread", "today",
            ),
            lambda: stage.contest(
                "64 callers, one at a time each", {"today": 4.0}, "tasks 64 8", "total", "today"
            ),
            lambda: latency(stage, 100),
            lambda: latency(stage, 1000),
            lambda: replay(stage),
            lambda: topics(stage),
            lambda: importing(stage),
            lambda: size(stage),
        ]  # fmt: skip
        for job in jobs:
            job()
        print("load:", os.getloadavg())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
