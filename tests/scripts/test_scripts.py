"""Plays every script under this folder; `pytest --rewrite` writes what really happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from inorder.sim.script import play

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.rglob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(HERE)))
def test_script(path, request):
    text = path.read_text()
    played = play(text)
    if request.config.getoption("--rewrite"):
        path.write_text(played)
        return
    assert played == text, "run pytest --rewrite, read the diff, and keep it only if it is right"


def test_a_changed_expectation_is_seen():
    assert play("clients a\n----\nsomething else\n") == "clients a\n----\nok\n"
