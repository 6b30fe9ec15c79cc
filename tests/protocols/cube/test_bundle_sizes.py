"""What fits into a packet, and how long anything waits for company."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core import wire
from inorder.core.event import Event
from inorder.protocols.causal.messages import Published
from inorder.protocols.cube.buffers import ADAPT_PACKETS, TAU_PARTS, Buffer, Buffers
from inorder.protocols.cube.messages import Ack, Packet, Pub
from inorder.protocols.cube.sizes import WIRE, packed, sent_as
from inorder.protocols.session.messages import Frame
from tests.protocols.cube.lockstep import Static


class Given:
    """A message counts for the letters of its topic."""

    header = 20

    def of(self, message):
        return len(message.topic)


def message(size, number=1):
    return Ack(3, "x" * size, 0, number)


def sizes(packets):
    return [[len(each.topic) for each in packet] for packet in packets]


# Packets.


def test_a_packet_may_be_exactly_as_large_as_the_mtu():
    """Scenario 17: 20 bytes of header, and 1480, 1481 or more."""
    whole = [message(740), message(740)]
    assert sizes(packed(whole, Given(), 1500)) == [[740, 740]]
    larger = [message(740), message(741)]
    assert sizes(packed(larger, Given(), 1500)) == [[740], [741]]


def test_a_message_that_is_too_large_leaves_alone():
    some = [message(10), message(1481), message(10), message(1480), message(5)]
    assert sizes(packed(some, Given(), 1500)) == [[10], [1481], [10], [1480], [5]]


@given(st.lists(st.integers(1, 400), max_size=40), st.integers(100, 600))
def test_messages_are_packed_greedily_and_in_order(numbers, mtu):
    packets = sizes(packed([message(number) for number in numbers], Given(), mtu))
    assert [each for packet in packets for each in packet] == numbers
    for packet, following in pairwise(packets):
        assert 20 + sum(packet) + following[0] > mtu
    assert all(len(packet) == 1 or 20 + sum(packet) <= mtu for packet in packets)
    assert all(packets)


def test_one_message_needs_no_packet():
    one, other = message(1), message(2)
    assert sent_as([one]) is one
    assert sent_as([one, other]) == Packet((one, other))


@given(st.integers(2, 60), st.integers(0, 200))
def test_the_header_has_room_for_what_is_around_a_packet(count, body):
    text = Published(Event("publisher", 10**6, "topic", {"body": "x" * body}), ((1, 2), (3, 4)))
    pubs = [Pub("topic", 4000, number, b"123", text) for number in range(count)]
    most = 2**31
    frame = Frame(most, most, most, most, sent_as(pubs), ((most, most),), "cube")
    udp_and_ip = 28
    assert wire.size(frame) + udp_and_ip <= WIRE.header + sum(map(WIRE.of, pubs))


def test_packets_of_peers_keep_the_mtu_whatever_is_in_them():
    """S8, end to end: 59 messages are held for the same children, and then the first comes."""
    network = Static(8, aggregate="causal", mtu=700)
    for _ in range(60):
        network.publish(2)
    toward = [each for each in network.flight if each[1] == 6]
    network.flight = [*toward[1:], toward[0]]
    for _ in range(59):
        network.arrive(0)
    assert not [each for each in network.packets if each[0] == 6]
    network.arrive(0)
    for target in (4, 7):
        sent = [pubs for source, to, pubs in network.packets if (source, to) == (6, target)]
        assert [number for pubs in sent for _, number in pubs] == list(range(1, 61))
    assert len(sent) > 1
    for _, _, each in network.flight:
        assert WIRE.header + sum(map(WIRE.of, getattr(each, "messages", (each,)))) <= 700


# Buffers.


class Clock:
    """Buffers under virtual time: their timers run out when they are due, and what leaves when is
    noted."""

    def __init__(self, **chosen):
        given = {"mtu": 1500, "tau": 1.0, "adapts": False, "sizes": Given(), **chosen}
        self.buffers = Buffers(**given)
        self.now = 0.0
        self.timers = {}
        self.left = []
        self.put_at = {}
        self.numbers = 0

    def put(self, peer, size=10, times=1):
        for _ in range(times):
            self.numbers += 1
            self.put_at[self.numbers] = self.now
            self.buffers.put(peer, message(size, self.numbers), self.now)

    def finish(self, *hurried):
        for peer, packet in self.buffers.finish(hurried, self.now):
            self.left.append((self.now, peer, [each.number for each in packet]))
        for peer, after_s in self.buffers.timers(self.now):
            assert after_s is None or after_s >= 0.0
            if after_s is None:
                del self.timers[peer]
            else:
                self.timers[peer] = self.now + after_s

    def wait(self, seconds):
        until = self.now + seconds
        while self.timers and min(self.timers.values()) <= until:
            self.now, peer = min((at, peer) for peer, at in self.timers.items())
            del self.timers[peer]
            self.buffers.hurry(peer)
            self.finish(peer)
        self.now = until

    def waits(self):
        return [at - self.put_at[number] for at, _, packet in self.left for number in packet]


def test_a_timer_runs_from_the_first_message():
    clock = Clock()
    clock.put(5)
    clock.finish()
    clock.wait(0.4)
    clock.put(5)
    clock.finish()
    assert clock.timers == {5: 1.0}
    clock.wait(10.0)
    assert clock.left == [(1.0, 5, [1, 2])]


def test_a_full_packet_leaves_and_the_timer_is_moved_to_what_is_left():
    clock = Clock(mtu=100)
    clock.put(5, 30, times=2)
    clock.finish()
    clock.wait(0.5)
    clock.put(5, 30)
    clock.finish()
    assert clock.left == [(0.5, 5, [1, 2])]
    assert clock.timers == {5: 1.5}
    # Exactly full: nothing is left, and no timer runs.
    clock.put(5, 50)
    clock.finish()
    assert clock.left[1:] == [(0.5, 5, [3, 4])]
    assert clock.timers == {}


def test_what_is_hurried_leaves_with_everything_that_waits():
    clock = Clock()
    clock.put(5)
    clock.put(6)
    clock.finish()
    clock.wait(0.25)
    clock.put(5)
    clock.finish(5)
    assert clock.left == [(0.25, 5, [1, 3])]
    assert clock.timers == {6: 1.0}


def test_with_tau_0_everything_leaves_with_its_input_and_no_timer_is_set():
    clock = Clock(tau=0.0, mtu=100)
    clock.put(5, 30, times=5)
    clock.put(6)
    clock.finish()
    assert clock.left == [(0.0, 5, [1, 2]), (0.0, 5, [3, 4]), (0.0, 5, [5]), (0.0, 6, [6])]
    assert clock.timers == {}
    assert clock.buffers.counts == {
        "packets": 4, "packets_several": 2, "packed": 6, "packets_full": 2,
    }  # fmt: skip


def test_a_late_timer_does_not_make_a_message_wait_longer_than_it_must():
    """A machine whose clock has gone on sends what is due with the next input."""
    clock = Clock()
    clock.put(5)
    clock.finish()
    clock.now = 1.0
    clock.put(5)
    clock.finish()
    assert clock.left == [(1.0, 5, [1, 2])]


steps = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 90), st.floats(0.0, 0.7), st.booleans()),
    max_size=60,
)


@given(steps, st.booleans(), st.booleans())
def test_nothing_waits_longer_than_tau_and_nothing_is_lost(steps, adapts, busy):
    clock = Clock(mtu=150, adapts=adapts)
    clock.buffers.queue = busy
    for peer, size, pause, hurried in steps:
        clock.put(peer, size)
        clock.finish(*([peer] if hurried else []))
        assert all(clock.buffers._bytes.get(each, 0) < 150 for each in range(3))
        clock.wait(pause)
    clock.wait(2.0)
    assert clock.buffers.idle
    assert all(wait <= 1.0 + 1e-9 for wait in clock.waits())
    numbers = [number for _, _, packet in clock.left for number in packet]
    assert sorted(numbers) == list(range(1, len(steps) + 1))
    for peer in range(3):
        own = [number for _, to, packet in clock.left if to == peer for number in packet]
        assert own == sorted(own)


def tau_after(*packets, queue, tau=1.0):
    """What a peer's tau has become after packets of so many messages."""
    clock = Clock(adapts=True)
    clock.buffers.queue = queue
    clock.buffers._buffers[5] = Buffer(tau)
    for count in packets:
        clock.put(5, times=count)
        clock.finish(5)
    return clock.buffers._buffers[5].tau


def test_an_adaptive_tau_is_halved_while_the_queue_is_empty():
    assert tau_after(*[1] * (ADAPT_PACKETS - 1), queue=False) == 1.0
    assert tau_after(*[1] * ADAPT_PACKETS, queue=False) == 0.5
    assert tau_after(*[5] * ADAPT_PACKETS, queue=False) == 0.5
    assert tau_after(*[1] * ADAPT_PACKETS * 20, queue=False) == 1.0 / TAU_PARTS


def test_an_adaptive_tau_is_doubled_while_packets_are_almost_empty_in_a_full_queue():
    assert tau_after(*[1] * ADAPT_PACKETS, queue=True, tau=0.25) == 0.5
    assert tau_after(*[1, 2] * (ADAPT_PACKETS // 2), queue=True, tau=0.25) == 0.5
    assert tau_after(*[2] * ADAPT_PACKETS, queue=True, tau=0.25) == 0.25
    # The count begins again each time.
    some = [1] * ADAPT_PACKETS + [3] * (ADAPT_PACKETS - 1)
    assert tau_after(*some, queue=True, tau=0.25) == 0.5


def test_an_adaptive_tau_never_becomes_larger_than_what_was_given():
    assert tau_after(*[1] * ADAPT_PACKETS * 5, queue=True, tau=0.25) == 1.0


def test_without_adapting_tau_stays():
    clock = Clock()
    for _ in range(50):
        clock.put(5)
        clock.finish(5)
    assert clock.buffers._buffers[5].tau == 1.0


def test_an_adaptive_tau_is_what_the_timer_runs_for():
    clock = Clock(adapts=True)
    for _ in range(ADAPT_PACKETS):
        clock.put(5)
        clock.finish(5)
    clock.put(5)
    clock.finish()
    assert clock.timers == {5: 0.5}


def test_nothing_goes_to_a_peer_that_was_dropped():
    clock = Clock(mtu=100)
    clock.put(5, 50)
    clock.put(6, 50)
    clock.finish()
    clock.put(5, 50)
    clock.put(5, 50)
    clock.buffers.drop(5)
    clock.finish()
    assert clock.left == []
    clock.wait(3.0)
    assert clock.left == [(1.0, 6, [2])]


def test_equal_buffers_have_equal_snapshots():
    used, fresh = Clock(), Clock()
    used.put(5)
    used.finish()
    used.wait(1.0)
    assert used.buffers.packed() == fresh.buffers.packed()
    used.put(7)
    used.put(6)
    used.finish()
    fresh.now = 1.0
    fresh.put(6, 10)
    fresh.finish()
    fresh.put(7, 10)
    fresh.finish()
    rows = [[peer for peer, _ in each.buffers.packed().buffers] for each in (used, fresh)]
    assert rows == [[6, 7], [6, 7]]


def test_restored_buffers_know_how_full_they_are():
    clock = Clock(mtu=100)
    clock.put(5, 50)
    clock.finish()
    state = clock.buffers.packed()
    clock.buffers = Buffers(100, 1.0, False, Given())
    clock.buffers.become(state)
    clock.put(5, 50)
    clock.finish()
    assert clock.left == [(0.0, 5, [1])]


@pytest.mark.parametrize("several", [1, 3])
def test_packets_and_messages_are_counted(several):
    clock = Clock()
    clock.put(5, times=several)
    clock.finish(5)
    counts = clock.buffers.counts
    assert counts["packets"] == 1
    assert counts["packed"] == several
    assert counts["packets_several"] == (several > 1)
    assert counts["packets_full"] == 0
