"""Commands that look after files."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing

import pytest

from inorder.brokers.sqlite.file import File
from inorder.cli import main
from inorder.logs.broker import Author
from tests.brokers.hands import events

ME = Author("shop", 1, True)


@pytest.fixture
def inorder(monkeypatch, capsys, tmp_path):
    """Runs a command in a folder with a file; gives exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)
    file = File("shop.db")
    for n in range(1, 11):
        file.append(ME, [events(ME, "orders" if n % 2 else "payments", n, [{"n": n}])])
    file.within(file.facts.put, "position/billing", b"5", 1)
    file.close()

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["inorder", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


URL = "sqlite:///shop.db"


def hurt():
    with closing(sqlite3.connect("shop.db")) as db:
        db.execute("UPDATE log SET n = 2 WHERE last = 4")
        db.commit()


def test_status_shows_what_is_there(inorder):
    code, out, _ = inorder("status", URL)
    assert code == 0
    for line in ("topics: 2", "  orders: 5", "  payments: 5", "names: position/billing",
                 "publishers: shop", "first: 1", "end: 11"):  # fmt: skip
        assert line in out.splitlines()
    figures = json.loads(inorder("status", URL, "--json")[1])
    assert figures["topics"] == {"orders": 5, "payments": 5}


def test_check_says_what_is_wrong_and_changes_nothing(inorder, tmp_path):
    assert inorder("check", URL) == (0, "sound: 10 events in 10 blocks\n", "")
    hurt()
    before = (tmp_path / "shop.db").read_bytes()
    code, out, _ = inorder("check", URL)
    assert code == 1
    assert out.splitlines() == [
        "the block at 4: the sum does not match",
        "offsets 4 to 4: damaged or missing",
        "2 flaws: 9 events in 9 blocks",
    ]
    flaws = json.loads(inorder("check", URL, "--json")[1])["flaws"]
    assert flaws[1] == [4, 4, "damaged or missing"]
    (tmp_path / "shop.db-witness").unlink()
    assert "shop.db-witness is missing or damaged" in inorder("check", URL)[1]
    assert (tmp_path / "shop.db").read_bytes() == before


def test_repair_and_copy_make_files(inorder):
    code, out, _ = inorder("copy", URL, "backup.db")
    assert (code, out.split(":")[0]) == (0, "backup.db")
    hurt()
    code, _, err = inorder("copy", URL, "no.db")
    assert code == 2
    assert "repair it first" in err
    code, out, _ = inorder("repair", URL, "--out", "new.db")
    assert (code, out.splitlines()[-1]) == (0, "new.db: 2 flaws left behind")
    assert inorder("check", "sqlite:///new.db")[0] == 0
    code, _, err = inorder("repair", URL, "--out", "new.db")
    assert (code, "is there already" in err) == (2, True)


@pytest.mark.parametrize(
    "words", [("status",), ("check",), ("copy", "x.db"), ("repair", "--out", "x.db")]
)
def test_what_is_no_file_is_one_sentence(inorder, words, tmp_path):
    command, *rest = words
    for url, message in (
        ("sqlite:///typo.db", "there is no such file"),
        ("kafka://x", "leads to no broker"),
    ):
        code, _, err = inorder(command, url, *rest)
        assert (code, message in err, err.count("\n")) == (2, True, 1)
    assert not (tmp_path / "typo.db").exists()
    assert not (tmp_path / "x.db").exists()
