"""What a long life costs: SQLite tells how many steps of its own a verb took, and that is no
matter of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inorder.bus.store.rows import Append, Mail, Turn
from inorder.bus.store.sqlite.file import File

MESSAGE = b"x" * 100
TOPICS = ("a", "b")


def filled(folder: Any, rows: int) -> File:
    file = File(folder / f"{rows}.db", durable=False)
    for topic in TOPICS:
        file.declare(topic, "none")
    file.write(
        Turn(
            appends=[Append(TOPICS[n % 2], MESSAGE, 1) for n in range(rows)],
            mails=[Mail(f"m{n % 50}", "s", MESSAGE) for n in range(rows)],
        )
    )
    return file


VERBS: dict[str, Callable[[File, int], Any]] = {
    "reading what is new": lambda file, rows: file.log(["a"], rows - 10, rows),
    "reading what is new of all": lambda file, rows: file.log(TOPICS, rows - 10, rows),
    "reading from the middle": lambda file, rows: file.log(TOPICS, rows // 2, rows // 2 + 10),
    "a slice": lambda file, rows: list(file.slice("a", rows // 2 - 10, rows // 2)),
    "places of a slice": lambda file, rows: list(file.places("a", rows // 2 - 10, rows // 2)),
    "the row of an offset": lambda file, rows: file.id_of("a", rows // 2 - 1),
    "the last id": lambda file, rows: file.last_id(),
    "all topics": lambda file, rows: file.topics(),
    "mail of few": lambda file, rows: file.mail(["m0"]),
    "mail of nobody": lambda file, rows: file.mail(["nobody", "none"]),
    "appending": lambda file, rows: file.write(Turn(appends=[Append("a", MESSAGE, 1)])),
    "taking mail": lambda file, rows: file.write(Turn(taken=[rows // 2])),
}


def steps(file: File, call: Callable[[File, int], Any], rows: int) -> int:
    counted = 0

    def step() -> int:
        nonlocal counted
        counted += 1
        return 0

    file._db.set_progress_handler(step, 1)
    call(file, rows)
    file._db.set_progress_handler(None, 1)
    return counted


@pytest.mark.parametrize("verb", [name for name in VERBS if name != "mail of few"])
def test_it_costs_the_same_however_long_the_log_is(tmp_path, verb):
    short, long = filled(tmp_path, 100), filled(tmp_path, 5000)
    few, many = steps(short, VERBS[verb], 100), steps(long, VERBS[verb], 5000)
    assert 5 < many < 1.5 * few


def test_the_steps_tell_when_all_rows_are_looked_at(tmp_path):
    """The measure can fail: one that reads everything, and one that sorts a topic first."""
    short, long = filled(tmp_path, 100), filled(tmp_path, 5000)
    assert steps(long, VERBS["mail of few"], 5000) > 10 * steps(short, VERBS["mail of few"], 100)
    by_topic = "SELECT id FROM log WHERE id > ? AND topic IN (?) ORDER BY id"

    def scan(file: File, rows: int) -> list[Any]:
        return file._db.execute(by_topic, (rows - 10, "a")).fetchall()

    assert steps(long, scan, 5000) > 10 * steps(short, scan, 100)
