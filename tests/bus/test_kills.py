"""Real processes on one file, killed at any moment and started again under their names.

At the end: nothing that has a receipt is lost, nothing is doubled, no order is broken. What has no
receipt was published once or never, and then for everybody.

`INORDER_KILLS` sets how many kills the test makes.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise

import pytest

import inorder
from inorder.check import judge
from inorder.core.errors import Damaged, InorderError
from tests.bus.judge import judged, run
from tests.bus.troupe import PUBLISHERS, ROOT, SUBSCRIBERS, Troupe


def test_killed_processes_lose_nothing_and_double_nothing(tmp_path):
    kills = int(os.environ.get("INORDER_KILLS", "18"))
    chance = random.Random(7)
    troupe = Troupe(tmp_path)
    try:
        troupe.begin()
        # A run in which no kill has hit a commit proves nothing: then there are more of them.
        while sum(troupe.kills.values()) < kills or not troupe.unsaid.total():
            assert sum(troupe.kills.values()) < kills + 40, "no kill hits a commit"
            time.sleep(chance.uniform(0.0, 0.05))
            # Two in three are publishers: there are commits to hit.
            name = chance.choice([*PUBLISHERS, *PUBLISHERS, *SUBSCRIBERS])
            troupe.kill(name, at_commit=chance.random() < 0.5)
        troupe.finish()
        counts = judged(troupe.history())
        assert counts["lost"] == 0
        assert counts["owed"] > 0
        assert all(troupe.kills[name] for name in (*PUBLISHERS, *SUBSCRIBERS))
        assert troupe.unsaid == Counter({name: troupe.without_receipt(name) for name in PUBLISHERS})
    finally:
        troupe.end()


def test_clocks_two_hours_apart_change_nothing(tmp_path):
    """Nobody takes over from anybody, and the order is kept; two writers share the file."""
    troupe = Troupe(tmp_path, {"p1": 3600.0, "p2": -3600.0, "s1": -3600.0})
    try:
        troupe.begin()
        end = time.monotonic() + 60
        while any(troupe.done(name) < 400 for name in PUBLISHERS):
            assert time.monotonic() < end, {name: troupe.done(name) for name in PUBLISHERS}
            time.sleep(0.05)
        troupe.finish()
        verdicts = judge(troupe.history(), ("total", "fifo", "unique", "reliable", "accepted"))
        assert all(verdict.judged and not verdict.broken for verdict in verdicts.values()), verdicts
        runs = troupe.runs()
        assert {run.epoch for run in runs} == {1}
        by_clock = {run.publisher: run.published_at for run in runs if run.count}
        assert by_clock["p1"] - by_clock["p2"] > 7000
        stored = [run.stored_at for run in runs]
        assert stored == sorted(stored)
        # They took turns all along.
        changes = sum(a.publisher != b.publisher for a, b in pairwise(runs))
        assert changes > 20
    finally:
        troupe.end()


CONNECT = """
import asyncio, sys, inorder
async def main():
    async with inorder.connect(sys.argv[1]) as bus, bus.subscribe("t", start="earliest") as events:
        await bus.publish("t", {"n": sys.argv[2]})
        got = [await events.next(60) for _ in range(4)]
        print(bus._log.identity, *(f"{e.position}={e.value['n']}" for e in got))
asyncio.run(main())
"""


def test_four_processes_open_a_new_file_at_once(tmp_path):
    words = [sys.executable, "-c", CONNECT, f"sqlite:///{tmp_path}/new.db"]
    started = [
        subprocess.Popen([*words, str(n)], stdout=subprocess.PIPE, cwd=ROOT) for n in range(4)
    ]
    said = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0] * 4
    # One log, and the same four events in the same order.
    assert len(said) == 1
    assert {word.split(b"=")[1] for word in said.pop().split()[1:]} == {b"0", b"1", b"2", b"3"}


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced", "replaced by another log"])
def test_a_file_that_is_not_there_any_more_gives_no_receipt(tmp_path, how):
    path = tmp_path / "bus.db"

    async def job() -> None:
        async with (
            inorder.connect(f"sqlite:///{path}", deadline=5) as bus,
            bus.subscribe("t") as events,
        ):
            kept = [(await bus.publish("t", {"n": n})).offset for n in range(20)]
            if how == "deleted":
                path.unlink()
            elif how == "moved":
                path.rename(tmp_path / "elsewhere.db")
            else:
                other = tmp_path / "other.db"
                if how == "replaced":
                    shutil.copy(path, other)
                else:
                    async with inorder.connect(f"sqlite:///{other}") as another:
                        await another.publish("t", {"n": "another"})
                os.replace(other, path)
            for _ in range(5):
                with pytest.raises(InorderError) as caught:
                    await bus.publish("t", {"n": "late"})
                assert not isinstance(caught.value, TimeoutError)
            # What was read ahead may come; then the reader is told as well.
            got = []

            async def read_on() -> None:
                while len(got) <= len(kept):
                    got.append((await events.next(5)).offset)

            with pytest.raises(Damaged, match="deleted, moved or replaced"):
                await read_on()
            assert got == kept[: len(got)]

    run(job)
