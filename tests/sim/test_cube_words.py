"""What peers say to each other, told with their names."""

from __future__ import annotations

import pytest

from inorder.core.event import Event
from inorder.guarantee import none
from inorder.protocols.causal.messages import Published
from inorder.protocols.cube.messages import Ack, Act, Packet, Pub, Sub, Uns
from inorder.protocols.session.messages import Frame
from inorder.sim.narrate import brief
from inorder.sim.script import play
from inorder.sim.wording import Wording

NAMES = ["a", "b", "c", "d", "e"]


def told(message: object, source: str = "a", target: str = "c") -> str:
    return brief(message, Wording(NAMES, source, target))


def pub(number: int, seq: int, to: bytes = b"") -> Pub:
    return Pub("t", 0, number, to, none.Published(Event("a", seq, "t")))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Sub("t", 0, 1, 1, 1, b"\x03"), "Sub t a change 1 for d"),
        (Sub("t", 0, 3, 2, 7, b""), "Sub t a change 3 as source next 7"),
        (Act("t", 0, 1, b"\x03"), "Act t a change 1 for d"),
        (Act("t", 0, 1, b"\xff"), "Act t a change 1 for ff"),
        (Uns("t", 4, 2, b""), "Uns t e change 2"),
        (pub(1, 1, b"\x03"), "Pub t a:1 for d"),
        (pub(1, 5), "Pub t a#1 a:5"),
        (
            Pub("t", 0, 2, b"", Published(Event("a", 2, "t"), ((1, 3), (4, 1)))),
            "Pub t a:2 after b#3 e#1",
        ),
        (
            Pub("t", 0, 2, b"", Published(Event("a", 3, "t"), ((1, 3),), (("u", ((2, 1),)),))),
            "Pub t a#2 a:3 after b#3 on u after c#1",
        ),
        (Pub("t", 0, 2, b"", None), "Pub t a#2 -"),
        (Ack(3, "t", 0, 2), "Ack Pub t a#2"),
        (
            Ack(0, "t", 0, 2, ((1, 1, 1, 4), (3, 2, 2, 1))),
            "Ack Sub t a change 2, says b change 1 next 4 and d change 2 source next 1",
        ),
        (
            Ack(1, "t", 0, 2, ((1, 4, 1, 4, 3),)),
            "Ack Act t a change 2, says b change 4 next 4 life 3",
        ),
        (Ack(9, "t", 7, 1), "Ack kind 9 t peer 7 change 1"),
        ("else", "else"),
    ],
    ids=str,
)
def test_a_message_in_words(message, words):
    assert told(message) == words


def test_whom_a_copy_is_for_depends_on_its_link():
    """The same bytes are others seen from another peer."""
    assert told(Sub("t", 4, 1, 1, 1, b"\x0f"), "e", "a") == "Sub t e change 1 for b c d"
    assert told(Sub("t", 0, 1, 1, 1, b"\x03"), "a", "c") == "Sub t a change 1 for d"
    assert told(Sub("t", 0, 1, 1, 1, b"\x03"), "c", "a") == "Sub t a change 1 for b"


def test_messages_within_others_are_told_alike():
    assert told(Packet((pub(1, 1), Ack(3, "t", 2, 4)))) == "Pub t a:1 + Ack Pub t c#4"
    assert "Pub t a:1" in told(Frame(1, 1, 1, 0, pub(1, 1), channel="cube"))


def test_messages_of_other_networks_are_told_as_ever():
    published = none.Published(Event("p", 1, "t"))
    assert brief(published) == told(published) == "Published p:1"


def test_a_script_tells_alike_what_flies_is_lost_and_doubled():
    text = "\n".join(
        [
            "clients a b c d topics=t network=cube links=any preset=a,d",
            "subscribe a t", "----", "", "publish a t", "----", "", "flying", "----", "",
            "double a->d", "----", "", "lose a->d", "----", "",
        ]
    )  # fmt: skip
    played = play(text).splitlines()
    for line in ("a->d Pub t a:1", "doubled Pub t a:1", "lost Pub t a:1"):
        assert line in played
