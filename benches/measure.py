"""How we measure: interleaved rounds, medians, spread, and always a ratio to the thing beside."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table


class Contest:
    """Several ways to do the same job, run in turns so that noise hits all of them alike."""

    def __init__(self, title: str, unit: str, rounds: int = 5) -> None:
        self._title = title
        self._unit = unit
        self._rounds = rounds
        self._ways: dict[str, Callable[[], int]] = {}

    def add(self, name: str, job: Callable[[], int]) -> None:
        """`job` does the work once and returns how many units it was."""
        self._ways[name] = job

    def run(self, command: str) -> dict[str, float]:
        """Medians of units per second, by name; the first way is the yardstick of the ratios."""
        rates: dict[str, list[float]] = {name: [] for name in self._ways}
        for _ in range(self._rounds):
            for name, job in self._ways.items():
                started = perf_counter()
                units = job()
                rates[name].append(units / (perf_counter() - started))
        medians = {name: median(values) for name, values in rates.items()}
        self._show(rates, medians, command)
        return medians

    def _show(self, rates: dict[str, list[float]], medians: dict[str, float], command: str) -> None:
        yardstick = next(iter(medians.values()))
        table = Table(title=self._title, caption=f"{command}, {self._rounds} interleaved rounds")
        for heading in ("way", f"{self._unit}/s", "spread", "ratio"):
            table.add_column(heading, justify="left" if heading == "way" else "right")
        for name, values in rates.items():
            spread = f"{min(values):,.0f} to {max(values):,.0f}"
            rate = medians[name]
            table.add_row(name, f"{rate:,.0f}", spread, f"{rate / yardstick:.2f}x")
        Console(width=100).print(table)
