"""What decides the exit code, and what is only shown."""

from __future__ import annotations

import pytest

from inorder.check import PROMISES
from inorder.check.decision import LOG, decide
from inorder.check.verdict import Verdict

KEPT = Verdict("x", judged=True, kept=True)
BROKEN = Verdict("x", judged=True, kept=False, violations=1, witness={})
OPEN = Verdict("x", judged=False, kept=False, why="needs more")


@pytest.mark.parametrize(
    ("verdicts", "promised", "asked", "complete", "word"),
    [
        ({"total": BROKEN, "fifo": KEPT}, ["fifo"], [], True, "kept"),
        ({"total": BROKEN, "fifo": KEPT}, ["fifo"], ["total"], True, "broken"),
        ({"total": BROKEN, "fifo": KEPT}, ["total"], [], True, "broken"),
        ({"total": BROKEN}, None, [], True, "broken"),
        ({"realtime": BROKEN, "total": KEPT}, None, [], True, "kept"),
        ({"realtime": BROKEN, "total": KEPT}, None, ["realtime"], True, "broken"),
        ({"causal_across_topics": BROKEN}, ["causal_across_topics"], [], True, "broken"),
        ({"total": KEPT}, ["total"], [], False, "incomplete"),
        ({"total": BROKEN}, ["total"], [], False, "broken"),
        ({"total": KEPT, "fifo": OPEN}, ["total", "fifo"], [], True, "kept"),
        ({"total": KEPT, "fifo": OPEN}, None, ["total", "fifo"], True, "incomplete"),
        ({"total": OPEN}, ["total"], [], True, "incomplete"),
        ({"total": KEPT}, [], [], True, "incomplete"),
        ({}, ["total"], [], True, "incomplete"),
    ],
)
def test_what_decides(verdicts, promised, asked, complete, word):
    assert decide(verdicts, promised, asked, complete) == word


def test_who_delivers_what_nobody_published_is_not_reliable():
    unsound = Verdict("reliable", True, True, also={"integrity": BROKEN})
    assert decide({"reliable": unsound}, ["reliable"]) == "broken"
    assert decide({"reliable": unsound, "fifo": KEPT}, ["fifo"]) == "kept"


def test_every_name_is_a_promise():
    assert set(LOG) < set(PROMISES)
