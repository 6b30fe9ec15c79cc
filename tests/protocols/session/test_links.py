"""Sessions: once, in order, over links that lose, double and reorder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.effect import CancelTimer, Note, SetTimer
from inorder.core.pack import pack, unpacker
from inorder.core.wire import size
from inorder.protocols.session.book import Sessions, durable
from inorder.protocols.session.links import Links
from inorder.protocols.session.messages import Ack, Frame
from tests.protocols.session.wire import End, Wire, messages, numbers


def pair(**how):
    return End("a", "b", **how), End("b", "a", **how)


def frames(count):
    return [Frame(0, 0, number, 0, str(number)) for number in range(count + 1)]


# Taking.


def test_frames_are_taken_in_order_however_they_come():
    frame = frames(5)
    end = End("b", "a")
    for number in (3, 1, 5, 5, 2, 1, 4):
        end.receive(frame[number])
    assert end.taken == ["1", "2", "3", "4", "5"]


def test_an_acknowledgement_names_what_came_early():
    frame = frames(9)
    end = End("b", "a")
    assert messages(end.receive(frame[1])) == [Ack(0, 0, 1)]
    assert messages(end.receive(frame[3])) == [Ack(0, 0, 1, ((3, 3),))]
    assert messages(end.receive(frame[6])) == [Ack(0, 0, 1, ((6, 6), (3, 3)))]
    assert messages(end.receive(frame[4])) == [Ack(0, 0, 1, ((3, 4), (6, 6)))]
    assert messages(end.receive(frame[2])) == [Ack(0, 0, 4, ((6, 6),))]


def test_an_acknowledgement_names_eight_runs_the_one_that_came_last_first():
    frame = frames(40)
    end = End("b", "a")
    for number in range(4, 40, 2):
        end.receive(frame[number])
    [ack] = messages(end.receive(frame[2]))
    assert ack.runs[0] == (2, 2)
    assert ack.runs[1:] == tuple((number, number) for number in range(38, 24, -2))


def test_acknowledgements_ride_on_answers_where_they_can():
    end = End("b", "a")
    end.links.take("a", Frame(0, 0, 1, 0, "1"))
    [answer] = messages(end.post("answer"))
    assert (answer.number, answer.ack) == (1, 1)


def test_a_window_is_part_of_the_state():
    end = End("b", "a")
    end.receive(frames(3)[3])
    again: Links[str] = Links(0.5)
    again.load(unpacker(Sessions[str])(pack(end.links.s)))
    assert again.s == end.links.s
    assert again._kept_bytes == end.links._kept_bytes > 0


def test_a_full_window_drops_what_it_does_not_name(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.incoming.LINK_WINDOW_FRAMES", 2)
    end = End("b", "a")
    frame = frames(4)
    end.receive(frame[3])
    dropped = end.receive(frame[4])
    # Number 2 is the last of a window of two frames; 3 has no place in it.
    assert Note("window_full", "a") in dropped
    assert end.links.s.peers["a"].into.runs() == ()
    end.receive(frame[2])
    end.receive(frame[1])
    assert end.taken == ["1", "2"]


def test_windows_are_bounded_in_bytes_each_and_together(monkeypatch):
    frame = frames(6)
    one = len("x") + 20
    monkeypatch.setattr("inorder.protocols.session.incoming.LINK_WINDOW_BYTES", one)
    end = End("b", "a")
    end.receive(frame[2])
    assert Note("window_full", "a") in end.receive(frame[3])
    monkeypatch.undo()
    monkeypatch.setattr("inorder.protocols.session.links.LINK_WINDOWS_BYTES", one)
    links: Links[str] = Links(0.5)
    links.keep("a", frame[2])
    links.keep("c", frame[2])
    assert Note("window_full", "c") in links.flush(0.0)
    links.take("a", frame[1])
    links.take("a", frame[2])
    links.keep("c", frame[2])
    assert Note("window_full", "c") not in links.flush(0.0), "what was taken has left its window"


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("limit", ["incoming.LINK_WINDOW_BYTES", "links.LINK_WINDOWS_BYTES"])
def test_a_window_has_room_to_the_last_byte(limit, more, monkeypatch):
    frame = frames(4)
    monkeypatch.setattr(f"inorder.protocols.session.{limit}", 2 * size(frame[2]) + more)
    end = End("b", "a")
    end.receive(frame[3])
    full = Note("window_full", "a") in end.receive(frame[4])
    assert full == (more == -1)
    end.receive(frame[1])
    end.receive(frame[2])
    assert end.taken == ["1", "2", "3", "4"][: 3 if full else 4]
    link = end.links.s.peers["a"]
    assert (link.into.bytes, end.links._kept_bytes) == (0, 0), "what was taken makes room"


def test_a_new_owner_has_an_empty_window():
    end = End("b", "a")
    end.receive(frames(3)[3])
    end.links.resume()
    link = end.links.s.peers["a"]
    assert (link.into.bytes, link.into.window, end.links._kept_bytes) == (0, {}, 0)
    assert link.into.runs() == ()


# Sending.


def test_at_most_a_window_of_frames_is_on_its_way(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.outgoing.LINK_WINDOW_FRAMES", 2)
    end = End("a", "b")
    assert numbers(end.post("1", "2", "3", "4")) == [1, 2]
    assert numbers(end.receive(Ack(0, 0, 1))) == [3]
    assert numbers(end.receive(Ack(0, 0, 3))) == [4]


def test_what_is_proved_missing_is_sent_again_at_once():
    end = End("a", "b")
    for number in range(1, 5):
        end.post(str(number), now=0.1 * number)
    # A first round trip of 0.2 s: the frames left 0.1 s apart, a quarter of it is 0.05 s.
    assert numbers(end.receive(Ack(0, 0, 1), now=0.3)) == []
    assert numbers(end.receive(Ack(0, 0, 1, ((3, 3),)), now=0.5)) == [2]
    assert numbers(end.receive(Ack(0, 0, 1, ((3, 4),)), now=0.6)) == [], "it has just left again"


def test_frames_that_left_close_together_prove_nothing():
    end = End("a", "b")
    end.post("1", now=0.0)
    end.receive(Ack(0, 0, 1), now=0.4)
    end.post("2", now=1.0)
    end.post("3", now=1.09)
    end.post("4", now=1.101)
    assert numbers(end.receive(Ack(0, 0, 1, ((3, 3),)), now=1.5)) == []
    assert numbers(end.receive(Ack(0, 0, 1, ((3, 4),)), now=1.5)) == [2]


def test_what_was_sent_again_waits_twice_as_long_for_the_next_proof():
    end = End("a", "b")
    end.post("1", now=0.0)
    end.receive(Ack(0, 0, 1), now=0.4)
    end.post("2", now=1.0)
    end.post("3", now=2.0)
    assert numbers(end.receive(Ack(0, 0, 1, ((3, 3),)), now=2.4)) == [2]
    end.post("4", now=2.5)
    end.post("5", now=2.59)
    end.post("6", now=2.61)
    assert numbers(end.receive(Ack(0, 0, 1, ((3, 5),)), now=3.0)) == []
    assert numbers(end.receive(Ack(0, 0, 1, ((3, 6),)), now=3.0)) == [2]


@pytest.mark.parametrize("missing", [2, 3, 4])
def test_only_so_many_frames_are_sent_again_at_once(missing, monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.outgoing.LINK_RESEND_BURST", 3)
    end = End("a", "b")
    end.post(*map(str, range(1, missing + 1)))
    first = [*range(1, min(missing, 3) + 1)]
    assert numbers(end.fire(now=1.0)) == first, "by the timer"
    end = End("a", "b")
    end.post(*map(str, range(1, missing + 2)))
    last = missing + 1
    assert numbers(end.receive(Ack(0, 0, 0, ((last, last),)))) == first, "by evidence"


def test_only_so_many_are_sent_again_whatever_lies_between_them(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.outgoing.LINK_RESEND_BURST", 3)
    end = End("a", "b")
    end.post(*"12345678")
    end.links.s.peers["b"].out.reached.cover(2, 2)
    end.links.s.peers["b"].out.reached.cover(4, 5)
    assert numbers(end.fire(now=1.0)) == [1, 3, 6]


def test_without_time_a_frame_is_sent_again_once_for_all_proofs():
    """All readings of the clock are 0: a copy is never known to have left before a proof."""
    end = End("a", "b")
    end.post("1", "2", "3", "4")
    assert numbers(end.receive(Ack(0, 0, 0, ((3, 3),)))) == [1, 2]
    assert numbers(end.receive(Ack(0, 0, 0, ((3, 4),)))) == []
    end.post("5")
    assert numbers(end.receive(Ack(0, 0, 0, ((3, 5),)))) == []


def test_a_frame_sent_twice_measures_and_proves_nothing():
    end = End("a", "b")
    end.post("1", "2", now=0.0)
    end.fire(now=0.5)
    end.receive(Ack(0, 0, 0, ((2, 2),)), now=5.0)
    assert end.links.s.peers["b"].out.trip.mean_s == 0.0


def test_a_quiet_link_has_no_timer():
    end = End("a", "b")
    assert SetTimer("resend/b", 0.5) in end.post("1")
    assert end.receive(Ack(0, 0, 1)) == [CancelTimer("resend/b")]
    assert end.links.idle
    assert end.fire() == []


def test_the_timer_is_for_the_tail_and_backs_off():
    end = End("a", "b")
    end.post("1", "2")
    waits = [effect.after_s for _ in range(7) for effect in end.fire()
             if isinstance(effect, SetTimer)]  # fmt: skip
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]
    end.receive(Ack(0, 0, 1))
    assert [each for each in end.fire() if isinstance(each, SetTimer)] == [SetTimer("resend/b", 1)]


def test_what_leaves_later_moves_the_timer():
    end = End("a", "b")
    end.post("1", now=0.0)
    end.post("2", now=0.4)
    assert end.fire(now=0.5) == [SetTimer("resend/b", pytest.approx(0.4))]
    assert numbers(end.fire(now=0.9)) == [1, 2]


def test_what_was_sent_again_moves_the_timer_too():
    end = End("a", "b")
    end.post("1", now=0.0)
    end.post("2", now=0.2)
    end.post("3", now=0.3)
    # A first round trip of 0.2 s: from now on the wait is 0.2 + 4 * 0.1.
    assert numbers(end.receive(Ack(0, 0, 0, ((2, 2),)), now=0.4)) == [1]
    assert end.fire(now=0.5) == [SetTimer("resend/b", pytest.approx(0.5))]


@pytest.mark.parametrize(("number", "kept"), [(1, 3), (2, 2), (4, 0), (5, 4), (0, 4)])
def test_a_replayed_acknowledgement_frees_what_was_sent_and_no_more(number, kept):
    end = End("a", "b")
    for body in "1234":
        end.links.post("b", body)
    end.links.discard()
    end.links.replayed("b", Frame(0, 0, 1, number, "x"))
    assert len(end.links.s.peers["b"].out.unacked) == kept


def test_a_clock_that_stands_still_or_jumps_back_only_costs_time():
    end = End("a", "b")
    end.post("1", now=100.0)
    end.post("2", now=50.0)
    assert end.fire(now=0.0) == [SetTimer("resend/b", 0.5)]
    assert numbers(end.fire(now=0.0)) == [1, 2]


def test_the_wait_follows_the_round_trip_between_its_bounds():
    end = End("a", "b")
    end.post("1", now=0.0)
    end.receive(Ack(0, 0, 1), now=0.1)
    assert SetTimer("resend/b", pytest.approx(0.1 + 4 * 0.05)) in end.post("2", now=1.0)
    end.receive(Ack(0, 0, 2), now=500.0)
    assert end.links.s.peers["b"].out.trip.mean_s == pytest.approx(0.1), "a clock that jumped"


@pytest.mark.parametrize("ack", [Ack(0, 0, 99), Ack(0, 0, 0, ((2, 99),)), Ack(0, 0, 1, ((1, 1),)),
                                 Ack(0, 0, 0, tuple((n, n) for n in range(2, 11)))])  # fmt: skip
def test_acknowledging_what_was_never_sent_changes_nothing(ack):
    end = End("a", "b")
    end.post(*"123456789abc")
    before = durable(end.links.s)
    assert end.receive(ack) == []
    assert durable(end.links.s) == before


def test_early_frames_are_a_promise_of_the_present_owner_only():
    end = End("a", "b")
    end.post("1", "2", "3", now=0.0)
    end.receive(Ack(0, 0, 0, ((2, 3),)), now=0.1)
    assert numbers(end.fire(now=1.0)) == [1]
    end.receive(Ack(0, 1, 0), now=1.1)
    assert numbers(end.fire(now=9.0)) == [1, 2, 3]


def test_a_new_owner_that_is_first_heard_of_in_a_frame_takes_the_promise_back_too():
    end = End("a", "b")
    end.post("1", "2", now=0.0)
    end.receive(Ack(0, 0, 0, ((2, 2),)), now=0.1)
    end.receive(Frame(0, 1, 1, 0, "x"), now=0.2)
    assert numbers(end.fire(now=9.0)) == [1, 2]


def test_a_new_owner_sends_what_it_does_not_know_to_have_come():
    end, peer = pair()
    for frame in messages(end.post("1", "2", "3")):
        peer.receive(frame)
    again = End("a", "b")
    again.links.load(durable(end.links.s))
    again.links.resume()
    again_frames = messages(again.links.flush(0.0))
    assert [each.number for each in again_frames] == [1, 2, 3]
    for frame in again_frames:
        [ack] = messages(peer.receive(frame))
    again.receive(ack)
    assert again.links.idle
    assert peer.taken == ["1", "2", "3"]


def test_an_acknowledgement_of_what_a_former_owner_sent_is_believed(monkeypatch):
    """The window of the new owner begins further back than where its peer stands."""
    monkeypatch.setattr("inorder.protocols.session.outgoing.LINK_WINDOW_FRAMES", 2)
    end = End("a", "b")
    end.post(*"12345")
    end.links.resume()
    assert numbers(end.links.flush(0.0)) == [1, 2], "all that was on its way may be lost"
    assert numbers(end.receive(Ack(0, 0, 4))) == [5]


# The whole: whatever the network does.


def fair(message, rng):
    return [0.05]


@given(st.integers(0, 2**32), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.3))
def test_everything_comes_once_and_in_order_whatever_the_network_does(seed, loss, twice, spread):
    def way(message, rng):
        copies = (rng.random() >= loss) + (rng.random() < twice)
        return [0.05 + rng.random() * spread for _ in range(copies)]

    one, other = pair()
    wire = Wire(one, other, way, seed)
    for number in range(30):
        wire.post("a", f"a{number}")
        wire.post("b", f"b{number}")
        wire.run(wire.now + 0.02)
    wire.way = fair
    wire.run(wire.now + 60.0)
    assert other.taken == [f"a{number}" for number in range(30)]
    assert one.taken == [f"b{number}" for number in range(30)]
    for end in (one, other):
        assert end.links.idle
        assert end.timer is None
        assert end.links._kept_bytes == 0


def test_reordering_without_loss_sends_next_to_nothing_again():
    """50 ms, give or take 5: the jitter is less than a quarter of the round trip."""
    one, other = pair()
    wire = Wire(one, other, lambda message, rng: [0.05 + rng.uniform(-0.005, 0.005)], 1)
    for number in range(2000):
        wire.post("a", str(number))
        wire.run(wire.now + wire.rng.expovariate(200.0))
    wire.run(wire.now + 5.0)
    assert other.links.counts["frames_early"] > 100
    assert one.links.counts["frames_again"] <= 20
    assert other.taken == [str(number) for number in range(2000)]


def test_hardly_more_is_sent_again_than_was_lost():
    lost = 0

    def way(message, rng):
        nonlocal lost
        if rng.random() < 0.05:
            lost += isinstance(message, Frame)
            return []
        return [0.05]

    one, other = pair()
    wire = Wire(one, other, way, 2)
    for number in range(2000):
        wire.post("a", str(number))
        wire.run(wire.now + wire.rng.expovariate(50.0))
    wire.way = fair
    wire.run(wire.now + 60.0)
    assert len(other.taken) == 2000
    assert lost <= one.links.counts["frames_again"] <= 1.3 * lost


# What has come and is not acknowledged: the peer waits with it for somebody else.


def kept_by_the_peer() -> Links[str]:
    """Frame 1 has come after 0.04 s, and waits there."""
    links: Links[str] = Links(0.5, patient=True)
    links.begin("b", 1, 0)
    links.post("b", "1")
    links.flush(0.0)
    links.acknowledged("b", Ack(1, 0, 0, ((1, 1),)), 0.04)
    assert links.flush(0.04) == []
    return links


def test_what_has_come_and_waits_is_asked_for_after_a_while():
    links = kept_by_the_peer()
    assert [*links.fire("b", 0.2), *links.flush(0.2)] == [SetTimer("resend/b", 0.5)]
    [_, frame, timer] = [*links.fire("b", 0.7), *links.flush(0.7)]
    assert (frame.message.number, timer.name) == (1, "resend/b")


def test_a_later_frame_is_waited_for_before_anything_is_asked():
    links = kept_by_the_peer()
    links.fire("b", 0.2)
    links.flush(0.2)
    links.post("b", "2")
    links.flush(0.3)
    links.acknowledged("b", Ack(1, 0, 0, ((1, 2),)), 0.34)
    links.flush(0.34)
    links.fire("b", 0.7)  # it finds that 2 left later
    links.flush(0.7)
    assert [*links.fire("b", 0.8), *links.flush(0.8)] == [SetTimer("resend/b", 0.5)]
