"""Damage in a file, as a subscription meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

import inorder
from inorder.core.errors import Damaged
from tests.bus.judge import run


def test_behind_a_damaged_block_a_subscription_to_some_topics_goes_on(tmp_path: Path) -> None:
    """The error and its traceback are alive when the next block is read."""
    file = tmp_path / "notes.db"
    url = f"sqlite:///{file}"

    async def write() -> None:
        async with inorder.connect(url) as bus:
            for note in ("first", "second", "third"):
                await bus.publish("notes", {"note": note})
                await bus.publish("other", {})

    async def read() -> None:
        async with (
            inorder.connect(url) as bus,
            bus.subscribe("notes", start="earliest") as notes,
        ):
            assert (await notes.next(5)).value == {"note": "first"}
            with pytest.raises(Damaged) as caught:
                await notes.next(5)
            assert (caught.value.start, caught.value.upto) == (3, 4)
            assert (await notes.next(5)).value == {"note": "third"}

    run(write)
    damaged = file.read_bytes().replace(b"second", b"sec0nd")
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    run(read)
