"""Power cuts: everything that was written and not synced is gone.

The disk is one of our own (disk.py). After each sync of a run the power is cut, the file is opened,
and every event that had its receipt by then has to be there, where its receipt says.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from inorder.brokers.sqlite import file as module
from inorder.brokers.sqlite import reading
from inorder.brokers.sqlite.file import File
from inorder.core.errors import InorderError, Refused
from inorder.logs.broker import Author
from inorder.logs.topics import EVERYTHING
from tests.brokers.disk import FULL, IOERR_SYNC, IOERR_WRITE, OK, Disk
from tests.brokers.hands import events, expand

ME = Author("p", 1, True)


def content(file: File) -> dict[int, int]:
    """Offset and value of everything in a file; removed ranges are passed over."""
    found: dict[int, int] = {}
    end = reading.settle(file)
    at = end.first
    while at < end.stable:
        rows = reading.read(file, at, 1 << 20, EVERYTHING)
        found |= {s.offset: s.value for run in rows.runs for s in expand(run) if s.sequence}
        at = rows.upto
    return found


def write_200(file: File, receipts: dict[int, int], seed: int) -> None:
    """200 events, one or a few at a time, some values as large as several pages; and facts."""
    draw = random.Random(seed)
    n = 0
    while n < 200:
        count = min(200 - n, draw.choice([1, 1, 1, 2, 5]))
        values = [n + m for m in range(count)]
        keys = tuple("k" * draw.choice([1, 6000]) for _ in values)
        stored = file.append(ME, [events(ME, "t", n + 1, values, keys=keys)])
        receipts |= dict(zip(stored, values, strict=True))
        n += count
        file.within(file.facts.append_if, "s", file.facts.final("s") + 1, b"%d" % n)
        file.within(file.facts.put, "position", b"%d" % n, 1, durable=False)


def opened_after(disk: Disk, folder: object, monkeypatch: pytest.MonkeyPatch) -> File:
    """The machine has started again."""
    boots = iter(range(10**9))
    monkeypatch.setattr(module, "boot_id", lambda: b"boot %d" % next(boots))
    return File(disk.after_a_power_cut(folder) / "log.db")  # type: ignore[arg-type, operator]


@pytest.mark.parametrize("seed", [1])
def test_no_power_cut_takes_a_receipt(tmp_path, monkeypatch, seed):
    disk = Disk(tmp_path / "disk")
    disk.folder.mkdir()
    receipts: dict[int, int] = {}
    final = 0
    pictures: list[tuple[dict[str, bytes], dict[int, int], int]] = []
    with disk.below():
        file = File(disk.folder / "log.db")

        def picture() -> None:
            # The witness is never synced: it may be lost, or be as young as the next sync.
            witness = (disk.folder / "log.db-witness").read_bytes()
            if pictures and receipts:
                before = pictures[-1]
                pictures.append(({**before[0], "log.db-witness": witness}, *before[1:]))
            pictures.append(({**disk.synced}, {**receipts}, final))

        disk.on_sync = picture
        write_200(file, receipts, seed)
        disk.on_sync()
        final = file.facts.final("s")
        disk.on_sync()
        disk.on_sync = lambda: None
        file.close()
    assert len(receipts) == 200
    assert len(pictures) > 150
    with disk.below():
        for synced, given, last in pictures:
            disk.synced = synced
            again = opened_after(disk, tmp_path / "cut", monkeypatch)
            kept = content(again)
            assert {offset: kept.get(offset) for offset in given} == given
            assert again.facts.final("s") >= last
            assert set(kept) <= set(range(1, 201))
            (more,) = again.append(
                Author("q", 1, True), [events(Author("q", 1, True), "t", 1, [0])]
            )
            assert more not in kept
            again.close()


def test_without_waiting_for_the_disk_most_are_lost_and_no_offset_is_used_twice(
    tmp_path, monkeypatch
):
    """The proof that the test above can fail; and what durable=no promises."""
    disk = Disk(tmp_path / "disk")
    disk.folder.mkdir()
    receipts: dict[int, int] = {}
    with disk.below():
        file = File(disk.folder / "log.db", durable=False)
        before = disk.syncs
        write = file.within
        monkeypatch.setattr(file, "within", lambda *call, **how: write(*call, durable=False))
        write_200(file, receipts, 2)
        assert disk.syncs - before < 10
        disk.synced["log.db-witness"] = file.witness.path.read_bytes()
        again = opened_after(disk, tmp_path / "cut", monkeypatch)
        kept = content(again)
        assert len([offset for offset in receipts if offset not in kept]) > 150
        other = Author("q", 1, True)
        for life in range(3):
            (more,) = again.append(other, [events(other, "t", life + 1, [0])])
            assert more > max(receipts)
            assert more >= module.CEILING_STEP * (life + 1)
            rows = reading.read(again, len(kept) + 1, 1 << 20, EVERYTHING)
            assert rows.removed
            disk.synced = {p.name: p.read_bytes() for p in again.path.parent.iterdir()}
            again.close()
            again = File(again.path, durable=False)
            again.append(other, [events(other, "t", life + 10, [0])])
            picture = {p.name: p.read_bytes() for p in again.path.parent.iterdir()}
            again.close()
            disk.synced = picture
            other = Author("q", life + 2, True)
            again = opened_after(disk, tmp_path / f"cut{life}", monkeypatch)
        again.close()
        file.close()


def failing(verb: str, at: int, code: int) -> Callable[[str, object], int]:
    """Lets one call fail."""
    calls = 0

    def fail(what: str, path: object) -> int:
        nonlocal calls
        calls += what == verb
        return code if what == verb and calls == at else OK

    return fail


@pytest.mark.parametrize(
    ("verb", "code"), [("write", FULL), ("write", IOERR_WRITE), ("sync", IOERR_SYNC)]
)
def test_a_call_of_the_disk_that_fails_costs_no_receipt(tmp_path, verb, code):
    """`Refused` means that nothing was stored; after any other error it is asked what was."""
    failures = 0
    for at in range(1, 40, 3 if verb == "write" else 1):
        disk = Disk(tmp_path / f"{at}")
        disk.folder.mkdir()
        with disk.below():
            file = File(disk.folder / "log.db")
            disk.fail = failing(verb, at, code)
            receipts: dict[int, int] = {}
            refused: set[int] = set()
            n = 0
            for _ in range(12):
                n = max(file.within(file.facts.last, ME) or 0, n) + 1
                try:
                    (offset,) = file.append(ME, [events(ME, "t", n, [n], keys=("k" * 5000,))])
                    receipts[offset] = n
                except Refused:
                    failures += 1
                    refused.add(n)
                except InorderError:
                    failures += 1
            disk.fail = lambda verb, path: OK
            kept = content(file)
            assert {offset: kept.get(offset) for offset in receipts} == receipts
            assert not refused & {*kept.values()}
            file.close()
            again = File(disk.folder / "log.db")
            assert content(again) == kept
            again.close()
    assert failures >= 5
