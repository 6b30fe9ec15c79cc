"""What each hop of a publication costs: steps and memory that are counted, not timed."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.core.effect import Send, SetTimer
from inorder.core.event import Event
from inorder.guarantee.none import Published
from inorder.guarantee.peer import Peered, order_of
from inorder.guarantee.registry import guarantee
from inorder.protocols.cube.messages import PUB, Ack, Pub
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.parts import encode
from inorder.protocols.cube.peers import Peers
from inorder.protocols.session.messages import Ack as SessionAck
from inorder.protocols.session.messages import Frame
from inorder.sim.cube import preset

NAMES = tuple(f"n{number}" for number in range(8))

# CPython 3.11 keeps the names of attributes once for a class, unless an instance has more than
# these: then each peer has a table of its own, and each hop took an eighth longer.
ATTRIBUTES_MAX = 29


def peers_with(options: Options) -> list[Any]:
    ordered = guarantee("none")
    order = order_of(ordered, ordered.options(), ("t",))
    known = Peers(NAMES)
    peers = [Peered(name, known, options, order) for name in NAMES]
    preset(peers, ("t",), NAMES)
    for peer in peers:
        peer.subscribe(f"{peer.name}/1", ("t",), 0.0)
    return peers


@pytest.mark.parametrize(
    "options",
    [
        Options(links="trusted"),
        Options(links="trusted", aggregate="hybrid"),
        Options(),
        Options(detection=True),
    ],
)
def test_peers_share_the_names_of_their_attributes(options):
    peers = peers_with(options)
    peers += [Peered.restore(peer.snapshot()) for peer in peers]
    for peer in peers:
        assert len(vars(peer)) <= ATTRIBUTES_MAX
        assert len(vars(peer._trees)) <= ATTRIBUTES_MAX


def test_all_peers_share_the_table_of_what_is_done_with_messages():
    one, other, *_ = peers_with(Options(links="trusted"))
    watched = peers_with(Options(detection=True))[0]
    assert one._on is other._on
    assert set(one._on) < set(watched._on)


def a_pub(number: int, part: bytes) -> Pub[Published]:
    return Pub("t", 1, number, part, Published(Event("n1", number, "t", {})))


def test_a_copy_for_nobody_else_is_acknowledged_and_leaves_nothing_behind():
    peer = peers_with(Options(links="trusted"))[0]
    for number in (1, 2):
        sent, *_ = peer.receive("n1", a_pub(number, b""), 0.0)
        assert sent == Send("n1", Ack(PUB, "t", 1, number))
        assert peer.idle
    again, note = peer.receive("n1", a_pub(2, b""), 0.0)
    assert (again, note.mark) == (Send("n1", Ack(PUB, "t", 1, 2)), "duplicate")


def test_the_copy_for_the_largest_part_leaves_first_and_the_wave_is_noted():
    peer = peers_with(Options(links="trusted"))[0]
    pub = Pub("t", 4, 1, encode(0b1111, 2), Published(Event("n4", 1, "t", {})))
    first, second, _ = peer.receive("n4", pub, 0.0)
    assert (first.target, second.target) == ("n2", "n1")
    assert (first.message.to, second.message.to) == (encode(0b11, 1), b"")
    assert not peer.idle
    assert peer.receive("n1", Ack(PUB, "t", 4, 1), 0.0) == []
    assert peer.receive("n2", Ack(PUB, "t", 4, 1), 0.0) == [Send("n4", Ack(PUB, "t", 4, 1))]
    assert peer.idle


def test_an_acknowledgement_says_which_copy_it_is_for():
    peer = peers_with(Options(links="trusted"))[0]
    copy = Pub("t", 1, 1, b"", Published(Event("n1", 1, "t", {})), 1, 0, 3)
    sent, *_ = peer.receive("n1", copy, 0.0)
    assert sent == Send("n1", Ack(PUB, "t", 1, 1, (), 3))


def test_an_acknowledgement_waits_for_company_where_peers_bundle():
    peer = peers_with(Options(links="trusted", aggregate="timer", tau=0.5))[0]
    effects = peer.receive("n1", a_pub(1, b""), 0.0)
    assert not [each for each in effects if isinstance(each, Send)]
    (timer,) = [each for each in effects if isinstance(each, SetTimer)]
    (sent,) = peer.fire(timer.name, timer.after_s)
    assert sent == Send("n1", Ack(PUB, "t", 1, 1))


def test_an_acknowledgement_is_said_in_the_session_where_there_is_one():
    one, other, *_ = peers_with(Options())
    said = other.publish("t", {}, 0.0)
    (frame,) = [each.message for each in said if isinstance(each, Send) and each.target == one.name]
    sent = [each for each in one.receive(other.name, frame, 0.0) if isinstance(each, Send)]
    assert sent
    assert all(isinstance(each.message, Frame | SessionAck) for each in sent)
