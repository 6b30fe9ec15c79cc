"""Files of the embedded broker, filled with what the real machines diffuse, and read plainly."""

from __future__ import annotations

import json
import math
import random
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from inorder.bus.store.rows import Append, Turn
from inorder.bus.store.sqlite.file import File
from inorder.core import wire
from inorder.core.effect import Diffuse, Send
from inorder.core.machine import make_all
from inorder.core.settings import convert
from inorder.guarantee.registry import guarantee

CLIENTS = ("p1", "p2")


def diffused(name: str, values: list[tuple[str, dict[str, Any]]], seed: int = 0) -> list[Any]:
    """What the machines of a guarantee diffuse for these publications: (topic, message)."""
    entry = guarantee(name)
    options = entry.log.options(convert({}, entry.options, "order"))
    if "links" in options.__struct_fields__:
        options = msgspec.structs.replace(options, links="trusted")  # no timers are run here
    topics = sorted({topic for topic, _ in values})
    clients = {client: entry.client(client, topics, options) for client in CLIENTS}
    machines: dict[str, Any] = {**make_all(entry.services(topics, options)), **clients}
    random_ = random.Random(seed)
    queue: list[Any] = []
    found: list[Any] = []

    def act(who: str, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                queue.append((who, effect.target, effect.message))
            elif isinstance(effect, Diffuse):
                found.append((effect.topic, effect.message))

    def drain(now: float) -> None:
        while queue:
            source, target, message = queue.pop(0)
            act(target, machines[target].receive(source, message, now))

    for number, (topic, value) in enumerate(values):
        who = random_.choice(CLIENTS)
        act(who, clients[who].publish(topic, value, number * 0.01))
        if random_.random() < 0.05:
            drain(number * 0.01)
    drain(len(values) * 0.01)
    return found


def fill(path: Path, name: str, messages: list[Any], turns: int = 1) -> None:
    """Append messages in several transactions."""
    stamped = guarantee(name).log.stamped
    file = File(path, durable=False)
    for topic in sorted({topic for topic, _ in messages}):
        assert file.declare(topic, name) == name
    appends = [Append(t, wire.encode(m), len(stamped(m))) for t, m in messages]
    size = -(-len(appends) // turns) or 1
    for low in range(0, len(appends), size):
        file.write(Turn(appends=appends[low : low + size]))
    file.close()


def random_values(seed: int, rows: int, topics: list[str]) -> list[tuple[str, dict[str, Any]]]:
    random_ = random.Random(seed)
    words = ["", "plain", "line\nbreak", 'quo"te', "Zürich", "\u0000", "emoji 🙂"]
    kinds = [lambda: random_.choice(words), lambda: random_.randint(-(2**62), 2**62),
             lambda: random_.random(), lambda: random_.random() < 0.5, lambda: None,
             lambda: random_.choice([math.inf, -math.inf, math.nan])]  # fmt: skip
    return [
        (
            random_.choice(topics),
            {f"k{key}": random_.choice(kinds)() for key in range(random_.randint(0, 3))},
        )
        for _ in range(rows)
    ]


def random_log(path: Path, seed: int, rows: int = 60) -> None:
    """A file with topics of every guarantee."""
    for name, topics in (("none", ["plain"]), ("fifo", ["f1", "f2"]), ("total", ["t1", "t2"])):
        values = random_values(seed, rows, topics)
        fill(path, name, diffused(name, values, seed), turns=1 + seed % 3)


def batched(rows: int, size: int, topic: str = "orders") -> list[Any]:
    """Total order's messages of `size` events each."""
    from inorder.core.event import Event
    from inorder.protocols.total.messages import Events

    return [
        (
            topic,
            Events(topic, low + 1, 0, (("payments", low // 3),), tuple(
                Event("p", low + place + 1, topic, {"n": low + place}, float(low))
                for place in range(min(size, rows - low)))),
        )
        for low in range(0, rows, size)
    ]  # fmt: skip


def plain_rows(path: Path, start: dict[str, int] | None = None) -> list[tuple[Any, ...]]:
    """The events of a file by the shortest way there is: no columns, no batches, no Spark."""
    found = []
    db = sqlite3.connect(path)
    names = dict(db.execute("SELECT topic, guarantee FROM topics"))
    for id, topic, offset, at, blob in db.execute(
        "SELECT id, topic, offset, at, message FROM log ORDER BY topic, offset"
    ):
        log = guarantee(names[topic]).log
        message = wire.Decoder(log.messages).decode(blob)
        for place, (event, stamp) in enumerate(log.stamped(message), offset):
            if place < (start or {}).get(topic, 0):
                continue
            found.append((
                topic, place, id, event.id, event.publisher, event.seq, event.published_at, at,
                text_of(event.value), stamp, names[topic],
            ))  # fmt: skip
    db.close()
    return found


def text_of(value: dict[str, Any]) -> str:
    if any(isinstance(each, float) and not math.isfinite(each) for each in value.values()):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return msgspec.json.encode(value).decode()


def spoil(path: Path, topic: str, offset: int, column: str = "message") -> None:
    """Flip one bit of the row that begins at an offset."""
    db = sqlite3.connect(path)
    if column == "message":
        (blob,) = db.execute(
            "SELECT message FROM log WHERE topic = ? AND offset = ?", (topic, offset)
        ).fetchone()
        changed = bytes([*blob[:-3], blob[-3] ^ 4, *blob[-2:]])
    else:
        changed = 7
    db.execute(
        f"UPDATE log SET {column} = ? WHERE topic = ? AND offset = ?", (changed, topic, offset)
    )
    db.commit()
    db.close()
