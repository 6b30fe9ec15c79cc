"""The words everything else is made of: events, errors, the wire, the registry, none."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import pkgutil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inorder
from inorder.core import wire
from inorder.core.effect import Answer, Deliver, Diffuse, Join, Leave, Persist
from inorder.core.errors import BadFrame, Misuse, TooLarge, UnknownName
from inorder.core.event import Event
from inorder.core.machine import Durable
from inorder.core.member import SEQ_BLOCK
from inorder.guarantee.none import Client, Published
from inorder.guarantee.registry import GUARANTEES, guarantee

MODULES = [
    module.name
    for module in pkgutil.walk_packages(inorder.__path__, "inorder.")
    if "pyspark" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name):
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


def test_a_frame_comes_back_as_its_message():
    message = Published(Event("p", 1, "t", {"a": 1.5, "b": None}, 2.0))
    assert wire.Decoder(Published).decode(wire.encode(message)) == message


def test_equal_messages_have_equal_bytes_whatever_the_order_of_their_attributes():
    one = Published(Event("p", 1, "t", {"a": 1, "b": 2}))
    other = Published(Event("p", 1, "t", {"b": 2, "a": 1}))
    assert wire.encode(one) == wire.encode(other)


@given(st.binary(max_size=64))
def test_rubbish_raises_bad_frame_and_nothing_else(frame):
    with contextlib.suppress(BadFrame):
        wire.Decoder(Published).decode(frame)


@given(st.data())
def test_a_mutated_frame_decodes_or_raises_bad_frame(data):
    frame = bytearray(wire.encode(Published(Event("publisher", 77, "topic", {"key": "wert"}))))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)))
    for mutant in (bytes(frame), bytes(frame[:cut])):
        try:
            message = wire.Decoder(Published).decode(mutant)
        except BadFrame:
            continue
        assert isinstance(message, Published)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_frame_limit_is_exact(monkeypatch, over):
    message = Published(Event("p", 1, "t", {"body": "x" * 100}))
    size = wire.size(message)
    monkeypatch.setattr("inorder.core.wire.FRAME_BYTES_MAX", size - over)
    if over > 0:
        with pytest.raises(TooLarge) as caught:
            wire.encode(message)
        assert (caught.value.size, caught.value.limit) == (size, size - 1)
    else:
        assert len(wire.encode(message)) == size


def test_an_unknown_guarantee_names_those_there_are():
    with pytest.raises(UnknownName, match="unknown guarantee 'luck'; known: causal, f") as caught:
        guarantee("luck")
    assert caught.value.known == sorted(GUARANTEES)


def test_events_are_frozen():
    with pytest.raises(AttributeError):
        Event("p", 1, "t").seq = 2  # type: ignore[misc]


# none, the smallest machine.


def test_none_delivers_what_comes_as_it_comes():
    client = Client("s")
    assert client.subscribe("c", ["t"], 0.0) == [Join("t")]
    early = client.receive("p", Published(Event("p", 1, "t")), 0.0)
    assert early == [], "nothing before the subscription is complete"
    assert client.joined("t", 0.0) == [Answer("c", "done")]
    for seq in (2, 1, 1):
        event = Event("p", seq, "t")
        assert client.receive("p", Published(event), 0.0) == [Deliver(event)]
    assert client.unsubscribe("d", ["t"], 0.0) == [Leave("t"), Answer("d", "done")]
    assert client.receive("p", Published(Event("p", 3, "t")), 0.0) == []


def test_none_reserves_numbers_before_it_uses_them():
    client = Client("p")
    first, *rest = client.publish("t", {}, 1.0)
    assert isinstance(first, Persist)
    assert rest == [Diffuse("t", Published(Event("p", 1, "t", {}, 1.0))), Answer("p:1", "accepted")]
    assert not any(isinstance(effect, Persist) for effect in client.publish("t", {}, 1.0))
    reborn = Client("p")
    reborn.replay(first.record)
    assert reborn.resume(0.0) == []
    assert reborn.next_seq == SEQ_BLOCK + 1
    assert isinstance(client, Durable)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda client: client.subscribe("x", [], 0.0),
        lambda client: client.subscribe("x", ["t"], 0.0),
        lambda client: client.unsubscribe("x", ["u"], 0.0),
        lambda client: client.subscribe("x", [f"t{n}" for n in range(20_000)], 0.0),
    ],
)
def test_misuse_raises_and_changes_nothing(misuse):
    client = Client("s")
    client.subscribe("c", ["t"], 0.0)
    client.joined("t", 0.0)
    before = client.snapshot()
    with pytest.raises(Misuse):
        misuse(client)
    assert client.snapshot() == before


def test_a_restored_machine_goes_on_where_the_snapshot_was_taken():
    client = Client("s")
    client.subscribe("c", ["t", "u"], 0.0)
    client.joined("t", 0.0)
    client.publish("t", {}, 0.0)
    twin = Client.restore(client.snapshot())
    assert twin.snapshot() == client.snapshot()
    assert twin.joined("u", 0.0) == client.joined("u", 0.0) == [Answer("c", "done")]
    assert twin.publish("t", {}, 1.0) == client.publish("t", {}, 1.0)
    with pytest.raises(BadFrame):
        Client.restore(msgspec.msgpack.encode("rubbish"))
