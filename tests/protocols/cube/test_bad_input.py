"""What peers and applications must not say: a named error, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from inorder.core import wire
from inorder.core.errors import BadFrame, BadMessage, Misuse, PeerFault, TooLarge
from inorder.core.event import Event
from inorder.core.limits import CUBE_CALLS_MAX, CUBE_PEERS_MAX
from inorder.guarantee import none
from inorder.guarantee.peer import Peered
from inorder.protocols.causal.messages import Published
from inorder.protocols.cube.messages import Ack, Act, Packet, Pub, Sub, Uns
from inorder.protocols.cube.options import Options
from inorder.protocols.cube.peers import Peers
from inorder.protocols.session.messages import Frame
from inorder.sim.pool import Op
from tests.protocols.cube.world import Cube, Drawn, draw

EVENT = Published(Event("b", 1, "t", {"n": 1}))

# Numbers that are none of a peer's, whatever they are meant to count.
NONE = (-1, 0, 2**63, 2**64 - 1)


def cube() -> Cube:
    """a, b and e of five are members."""
    return Cube(["a", "b", "c", "d", "e"], ["t"], 2, "causal", ["a", "b", "e"])


def wrong() -> Iterator[Any]:
    for number in (*NONE, 5, 99):
        if number != 0:
            yield Sub("t", number, 1, 1, 1, b"")
            yield Act("t", number, 1, b"")
            yield Uns("t", number, 1, b"")
            yield Pub("t", number, 1, b"", EVENT)
        if number not in (5, 99):
            yield Sub("t", 2, number, 1, 1, b"")
            yield Sub("t", 2, 1, 1, number, b"")
            yield Act("t", 2, number, b"")
            yield Uns("t", 1, number, b"")
            yield Pub("t", 1, number, b"", EVENT)
        yield Sub("t", 2, 1, number, 1, b"")
    # From d to a two dimensions are left: a part is a bitmap of one byte, the lowest bit set.
    for to in (b"\x00", b"\x02", b"\x10", b"\xff", b"\x03\x00", b"x" * 40):
        yield Sub("t", 2, 1, 1, 1, to)
        yield Act("t", 2, 1, to)
        yield Uns("t", 1, 2, to)
        yield Pub("t", 1, 1, to, EVENT)
    # Of oneself.
    yield Sub("t", 0, 2, 1, 1, b"")
    yield Pub("t", 0, 1, b"", EVENT)


def refused(peer: Peered, source: str, message: Any) -> str:
    before = peer.snapshot()
    with pytest.raises(BadMessage) as raised:
        peer.receive(source, message, 0.0)
    assert raised.value.source == source
    assert peer.snapshot() == before
    assert peer.receive("b", Ack(3, "t", 0, 7), 0.0) == [], "nothing is left of it"
    return raised.value.problem


@pytest.mark.parametrize("message", [*wrong()], ids=str)
def test_a_message_that_cannot_be_is_refused(message):
    refused(cube().peer("a"), "d", message)


def test_a_part_may_not_address_peers_that_do_not_exist():
    """Of five peers the sub-cube of four behind e has one: b"\\x03" at e means peer 5."""
    made = cube()
    for message in (Sub("t", 2, 1, 1, 1, b"\x03"), Pub("t", 1, 1, b"\x03", EVENT)):
        assert "addresses peer 5" in refused(made.peer("e"), "a", message)
    assert made.peer("e").receive("a", Pub("t", 1, 1, b"", EVENT), 0.0)


def test_only_peers_speak_to_peers_and_nobody_to_himself():
    for message in (Sub("t", 2, 1, 1, 1, b""), Pub("t", 1, 1, b"", EVENT), Ack(3, "t", 0, 1)):
        for source in ("a", "zz", ""):
            refused(cube().peer("a"), source, message)


@pytest.mark.parametrize(
    "standing", [(9, 1, 1, 1), (-1, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 3, 1),
                 (1, 1, 1, 0), (1, 2**63, 1, 1), (1, 1, 1, 2**63)],
)  # fmt: skip
def test_an_answer_that_says_nonsense_of_a_peer_is_refused(standing):
    made = cube()
    peer = made.peer("c")
    made.perform("c", Op("subscribe", ("t",)))
    child = next(target for source, target in made.links if source == "c")
    before = peer.snapshot()
    with pytest.raises(BadMessage, match="of a peer"):
        peer.receive(child, Ack(0, "t", 2, 1, (standing,)), 0.0)
    assert peer.snapshot() == before


def test_acknowledgements_of_nothing_are_passed_over():
    """They may have come before; a link may double them."""
    peer = cube().peer("a")
    before = peer.snapshot()
    for ack in (Ack(3, "t", 0, 1), Ack(0, "t", 4, 2), Ack(7, "t", 0, 1), Ack(3, "nowhere", 0, 1)):
        assert peer.receive("b", ack, 0.0) == []
    assert peer.snapshot() == before


@pytest.mark.parametrize(
    "body",
    [
        Published(Event("b", 1, "t"), ((1, 1),)),  # rests on itself
        Published(Event("b", 1, "t"), ((1, 7),)),  # on a later one of its own publisher
        Published(Event("b", 1, "t"), ((2, 1), (0, 1))),  # origins do not grow
        Published(Event("b", 1, "t"), ((0, 0),)),
        Published(Event("c", 1, "t")),  # of somebody else
        Published(Event("b", 1, "u")),
        none.Published(Event("b", 1, "t")),
    ],
    ids=str,
)
def test_what_the_machine_inside_refuses_is_passed_on_and_not_handed_over(body):
    """A peer on the way would not see it either. The machine inside is left as it was."""
    made = cube()
    peer = made.peer("e")
    inner = peer.inner.snapshot()
    effects = peer.receive("b", Pub("t", 1, 1, b"", body), 0.0)
    assert [type(effect).__name__ for effect in effects] == ["Send", "Note"]
    assert effects[1].mark == "bad_frame"
    assert peer.inner.snapshot() == inner
    assert Peered.restore(peer.snapshot()).snapshot() == peer.snapshot()


def test_what_came_early_and_is_refused_does_not_stop_a_joining():
    made = Cube(["a", "b", "c"], ["t"], 1, "causal", ["b"])
    made.perform("c", Op("subscribe", ("t",)))
    peer = made.peer("c")
    told = Published(Event("b", 1, "t"), ((1, 7),))
    while steps := made.steps():
        if peer._topics["t"].phase == "act" and not peer._topics["t"].early:
            peer.receive("b", Pub("t", 1, 1, b"", told), 0.0)
        made.take(steps[0])
    assert made.judge.members("t") == {"b", "c"}
    assert made.seen_marks == {"bad_frame": 1}


# Applications.


def test_an_application_is_told_what_it_must_not_ask():
    made = cube()
    peer = made.peer("a")
    before = peer.snapshot()
    for ask in (
        lambda: peer.subscribe("a/2", ["t"], 0.0),
        lambda: peer.unsubscribe("a/2", ["u"], 0.0),
        lambda: peer.joined("t", 0.0),
    ):
        with pytest.raises(Misuse):
            ask()
        assert peer.snapshot() == before


def test_a_topic_may_be_asked_for_twice_before_it_is_there():
    """Each call is answered, and there is one joining."""
    made = Cube(["a", "b", "c", "d"], ["t"], 1, "causal", ["a"])
    for _ in range(2):
        made.perform("c", Op("subscribe", ("t",)))
    while steps := made.steps():
        made.take(steps[0])
    made.finish()
    assert made.judge.members("t") == {"a", "c"}
    assert made.peer("c")._topics["t"].change == 1


def test_calls_that_wait_are_bounded(monkeypatch):
    monkeypatch.setattr("inorder.protocols.cube.peer.CUBE_CALLS_MAX", 3)
    assert CUBE_CALLS_MAX > 3
    peer = cube().peer("a")
    for number in range(5):
        peer.publish("t", {"n": number}, 0.0)
    before = peer.snapshot()
    with pytest.raises(TooLarge) as raised:
        peer.publish("t", {"n": 6}, 0.0)
    assert (raised.value.size, raised.value.limit) == (4, 3)
    assert peer.snapshot() == before


def test_a_publication_that_its_client_refuses_is_answered_and_the_next_one_goes(monkeypatch):
    made = cube()
    client = made.peer("a").inner
    real: Callable[..., Any] = type(client).publish

    def publish(self: Any, topic: str, value: dict[str, Any], now: float) -> Any:
        if value["n"] == 3:
            raise TooLarge("causes of an event", 2, 1)
        return real(self, topic, value, now)

    monkeypatch.setattr(type(client), "publish", publish)
    peer = made.peer("a")
    for number in (1, 2, 3, 4):
        peer.publish("t", {"n": number}, 0.0)
    effects = [
        effect
        for number in (1, 2)
        for child in ("b", "e")
        for effect in peer.receive(child, Ack(3, "t", 0, number), 0.0)
    ]
    answers = [(e.call, e.outcome) for e in effects if type(e).__name__ == "Answer"]
    assert answers == [("a:1", "accepted"), ("a/publish/3", "refused"), ("a:2", "accepted")]
    assert [e.event.id for e in effects if type(e).__name__ == "Launched"] == ["a:3"]


def test_names_of_peers_are_few_enough_and_different():
    with pytest.raises(TooLarge):
        Peers(str(number) for number in range(CUBE_PEERS_MAX + 1))
    with pytest.raises(Misuse):
        Peers(["a", "b", "a"])


# Frames.


def frames() -> tuple[Drawn, list[tuple[str, str, bytes]]]:
    """A run in the middle, and all that was said so far."""
    said = []

    class Listening(Drawn):
        def _send(self, node: str, target: str, message: Any) -> None:
            said.append((node, target, wire.encode(message)))
            super()._send(node, target, message)

    drawn = Listening(draw(3, counts=(9,), window=2))
    while drawn.flight and len(said) < 150:
        drawn.step()
    return drawn, said


def mutated(frame: bytes, rng: Random) -> bytes:
    data = bytearray(frame)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place] = rng.randrange(256)
        elif kind == 2 and len(data) > 1:
            del data[place]
        else:
            data.insert(place, rng.randrange(256))
    return bytes(data)


def test_mutated_frames_are_refused_or_make_sense():
    drawn, said = frames()
    kinds = Sub | Act | Uns | Pub[Published] | Ack | Packet[Published]
    decoder = wire.Decoder(kinds)
    rng = Random("frames")
    outcomes = {"frame": 0, "message": 0, "taken": 0}
    for _ in range(6000):
        source, target, frame = rng.choice(said)
        peer = Peered.restore(drawn.machines[target].snapshot())
        before = peer.snapshot()
        try:
            peer.receive(source, decoder.decode(mutated(frame, rng)), 0.0)
            outcomes["taken"] += 1
        except BadFrame:
            outcomes["frame"] += 1
        except PeerFault:
            outcomes["message"] += 1
            assert peer.snapshot() == before
        assert Peered.restore(peer.snapshot()).snapshot() == peer.snapshot()
    assert min(outcomes.values()) > 30, outcomes


def test_a_bad_message_in_a_session_counts_as_taken():
    """Or the session would stand still for ever."""
    options = Options(links="sessions")
    peers = Peers(["a", "b"])
    order = cube().order
    one, other = (Peered(name, peers, options, order) for name in peers.names)
    body = Sub("t", 7, 1, 1, 1, b"")
    other._trees.links.post("a", body)
    sent = [effect.message for effect in other._done(0.0) if type(effect).__name__ == "Send"]
    assert [type(message) for message in sent] == [Frame]
    effects = one.receive("b", sent[0], 0.0)
    assert [e.mark for e in effects if type(e).__name__ == "Note"] == ["bad_frame"]
    for source in ("a", "zz"):
        refused_frame(one, source, sent[0])
    refused(cube().peer("a"), "b", sent[0])


def refused_frame(peer: Peered, source: str, frame: Any) -> None:
    before = peer.snapshot()
    with pytest.raises(BadMessage):
        peer.receive(source, frame, 0.0)
    assert peer.snapshot() == before


def test_bare_messages_are_nothing_for_a_peer_with_sessions():
    options = Options(links="sessions")
    peer = Peered("a", Peers(["a", "b"]), options, cube().order)
    refused_frame(peer, "b", Sub("t", 1, 1, 1, 1, b""))
