"""Output queues that send one copy at a time, what they count, and delays that belong to a message
and a link."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from inorder.core.errors import BadScenario
from inorder.sim import laws, models
from inorder.sim.memory import Memory
from inorder.sim.network import Reading
from inorder.sim.scenario import parse
from inorder.sim.world import World
from tests.sim.helpers import Puppet, run

STILL = laws.Constant(mean=100.0)


def per_copy(**options: Any) -> models.Packet:
    return models.Packet(1.0, None, STILL, transmission_s=1.0, **options)


# One copy at a time.


def test_a_copy_takes_its_time_whatever_its_size() -> None:
    model, rng = per_copy(), Random("unused")
    assert not model.sized
    arrivals = [model.arrival("a", target, size, 0.0, rng) for target, size in (("b", 9), ("c", 0))]
    assert arrivals == [102.0, 103.0]
    assert model.arrival("b", "c", 5, 0.0, rng) == 102.0, "another node, another queue"
    assert model.arrival("a", "b", 5, 2.0, rng) == 104.0, "ready at 3.0, the second leaves then"
    assert model.arrival("a", "b", 5, 50.0, rng) == 152.0, "nothing is left of the queue"


def test_a_bandwidth_and_a_time_a_copy_add_up() -> None:
    model = models.Packet(0.0, 8.0, STILL, transmission_s=1.0)
    assert model.sized
    assert model.arrival("a", "b", 20, 0.0, Random("unused")) == 121.0


def test_a_scenario_says_how_long_a_copy_takes() -> None:
    law = "{law = 'constant', mean = 10.0}"
    network = f"model = 'packet'\nprocessing = 0.5\ntransmission = 2.0\npropagation = {law}"
    publishers = "count = 1\nrate = 1.0\nbytes = 5000"
    memory, _ = run(
        f"duration = 1.5\nsettle = 100.0\n[network]\n{network}\n[publishers]\n{publishers}\n"
        "[[subscribers]]\ncount = 3\n"
    )
    took = [row.received_at - row.sent_at for row in memory.rows["messages"]]
    assert took == pytest.approx([12.5, 14.5, 16.5])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("transmission = 1.0", "has no meaning without model"),
        ("model = 'wan'\ntransmission = 1.0", "has no meaning without model"),
        ("model = 'packet'\ntransmission = -1.0", "-1 is not between 0 and 1000"),
        ("model = 'packet'\ntransmission = nan", "nan is not between 0 and 1000"),
        ("model = 'packet'\ntransmission = 1.0\nbandwidth = 1e6", "no meaning beside"),
    ],
)
def test_a_time_a_copy_that_cannot_be_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(BadScenario) as caught:
        parse(f"[network]\n{text}")
    assert caught.value.key == "network.transmission"
    assert problem in str(caught.value)


def test_without_either_a_packet_network_has_its_usual_bandwidth() -> None:
    assert parse("[network]\nmodel = 'packet'").network.bits_per_s == 10_000_000.0
    assert parse("[network]\nmodel = 'packet'\nbandwidth = 5.0").network.bits_per_s == 5.0


# What the queues have seen.


def test_nothing_is_counted_unless_asked() -> None:
    model = per_copy()
    model.arrival("a", "b", 0, 0.0, Random("unused"))
    assert model.queues == {}


@given(st.lists(st.integers(0, 40), min_size=1, max_size=40).map(sorted), st.integers(1, 5))
def test_queues_count_what_stands_in_line(instants: list[int], transmission: int) -> None:
    """Against a clock that looks at the line once in every tick."""
    model = models.Packet(1.0, None, STILL, transmission_s=float(transmission), watch=True)
    for at in instants:
        model.arrival("a", "b", 0, float(at), Random("unused"))
    coming = [at + 1 for at in instants]
    line: list[int] = []
    lengths, waits, free, period = [], [], 0, 41 + 5 * len(instants)
    for tick in range(period):
        line += [at for at in coming if at == tick]
        if line and free <= tick:
            waits.append(tick - line.pop(0))
            free = tick + transmission
        lengths.append(len(line))
    queue = model.queues["a"]
    assert len(waits) == queue.copies == len(instants)
    assert queue.mean_wait_s == pytest.approx(sum(waits) / len(waits))
    assert queue.longest_s == max(waits)
    assert queue.mean_length(period) == pytest.approx(sum(lengths) / period)


def test_a_queue_that_has_seen_nothing_has_no_wait() -> None:
    assert models.Queue().mean_wait_s == 0.0


# Delays that belong to the message and the link.


class Named(Struct, frozen=True):
    key: str
    filling: str = ""


class Asked(Struct, frozen=True):
    name: str

    def key(self) -> tuple[str, int]:
        return (self.name, 1)


class Bundle(Struct, frozen=True):
    messages: list[Any]


def drawn(model: models.Model, *copies: tuple[Any, str, str], stream: str = "s") -> list[float]:
    """The delays of some messages, all from one sender's stream."""
    rng = Random(stream)
    delays = []
    for message, source, target in copies:
        if isinstance(model, Reading):
            model.show(message)
        delays.append(model.arrival(source, target, 0, 0.0, rng))
    return delays


def paired(seed: str = "7") -> models.Paired:
    return models.Paired(models.Delay(laws.Normal(mean=100.0, std=25.0)), seed)


def test_a_delay_is_the_messages_own_in_whatever_order_they_are_sent() -> None:
    copies = [(Named(key), "a", target) for key in "xyz" for target in "bc"]
    delays = drawn(paired(), *copies)
    assert len(set(delays)) == 6, "no two messages and no two links share a delay"
    backwards = drawn(paired(), *reversed(copies), (Named("w"), "a", "b"), stream="another")
    assert backwards[:6] == delays[::-1]
    assert drawn(paired("8"), copies[0]) != delays[:1]
    assert drawn(paired(), (Named("x"), "c", "b")) != delays[:1]
    assert drawn(paired(), (Named("x", "other contents"), "a", "b")) == delays[:1]


def test_delays_of_messages_follow_the_law() -> None:
    delays = drawn(paired(), *((Named(str(number)), "a", "b") for number in range(4000)))
    mean = sum(delays) / 4000
    spread = (sum((delay - mean) ** 2 for delay in delays) / 4000) ** 0.5
    assert mean == pytest.approx(100.0, abs=1.6)  # four standard errors
    assert spread == pytest.approx(25.0, abs=1.2)


def test_a_packet_is_known_by_its_first_message() -> None:
    alone, packet, other = Named("x"), Bundle([Named("x"), Named("y")]), Bundle([Named("y")])
    first, second, third = drawn(paired(), *((each, "a", "b") for each in (alone, packet, other)))
    assert first == second != third
    assert models.identity(Bundle([Asked("n")])) == ("n", 1)
    assert models.identity(Bundle([])) is None
    assert models.identity("a word") is None


def test_messages_without_identity_draw_in_turn_from_their_senders_stream() -> None:
    plain = drawn(models.Delay(laws.Normal(mean=100.0, std=25.0)), *[("a word", "a", "b")] * 3)
    assert drawn(paired(), *[("a word", "a", "b")] * 3) == plain
    mixed = drawn(paired(), ("a word", "a", "b"), (Named("x"), "a", "b"), ("a word", "a", "b"))
    assert [mixed[0], mixed[2]] == plain[:2]


def test_a_shown_message_counts_for_one_arrival_only() -> None:
    model, rng = paired(), Random("s")
    model.show(Named("x"))
    model.arrival("a", "b", 0, 0.0, rng)
    again = model.arrival("a", "b", 0, 0.0, rng)
    assert again == drawn(models.Delay(laws.Normal(mean=100.0, std=25.0)), ("", "a", "b"))[0]


def test_a_pair_keeps_what_the_model_asks_of_sizes() -> None:
    assert models.Paired(models.Packet(1.0, 8.0, STILL), "7").sized
    assert not paired().sized


class Listening(models.Ideal):
    """Notes what it is shown, and when it is asked."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def show(self, message: Any) -> None:
        self.seen.append(message)

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        self.seen.append((source, target))
        return now


@pytest.mark.parametrize("loss", [0.0, 1e-9])
def test_a_model_that_reads_is_shown_each_message_before_it_is_asked(loss: float) -> None:
    model = Listening()
    world = World(model, "seed", Memory(), fifo=False)
    world.network.weather.blow(loss=loss)
    for name in "abc":
        world.add(name, Puppet)
    world.network.send("a", "b", "one")
    world.network.send("a", "c", "two")
    world.network.join("c", "t")
    world.network.diffuse("b", "t", "three")
    assert model.seen == ["one", ("a", "b"), "two", ("a", "c"), "three", ("b", "c")]


class Hearing(Puppet):
    """Notes what has an identity, and when it came."""

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[str, float] = {}

    def receive(self, source: str, message: Any, now: float) -> list[Any]:
        if isinstance(message, Named):
            self.at[message.key] = now
        return []


def test_two_worlds_that_send_different_things_draw_the_same_delays() -> None:
    heard = []
    for extra in (False, True):
        world = World(paired(), "seed", Memory(), fifo=False)
        for name in "abc":
            world.add(name, Hearing)
        if extra:
            world.network.send("a", "b", "noise")
            world.network.send("a", "c", Named("more"))
        for key in "xy":
            for target in "bc":
                world.network.send("a", target, Named(key))
        world.agenda.run()
        times = {name: world.nodes[name].machine.at for name in "bc"}
        times["c"].pop("more", None)
        heard.append(times)
    assert [sorted(at) for at in heard[0].values()] == [["x", "y"]] * 2
    assert heard[0] == heard[1]
