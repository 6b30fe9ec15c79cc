"""Matching content subscriptions: one event, batches, updates, both mixed, memory, building.

Trading is `firm = :f AND price <= :x` (35 %; 33 % `>=`, 32 % `=`) with 1,000 firms; traffic is a
window of 1 x 1 in a field of 100 x 100. Beside the index: a loop over all subscriptions in plain
Python, SQLite in memory (an index on firm, operator, price; an R*Tree for windows, checked exactly
afterwards), and, if installed, rule-engine, at 10,000 rules only. SQLite also keeps transactions
and could keep a file; ours keeps neither. Updates change the limit, or move the window by 0.1.
"""

from __future__ import annotations

import random
import sqlite3
import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from tests.content import populations

from benches.measure import Contest
from inorder.content.index import Index

COMMAND = "python -m benches.content"
EVENTS = 20_000
ROUNDS = 5


class Workload:
    """Subscriptions, events and updates, and the ways to match them."""

    def __init__(self, name: str, count: int) -> None:
        rng = random.Random(1)
        self.name, self.count = name, count
        trading = name == "trading"
        draw = populations.trading if trading else populations.traffic
        event = populations.quote if trading else populations.position
        self.forms = [draw(rng) for _ in range(count)]
        self.events = [event(rng) for _ in range(EVENTS)]
        self.updates: list[tuple[int, tuple[Any, ...]]] = []
        exact = populations.TRADING["="].skeleton[0]
        while len(self.updates) < EVENTS:
            key = rng.randrange(count)
            skeleton, vector = self.forms[key]
            if not trading:
                self.updates.append((key, tuple(end + 0.1 for end in vector)))
            elif skeleton != exact:
                self.updates.append((key, (vector[0], populations.price(rng))))
        self.columns = {
            name: np.array([event[name] for event in self.events]) for name in self.events[0]
        }

    def index(self) -> Index:
        index = Index()
        for key, form in enumerate(self.forms):
            index.add(key, (form,))
        return index

    def loop(self) -> Callable[[dict[str, Any]], list[int]]:
        """Every subscription, one after the other."""
        if self.name == "traffic":
            windows = [(key, *vector) for key, (_, vector) in enumerate(self.forms)]

            def inside(event: dict[str, Any]) -> list[int]:
                x, y = event["lat"], event["lon"]
                return [k for k, a, b, c, d in windows if a <= x <= b and c <= y <= d]

            return inside
        rows = [(key, _op(skeleton), *vector) for key, (skeleton, vector) in enumerate(self.forms)]

        def limits(event: dict[str, Any]) -> list[int]:
            firm, price = event["firm"], event["price"]
            return [
                key
                for key, op, name, limit in rows
                if name == firm
                and (
                    price <= limit
                    if op == "<="
                    else price >= limit
                    if op == ">="
                    else price == limit
                )
            ]

        return limits


def _op(skeleton: Any) -> str:
    return skeleton.ranges[0].op if skeleton.ranges else "="


class Sqlite:
    """The same subscriptions in tables."""

    def __init__(self, work: Workload) -> None:
        self._trading = work.name == "trading"
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        execute = self._db.execute
        if self._trading:
            execute("CREATE TABLE s (id INTEGER PRIMARY KEY, firm TEXT, op TEXT, x REAL)")
            rows = [(k, v[0], _op(s), v[1]) for k, (s, v) in enumerate(work.forms)]
            self._db.executemany("INSERT INTO s VALUES (?, ?, ?, ?)", rows)
            execute("CREATE INDEX i ON s (firm, op, x)")
        else:
            execute("CREATE TABLE s (id INTEGER PRIMARY KEY, a REAL, b REAL, c REAL, d REAL)")
            execute("CREATE VIRTUAL TABLE r USING rtree (id, a, b, c, d)")
            rows = [(k, *v) for k, (_, v) in enumerate(work.forms)]
            for table in ("s", "r"):
                self._db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", rows)

    def match(self, event: dict[str, Any]) -> list[int]:
        if self._trading:
            firm, x = event["firm"], event["price"]
            query = (
                "SELECT id FROM s WHERE firm = ?1 AND op = '<=' AND x >= ?2 "
                "UNION ALL SELECT id FROM s WHERE firm = ?1 AND op = '>=' AND x <= ?2 "
                "UNION ALL SELECT id FROM s WHERE firm = ?1 AND op = '=' AND x = ?2"
            )
            return sorted(key for (key,) in self._db.execute(query, (firm, x)))
        query = (
            "SELECT s.id FROM r JOIN s USING (id) WHERE r.a <= ?1 AND r.b >= ?1 AND r.c <= ?2 "
            "AND r.d >= ?2 AND s.a <= ?1 AND s.b >= ?1 AND s.c <= ?2 AND s.d >= ?2"
        )
        point = (event["lat"], event["lon"])
        return sorted(key for (key,) in self._db.execute(query, point))

    def set(self, key: int, vector: tuple[Any, ...]) -> None:
        if self._trading:
            self._db.execute("UPDATE s SET x = ? WHERE id = ?", (vector[1], key))
            return
        for table in ("s", "r"):
            self._db.execute(f"UPDATE {table} SET a=?, b=?, c=?, d=? WHERE id=?", (*vector, key))


def rules(work: Workload) -> Callable[[dict[str, Any]], list[int]] | None:
    """rule-engine has no index: every rule is asked."""
    try:
        from rule_engine import Rule  # type: ignore[import-not-found]
    except ImportError:
        return None
    texts = []
    for skeleton, v in work.forms:
        if work.name == "trading":
            op = {"=": "=="}.get(_op(skeleton), _op(skeleton))
            texts.append(f"firm == '{v[0]}' and price {op} {v[1]}")
        else:
            texts.append(f"lat >= {v[0]} and lat <= {v[1]} and lon >= {v[2]} and lon <= {v[3]}")
    compiled = [(key, Rule(text)) for key, text in enumerate(texts)]
    return lambda event: [key for key, rule in compiled if rule.matches(event)]


def matching(work: Workload, index: Index, sqlite: Sqlite) -> None:
    ways = {"index": (index.match, EVENTS), "SQLite": (sqlite.match, 1000)}
    ways["plain loop"] = (work.loop(), 100_000 // work.count * 2)
    asked = rules(work) if work.count <= 10_000 else None
    if asked is not None:
        ways["rule-engine"] = (asked, 2)
    for event in work.events[:2]:
        answers = [match(event) for match, _ in ways.values()]
        assert all(answer == answers[0] for answer in answers), "all ways answer alike"
    contest = Contest(f"{work.name}, {work.count:,}: one event", "events", ROUNDS)
    for name, (match, count) in ways.items():
        contest.add(name, lambda match=match, count=count: _each(match, work.events[:count]))
    contest.run(COMMAND)


def _each(match: Callable[[Any], Any], events: list[Any]) -> int:
    for event in events:
        match(event)
    return len(events)


def batches(work: Workload, index: Index) -> None:
    pairs = len(index.match_batch(work.columns)[0])
    title = f"{work.name}, {work.count:,}: {EVENTS:,} at once, {pairs / EVENTS:.1f} matches each"
    contest = Contest(title, "events", ROUNDS)
    arrow = {name: pa.array(column) for name, column in work.columns.items()}

    def after_change() -> int:
        index.set(*_one(work.updates[0]))
        index.match_batch(work.columns)
        return EVENTS

    contest.add("NumPy", lambda: (index.match_batch(work.columns), EVENTS)[1])
    contest.add("Arrow", lambda: (index.match_batch(arrow), EVENTS)[1])
    contest.add("NumPy, right after an update", after_change)
    contest.add("one by one", lambda: _each(index.match, work.events))
    rates = contest.run(COMMAND)
    Console().print(f"pairs a second: {rates['NumPy'] * pairs / EVENTS / 1e6:.1f} million\n")


def _one(update: tuple[int, tuple[Any, ...]]) -> tuple[int, tuple[tuple[Any, ...]]]:
    return update[0], (update[1],)


def updates(work: Workload, index: Index, sqlite: Sqlite) -> None:
    there = [_one(update) for update in work.updates]
    back = [(key, (work.forms[key][1],)) for key, _ in there]
    contest = Contest(f"{work.name}, {work.count:,}: updates", "operations", ROUNDS)

    # There and back: the same values over again would move nothing.
    def ours() -> int:
        for moves in (there[: EVENTS // 2], back[: EVENTS // 2]):
            for key, vectors in moves:
                index.set(key, vectors)
        return EVENTS

    def mixed() -> int:
        for moves in (there[: EVENTS // 2], back[: EVENTS // 2]):
            for (key, vectors), event in zip(moves, work.events, strict=False):
                index.set(key, vectors)
                index.match(event)
        return EVENTS

    def theirs() -> int:
        for moves in (there[:500], back[:500]):
            for key, (vector,) in moves:
                sqlite.set(key, vector)
        return 1000

    contest.add("index: update", ours)
    contest.add("SQLite: update", theirs)
    contest.add("index: update and match", mixed)
    contest.run(COMMAND)


def sizes(work: Workload) -> None:
    seconds = []
    for _ in range(3):
        started = perf_counter()
        work.index()
        seconds.append(perf_counter() - started)
    tracemalloc.start()
    index = work.index()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    Console().print(
        f"{work.name}, {work.count:,}: built in {min(seconds):.2f} to {max(seconds):.2f} s, "
        f"{held / len(index):,.0f} bytes a subscription\n"
    )


def main() -> None:
    for name in ("trading", "traffic"):
        for count in (10_000, 100_000):
            work = Workload(name, count)
            index, sqlite = work.index(), Sqlite(work)
            matching(work, index, sqlite)
            batches(work, index)
            updates(work, index, sqlite)
            sizes(work)


if __name__ == "__main__":
    main()
