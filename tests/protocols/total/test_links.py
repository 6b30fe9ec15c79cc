"""Sessions: once, in order, over links that lose, double and reorder."""

from __future__ import annotations

from random import Random

import pytest

from inorder.core.effect import CancelTimer, Note, Send, SetTimer
from inorder.protocols.total.link import Links
from inorder.protocols.total.messages import Ack, Demand, Frame


def links(**how):
    return Links(0.5, how.pop("trusted", False), how.pop("patient", False))


def frames(effects):
    return [each.message for each in effects if isinstance(each, Send)]


def body(number):
    return Demand((str(number),))


def test_the_receiver_takes_only_the_next_number():
    receiver = links()
    frame = [Frame(0, 0, number, 0, body(number)) for number in range(4)]
    assert not receiver.is_next("x", frame[2])
    assert receiver.is_next("x", frame[1])
    receiver.take("x", frame[1])
    assert not receiver.is_next("x", frame[1]), "a duplicate"
    assert not receiver.is_next("x", frame[3]), "a gap"
    assert receiver.is_next("x", frame[2])


def test_acknowledgements_ride_on_answers_where_they_can():
    receiver = links()
    receiver.take("x", Frame(0, 0, 1, 0, body(1)))
    assert frames(receiver.flush()) == [Ack(0, 0, 1)]
    receiver.take("x", Frame(0, 0, 2, 0, body(2)))
    receiver.post("x", body(9))
    assert frames(receiver.flush()) == [Frame(0, 0, 1, 2, body(9))]


def test_a_quiet_link_has_no_timer():
    sender = links()
    sender.post("x", body(1))
    assert SetTimer("resend/x", 0.5) in sender.flush()
    assert sender.acknowledged("x", Ack(0, 0, 1), 1) == [CancelTimer("resend/x")]
    assert sender.idle
    assert sender.flush() == []


def test_resending_backs_off_and_starts_afresh_after_an_answer():
    sender = links()
    sender.post("x", body(1))
    sender.post("x", body(2))
    sender.flush()
    waits = [effect.after_s for _ in range(7) for effect in sender.fire("x")
             if isinstance(effect, SetTimer)]  # fmt: skip
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]
    assert sender.acknowledged("x", Ack(0, 0, 1), 1) == [SetTimer("resend/x", 0.5)]


def test_a_stage_gives_up_on_a_client_for_ever_silent_but_not_on_a_stage():
    sender = links()
    sender.post("client", body(1), session=1)
    sender.post("stage2", body(1))
    sender.flush()
    for _ in range(64):
        sender.fire("client")
        sender.fire("stage2")
    assert sender.fire("client") == [Note("link_gave_up", "client")]
    assert frames(sender.fire("stage2"))


def test_a_new_life_ends_the_old_session():
    sender = links()
    sender.post("c", body(1), session=1)
    sender.flush()
    assert sender.refusal("c", Frame(0, 0, 1, 0, body(1))) == "old_life"
    sender.acknowledged("c", Ack(2, 0, 0), 0)
    assert sender.idle, "what was on its way to the old life is forgotten"
    sender.post("c", body(2), session=1)
    assert sender.idle, "and so is what comes too late for it"


def test_a_smaller_token_is_refused():
    receiver = links()
    receiver.take("stage2", Frame(0, 3, 1, 0, body(1)))
    assert receiver.refusal("stage2", Frame(0, 2, 2, 0, body(2))) == "fenced"
    assert receiver.refusal("stage2", Ack(0, 2, 2)) == "fenced"
    assert receiver.refusal("stage2", Frame(0, 3, 2, 0, body(2))) == ""


def test_acknowledging_what_was_never_sent_changes_nothing():
    sender = links()
    sender.post("x", body(1))
    sender.flush()
    assert sender.acknowledged("x", Ack(0, 0, 99), 99) == []
    assert not sender.idle


def test_an_overflowing_link_is_cut(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.link.LINK_UNACKED_MAX", 3)
    sender = links()
    for number in range(4):
        sender.post("c", body(number), session=1)
    assert Note("link_cut", "c") in sender.flush()


@pytest.mark.parametrize("seed", range(20))
def test_everything_arrives_once_and_in_order_whatever_the_network_does(seed):
    rng = Random(seed)
    one, other = links(), links()
    ends = {"a": (one, "b"), "b": (other, "a")}
    got: dict[str, list[int]] = {"a": [], "b": []}
    flying: list[tuple[str, object]] = []
    sent = {"a": 0, "b": 0}

    def emit(name, effects):
        for message in frames(effects):
            flying.extend([(ends[name][1], message)] * rng.choice((0, 1, 1, 2)))

    for _ in range(3000):
        name = rng.choice("ab")
        mine, peer = ends[name]
        if sent[name] < 20 and rng.random() < 0.2:
            sent[name] += 1
            mine.post(peer, body(sent[name]))
            emit(name, mine.flush())
        elif flying and rng.random() < 0.9:
            target, message = flying.pop(rng.randrange(len(flying)))
            mine, peer = ends[target]
            if isinstance(message, Ack):
                mine.acknowledged(peer, message, message.number)
            else:
                mine.acknowledged(peer, message, message.ack)
                if mine.is_next(peer, message):
                    mine.take(peer, message)
                    got[target].append(int(message.body.topics[0]))
                elif peer in mine.peers:
                    mine.owe(peer)
                emit(target, mine.flush())
        elif peer in mine.peers:
            emit(name, mine.fire(peer))
    assert got["b"] == list(range(1, sent["a"] + 1))
    assert got["a"] == list(range(1, sent["b"] + 1))
    assert one.idle
    assert other.idle
