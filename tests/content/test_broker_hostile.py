"""Hostile and stale messages: refused or answered, and nothing changes."""

from __future__ import annotations

import pytest

from inorder.content.broker import Broker
from inorder.content.engine import forms_of
from inorder.content.messages import (
    Adv,
    Attach,
    Fack,
    Flt,
    Hello,
    Installed,
    News,
    Pub,
    Replace,
    Set,
    Sub,
    Unsub,
)
from inorder.content.predicate import Predicate
from inorder.content.skeleton import Condition, Skeleton
from inorder.content.summary import Delta
from inorder.core.errors import BadMessage

FORMS = forms_of(Predicate.parse("price < :x"), {"x": 10})
FORM = FORMS[0]


def wary() -> Broker:
    """A broker with a neighbour that advertises and is advertised to, and a client."""
    broker = Broker("b1")
    broker.receive("b2", Hello(("b2",)), 0.0)
    broker.receive("c", Attach(("t",)), 0.0)
    broker.receive("c", Sub(1, "t", FORMS, 5), 0.0)
    broker.receive("b2", Flt("t", 1, 1, True, Delta(added=((1, FORM),))), 0.0)
    broker.receive("b2", Adv("t", True, 9), 0.0)
    return broker


BAD_FORM = (Skeleton(equality=(Condition("a", "=", (7,)),)), ())
LONG = "x" * 300
HOSTILE = [
    ("c", Set(1, 5, ((0, (3,)),))),
    ("c", Set(1, 6, ((1, (3,)),))),
    ("c", Set(1, 6, ((0, (3, 4)),))),
    ("c", Set(1, 6, ((0, (float("nan"),)),))),
    ("c", Set(1, 6, ())),
    ("c", Set(1, 6, ((0, (3,)), (0, (4,))))),
    ("c", Replace(1, 4, FORMS)),
    ("c", Replace(1, 6, (BAD_FORM,))),
    ("c", Replace(1, 6, FORMS * 65)),
    ("c", Unsub(1, 5)),
    ("c", Sub(2, "", FORMS, 1)),
    ("c", Sub(2, LONG, FORMS, 1)),
    ("c", Sub(2, "t", (BAD_FORM,), 1)),
    ("c", Adv(LONG, True)),
    ("c", Pub("t", "somebody", 1, {})),
    ("c", Flt("t", 1, 2, False, Delta())),
    ("c", Hello(("c",))),
    ("c", News()),
    ("c", Fack("t", 1, 1)),
    ("c", Attach((LONG,))),
    ("x", Pub("t", "x", 1, {})),
    ("x", Adv("t", True, 1)),
    ("b2", Hello(("b2",))),
    ("b2", Sub(1, "t", FORMS, 1)),
    ("b2", Attach()),
    ("b2", Installed(1, 1)),
    ("b2", Adv("t", True, 10)),
    ("b2", Adv("u", True, 0)),
    ("b2", Adv("u", False, 1)),
    ("b2", Adv("t", False, 8)),
    ("b2", Pub("u", "p", 1, {})),
    ("b2", Flt("t", 1, 3, False, Delta())),
    ("b2", Flt("t", 1, 1, False, Delta())),
    ("b2", Flt("t", 1, 2, True, Delta())),
    ("b2", Flt("t", 7, 2, False, Delta())),
    ("b2", Flt("t", 1, 2, False, Delta(deleted=(2,)))),
    ("b2", Flt("t", 1, 2, False, Delta(added=((1, FORM),)))),
    ("b2", Flt("t", 1, 2, False, Delta(added=((2, BAD_FORM),)))),
    ("b2", Flt("t", 1, 2, False, Delta(moved=((2, (1,)),)))),
    ("b2", Flt("t", 1, 2, False, Delta(moved=((1, (1, 2)),)))),
    ("b2", Flt("t", 1, 2, False, Delta(deleted=(1,), moved=((1, (1,)),)))),
    ("b2", Flt("t", 1, 2, False, Delta(deleted=(1, 1)))),
    ("b2", Fack("t", 9, 7)),
    ("b2", Fack("t", 9, 0)),
    ("b2", News(left=("b7",))),
    ("b3", Hello(("b4",))),
    ("b3", Hello(("b3", "b3"))),
    ("b3", News(("b4",))),
]


@pytest.mark.parametrize(("source", "message"), HOSTILE, ids=str)
def test_a_broken_message_is_refused_and_changes_nothing(source, message):
    broker = wary()
    before = broker.snapshot()
    with pytest.raises(BadMessage):
        broker.receive(source, message, 0.0)
    assert broker.snapshot() == before
    noted = broker.receive_all([(source, message)], 0.0)
    assert [effect.mark for effect in noted] == ["bad_message"]
    assert broker.snapshot() == before


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Sub(1, "t", FORMS, 6), "DUPLICATE_SUBSCRIPTION"),
        (Set(2, 6, ((0, (1,)),)), "UNKNOWN_SUBSCRIPTION"),
        (Replace(2, 6, FORMS), "UNKNOWN_SUBSCRIPTION"),
        (Unsub(2, 6), "UNKNOWN_SUBSCRIPTION"),
    ],
)
def test_what_cannot_be_is_answered_and_changes_nothing(message, code):
    broker = wary()
    before = broker.snapshot()
    (answer,) = broker.receive("c", message, 0.0)
    assert (answer.target, answer.message.code) == ("c", code)
    assert broker.snapshot() == before
