"""The client: strict at the instant of delivery, all or nothing, one message."""

from __future__ import annotations

import pytest

from inorder.content.client import Client, Handed
from inorder.content.messages import Adv, Attach, Err, Installed, Pub, Replace, Set, Sub, Unsub
from inorder.content.predicate import Predicate
from inorder.core.effect import Answer, CancelTimer, Persist, Send, SetTimer
from inorder.core.errors import BadMessage, Misuse, PredicateError

BELOW = Predicate.parse("price < :x")
PAIR = Predicate.parse("price = :x AND size = :y")
EITHER = Predicate.parse("price = :x OR price = :y")


def connected(**options) -> Client:
    client = Client("c", "b", **options)
    assert client.connect(0.0) == [Send("b", Attach())]
    return client


def subscribed(predicate=BELOW, values=None, **options) -> Client:
    client = connected(**options)
    client.subscribe("t", predicate, values or {"x": 10}, 0.0)
    return client


def messages(effects) -> list:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def sids(client: Client, seq: int, **attributes) -> tuple[int, ...]:
    effects = client.receive("b", Pub("t", "p", seq, attributes), 0.0)
    return effects[0].sids if isinstance(effects[0], Handed) else ()


def test_the_values_of_the_instant_decide():
    client = subscribed()
    assert sids(client, 1, price=9) == (1,)
    client.set(1, {"x": 5}, 0.0)
    assert sids(client, 2, price=9) == ()
    assert client.account() == {"delivered": 1, "spurious": 1}


def test_an_event_that_did_not_match_does_not_match_when_it_comes_again():
    """It would stand behind what was published after it."""
    client = subscribed()
    assert sids(client, 1, price=20) == ()
    client.set(1, {"x": 30}, 0.0)
    assert sids(client, 2, price=20) == (1,)
    assert sids(client, 1, price=20) == ()
    assert client.account() == {"delivered": 1, "spurious": 1, "repeated": 1}


def test_a_pair_of_values_never_mixes():
    client = subscribed(PAIR, {"x": 1, "y": 1})
    client.set(1, {"x": 2, "y": 2}, 0.0)
    assert [sids(client, n, price=p, size=s) for n, (p, s) in
            enumerate([(2, 1), (1, 2), (1, 1), (2, 2)])] == [(), (), (), (1,)]  # fmt: skip


def test_several_values_are_one_message_with_the_forms_that_change():
    client = subscribed(EITHER, {"x": 1, "y": 2})
    assert messages(client.set(1, {"x": 2, "y": 1}, 0.0)) == [Set(1, 2, ((0, (2,)), (1, (1,))))]
    assert messages(client.set(1, {"y": 7}, 0.0)) == [Set(1, 3, ((1, (7,)),))]


@pytest.mark.parametrize("same", [{"x": 10}, {"x": 10.0}, {}])
def test_a_change_that_changes_nothing_says_nothing(same):
    client = subscribed()
    assert client.set(1, same, 0.0) == []
    assert client.version(1) == 1
    assert client.replace(1, Predicate.parse("price < 10"), {}, 0.0) == []


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"y": 1}, "UNKNOWN_PARAMETER"),
        ({"x": "ten"}, "PARAMETER_TYPE"),
        ({"x": None}, "PARAMETER_TYPE"),
        ({"x": float("nan")}, "PARAMETER_TYPE"),
    ],
)
def test_a_refused_change_changes_nothing(values, code):
    client = subscribed()
    before = client.snapshot()
    with pytest.raises(PredicateError) as caught:
        client.set(1, values, 0.0)
    assert caught.value.code == code
    assert client.snapshot() == before
    assert sids(client, 1, price=9) == (1,)


def test_misuse_has_its_codes():
    client = subscribed()
    calls = {
        "UNKNOWN_SUBSCRIPTION": lambda: client.set(7, {"x": 1}, 0.0),
        "DUPLICATE_SUBSCRIPTION": lambda: client.subscribe("t", BELOW, {"x": 1}, 0.0, sid=1),
        "NOT_ADVERTISED": lambda: client.publish("t", {}, 0.0),
        "UNBOUND_PARAMETER": lambda: client.subscribe("t", BELOW, {}, 0.0),
    }
    for code, call in calls.items():
        with pytest.raises(PredicateError) as caught:
            call()
        assert caught.value.code == code
    with pytest.raises(PredicateError):
        client.unsubscribe(2, 0.0)
    with pytest.raises(Misuse):
        Client("c", "b").publish("t", {}, 0.0)


def test_another_structure_is_one_message_and_alike_structures_are_a_value():
    client = subscribed()
    (change,) = messages(client.replace(1, PAIR, {"x": 1, "y": 1}, 0.0))
    assert isinstance(change, Replace)
    (change,) = messages(client.replace(1, Predicate.parse("price = 3 AND size = 1"), {}, 0.0))
    assert change == Set(1, 3, ((0, (3, 1)),))


def test_an_update_from_inside_a_handler_counts_from_the_next_event_on():
    client = subscribed()
    client.subscribe("t", BELOW, {"x": 10}, 0.0)
    # Both subscriptions are decided at one instant; the handler of the first comes afterwards.
    assert sids(client, 1, price=9) == (1, 2)
    client.set(2, {"x": 1}, 0.0)
    assert sids(client, 2, price=9) == (1,)


def test_an_event_that_is_sent_again_is_handed_over_once():
    client = subscribed()
    assert [sids(client, seq, price=1) for seq in (1, 1, 2, 1)] == [(1,), (), (1,), ()]
    assert client.account()["repeated"] == 2


def test_coming_back_says_the_state_and_not_the_change():
    client = subscribed()
    client.advertise("t", 0.0)
    client.disconnect(0.0)
    assert client.set(1, {"x": 3}, 0.0) == []
    attach, sub = messages(client.connect(0.0, edge="b2"))
    assert attach == Attach(("t",), (1,), life=1)
    assert isinstance(sub, Sub)
    assert (sub.version, sub.forms[0][1]) == (2, (3,))
    assert client.installed(1) == 0
    with pytest.raises(BadMessage):
        client.receive("b", Installed(1, 2), 0.0)


def test_installed_grows_and_answers_the_call():
    client = subscribed()
    client.set(1, {"x": 3}, 0.0)
    assert client.receive("b", Installed(1, 1), 0.0) == [Answer("1/1", "done")]
    assert client.installed(1) == 1
    assert client.receive("b", Installed(1, 2), 0.0) == [Answer("1/2", "done")]
    for stray in (Installed(1, 2), Installed(1, 9), Installed(5, 1)):
        assert client.receive("b", stray, 0.0) == []
    assert client.installed(1) == 2


def test_break_takes_back_first_and_make_afterwards():
    old, new = messages(subscribed(mode="break").set(1, {"x": 3}, 0.0))
    assert (old, type(new), new.sid, new.version) == (Unsub(1, 2), Sub, 2, 2)
    client = subscribed(mode="make", patience=5.0)
    made, timer = client.set(1, {"x": 3}, 0.0)
    assert (type(made.message), timer) == (Sub, SetTimer("outdated/1", 5.0))
    newer = messages(client.set(1, {"x": 4}, 0.0))[0]
    assert client.receive("b", Installed(2, 2), 0.0) == []  # for a version that is over itself
    effects = client.receive("b", Installed(newer.sid, 3), 0.0)
    assert messages(effects) == [Unsub(1, 3), Unsub(2, 3)]
    assert CancelTimer("outdated/1") in effects
    client.set(1, {"x": 9}, 0.0)
    assert messages(client.fire("outdated/1", 9.0)) == [Unsub(3, 4)]
    assert client.fire("outdated/1", 9.0) == []


def test_make_waits_for_the_timer_or_for_its_own_end():
    client = subscribed(mode="make")
    client.set(1, {"x": 3}, 0.0)
    assert messages(client.unsubscribe(1, 0.0)) == [Unsub(1, 3), Unsub(2, 3)]
    assert client.fire("outdated/1", 9.0) == []


def test_publishing_numbers_events_and_never_twice():
    client = connected()
    assert client.advertise("t", 0.0) == [Send("b", Adv("t", True))]
    assert client.advertise("t", 0.0) == []
    record, first = client.publish("t", {"a": 1, "b": [2], "c": float("nan"), "d": None}, 0.0)
    assert isinstance(record, Persist)
    assert first.message == Pub("t", "c", 1, {"a": 1})
    assert client.account()["attributes_dropped"] == 2
    reborn = connected(auto_advertise=True)
    reborn.replay(record.record)
    assert messages(reborn.publish("t", {}, 0.0))[1].seq == 1001


def test_a_refusal_of_the_edge_ends_the_call():
    client = subscribed()
    refused = client.receive("b", Err(1, 1, "TOO_MANY_SUBSCRIPTIONS", "is too much"), 0.0)
    assert refused == [Answer("1/1", "refused", "TOO_MANY_SUBSCRIPTIONS: is too much")]
    refused = client.receive("b", Err(0, 4, "NOT_ADVERTISED", "no"), 0.0)
    assert refused == [Answer("c:4", "refused", "NOT_ADVERTISED: no")]


def test_a_restored_client_is_the_same_client():
    client = subscribed(EITHER, {"x": 1, "y": 2}, mode="make")
    client.subscribe("u", Predicate.parse("n > :n", {"n": "int"}), {"n": 3}, 0.0, sid=40)
    client.set(1, {"x": 5}, 0.0)
    sids(client, 1, price=5)
    twin = Client.restore(client.snapshot())
    assert twin.snapshot() == client.snapshot()
    assert twin.sids == (1, 40)
    for machine in (client, twin):
        assert [sids(machine, seq, price=5) for seq in (1, 2)] == [(), (1,)]
    assert client.set(40, {"n": 4}, 0.0) == twin.set(40, {"n": 4}, 0.0)
    assert client.receive("b", Installed(2, 2), 0.0) == twin.receive("b", Installed(2, 2), 0.0)


def test_a_thousand_updates_between_two_events():
    client = subscribed()
    for limit in range(1000, 0, -1):
        client.set(1, {"x": limit}, 0.0)
    assert client.version(1) == 1001
    assert (sids(client, 1, price=1), sids(client, 2, price=0)) == ((), (1,))
