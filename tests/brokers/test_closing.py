"""What a file looks like when its last connection has closed."""

from __future__ import annotations

import threading
from pathlib import Path

from inorder.brokers import broker_at
from inorder.logs.broker import Author, Run
from inorder.logs.topics import EVERYTHING
from tests.brokers.hands import run


def test_the_last_connection_to_close_leaves_everything_in_one_file(tmp_path: Path) -> None:
    """Two that close at once may each take the other for one that stays."""

    async def job() -> None:
        broker = broker_at(f"sqlite:///{tmp_path}/log.db", 10.0)
        await broker.open()
        [log] = await broker.logs(EVERYTHING)
        await broker.append(log, Author("p"), [Run("t", "p", 1, 1, 1, b"\x91\x80")])
        closed: list[str] = []
        writes = threading.Event()
        reader, writer = broker._in.close, broker._out.close  # type: ignore[attr-defined]

        def close_reader() -> None:
            writes.wait(0.2)  # time enough for a writer that does not wait
            reader()
            closed.append("reader")

        def close_writer() -> None:
            closed.append("writer")
            writes.set()
            writer()

        broker._in.close, broker._out.close = close_reader, close_writer  # type: ignore[attr-defined]
        await broker.close()
        assert closed == ["reader", "writer"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["log.db", "log.db-witness"]

    run(job)
