"""Sessions: once, in order, over links that lose, double and reorder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.effect import CancelTimer, Note, Send, SetTimer
from inorder.core.pack import pack, unpacker
from inorder.core.wire import encode, size
from inorder.protocols.session.book import Sessions, above, durable
from inorder.protocols.session.links import Links
from inorder.protocols.session.messages import Ack, Bye, Frame, Unknown
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


# Owners, sessions, endings.


def test_a_smaller_token_is_refused():
    end = End("b", "a")
    end.receive(Frame(0, 3, 1, 0, "1"))
    assert end.receive(Frame(0, 2, 2, 0, "2")) == [Note("fenced", "a")]
    assert end.receive(Ack(0, 2, 2)) == [Note("fenced", "a")]
    assert messages(end.receive(Frame(0, 3, 2, 0, "2"))) == [Ack(0, 0, 2)]


def test_a_service_gives_up_on_a_client_for_ever_silent_but_not_on_a_service():
    links: Links[str] = Links(0.5)
    links.post("client", "1", session=1)
    links.post("service", "1")
    links.flush(0.0)
    for _ in range(64):
        for peer in ("client", "service"):
            links.fire(peer, 0.0)
            links.flush(0.0)
    assert links.fire("client", 0.0) == [Note("link_gave_up", "client")]
    links.flush(0.0)
    links.fire("service", 0.0)
    assert numbers(links.flush(0.0)) == [1]
    links.acknowledged("client", Ack(1, 0, 0), 0.0)
    assert numbers(links.flush(0.0)) == [1], "a sign of life begins anew"


def test_whatever_shows_a_client_that_was_given_up_begins_anew():
    links: Links[str] = Links(0.5)
    links.post("client", "1", session=1)
    links.flush(0.0)
    links.hear("client", 0.0)
    assert links.flush(0.0) == [], "it has just left"
    for _ in range(65):
        links.fire("client", 0.0)
        links.flush(0.0)
    links.hear("client", 0.0)
    effects = links.flush(0.0)
    assert numbers(effects) == [1]
    assert SetTimer("resend/client", 1.0) in effects
    links.hear("nobody", 0.0)
    assert links.flush(0.0) == []


def test_a_message_posted_before_an_acknowledgement_is_heard_is_waited_for_no_longer():
    """A client answers a frame with a request, then hears what the frame acknowledges."""
    links: Links[str] = Links(0.5, patient=True)
    links.post("s", "request")
    links.acknowledged("s", Frame(0, 0, 1, 0, "answer"), 0.0)
    effects = links.flush(0.0)
    assert numbers(effects) == [1]
    assert SetTimer("resend/s", 0.5) in effects


def test_a_new_session_ends_the_old_one():
    links: Links[str] = Links(0.5)
    links.post("c", "1", session=1)
    links.flush(0.0)
    assert links.begins("c", Ack(2, 0, 0))
    links.begin("c", 2, links.carries("c"))
    cancelled, sent, timer = links.flush(0.0)
    assert (cancelled, timer) == (CancelTimer("resend/c"), SetTimer("resend/c", 0.5))
    assert sent == Send("c", Frame(2, 0, 1, 0, "1")), "what was on its way goes on in the new one"
    refusal = links.refuse("c", Frame(1, 0, 1, 0, "1"))
    assert refusal == [Note("old_session", "c"), Send("c", Unknown(1, 2))]
    assert links.refuse("c", Ack(1, 0, 1)) == refusal


def test_a_replaced_owner_ends_no_session():
    end = End("b", "a")
    end.receive(Frame(0, 3, 1, 0, "1"))
    for token, ended in ((2, False), (3, True)):
        end.receive(Bye(0, token, 1))
        assert ("a" in end.links.s.ended) == ended


def test_a_session_with_a_frame_that_came_early_does_not_end():
    end = End("b", "a")
    end.receive(frames(2)[2])
    assert not end.links.may_end("a")
    end.receive(frames(2)[1])
    assert end.links.may_end("a")
    assert not end.links.may_end("nobody")


def test_a_session_that_goes_on_remembers_its_owner():
    end = End("b", "a")
    end.receive(Frame(0, 3, 1, 0, "1"))
    end.receive(Bye(0, 3, 1))
    assert end.links.refuse("a", Ack(0, 2, 0)) == [Note("fenced", "a")]
    end.post("goes on")
    assert end.receive(Frame(0, 2, 2, 0, "2")) == [Note("fenced", "a")]
    end.links.begin("a", 1, 0)
    assert end.receive(Frame(1, 2, 1, 0, "1")) == [Note("fenced", "a")]


def test_a_replay_carries_as_many_messages_as_the_owner_did():
    """It knows of more, as acknowledgements are not in the log: the last of them are the same."""
    links: Links[str] = Links(0.5)
    for body in "123":
        links.post("c", body, session=1)
    links.begin("c", 2, 2)
    assert links.s.peers["c"].out.unacked == ["2", "3"]
    links.begin("c", 3, 0)
    assert links.s.peers["c"].out.unacked == []


@pytest.mark.parametrize("how", ["begin", "cut"])
def test_a_session_leaves_no_window_behind(how):
    links: Links[str] = Links(0.5)
    for peer in ("c", "d"):
        links.keep(peer, Frame(0, 0, 2, 0, "2"))
    if how == "begin":
        links.begin("c", 1, 0)
    else:
        links.end("c", cut=True)
    assert links._kept_bytes == links.s.peers["d"].into.bytes > 0


def test_what_an_old_session_lacks_is_not_sent_in_the_new_one():
    links: Links[str] = Links(0.5, patient=True, first=1)
    for body in "123":
        links.post("s", body)
    links.flush(0.0)
    links.acknowledged("s", Ack(1, 0, 0, ((3, 3),)), 0.0)
    links.begin_anew("s", 1)
    assert links.flush(0.0) == [CancelTimer("resend/s")]


def test_an_ended_session_is_one_row_and_goes_on_where_it_ended():
    end, peer = pair()
    for frame in messages(end.post("1", "2")):
        for ack in messages(peer.receive(frame)):
            end.receive(ack)
    assert end.links.may_end("b")
    assert peer.receive(end.links.bye("b").message) == []
    assert not peer.links.s.peers
    assert peer.links.s.ended["a"].received == 2
    [ack] = messages(peer.receive(Frame(0, 0, 2, 0, "2")))
    assert ack == Ack(0, 0, 2), "a late copy is still known"
    [frame] = messages(end.post("3"))
    peer.receive(frame)
    assert peer.taken == ["1", "2", "3"]
    assert messages(peer.post("x"))[0].number == 1


def test_a_session_ends_only_when_nothing_of_it_is_under_way():
    end, peer = pair()
    [frame] = messages(end.post("1"))
    assert not end.links.may_end("b"), "not yet acknowledged"
    peer.receive(Bye(0, 0, 1))
    peer.receive(frame)
    assert "a" in peer.links.s.peers, "it has fewer frames than were sent"
    peer.post("answer")
    peer.receive(Bye(0, 0, 1))
    assert "a" in peer.links.s.peers, "its own frame is not acknowledged"
    late = Bye(0, 0, 1)
    peer.receive(Frame(0, 0, 2, 1, "2"))
    peer.receive(late)
    assert "a" in peer.links.s.peers, "a late word of an earlier end"
    peer.receive(Bye(0, 0, 2))
    assert "a" not in peer.links.s.peers


def test_forgotten_sessions_raise_the_floor(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.book.LINK_ENDED_MAX", 2)
    links: Links[str] = Links(0.5)
    for session, name in ((7, "c"), (3, "d"), (5, "e")):
        links.take(name, Frame(session, 0, 1, 0, "1"))
        links.end(name)
    links.flush(0.0)
    assert sorted(links.s.ended) == ["d", "e"], "the one that ended first has gone"
    assert links.s.floor == 7
    refusal = links.refuse("c", Frame(7, 0, 2, 0, "2"))
    assert refusal == [Note("unknown_session", "c"), Send("c", Unknown(7, 7))]
    assert links.refuse("c", Frame(8, 0, 1, 0, "1")) == []
    assert links.refuse("d", Frame(3, 0, 2, 0, "2")) == [], "its row is still there"
    assert links.refuse("stage", Frame(0, 0, 1, 0, "1")) == [], "services never end a session"


def test_who_shows_itself_in_any_way_is_not_silent():
    links: Links[str] = Links(0.5)
    ways = {
        "frame": lambda: links.acknowledged("frame", Frame(1, 0, 1, 0, "1"), 0.0),
        "ack": lambda: links.acknowledged("ack", Ack(1, 0, 0), 0.0),
        "else": lambda: links.hear("else", 0.0),
        "dead": lambda: None,
    }
    for peer in ways:
        links.begin(peer, 1, 0)
    links.begin("service", 0, 0)
    for tick in range(1, 5):
        assert links.silent(3) == (["dead"] if tick == 4 else [])
        for show in ways.values():
            show()
    assert links.silent(0) == ["ack", "dead", "else", "frame"], "services are never silent"


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_sessions_are_kept_with_so_many_peers(more, monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.book.LINK_PEERS_MAX", 2)
    links: Links[str] = Links(0.5)
    for number in range(1 + more):
        links.take(f"c{number}", Frame(1, 0, 1, 0, "1"))
    refusal = [Note("too_many_peers", "new")] if more == 1 else []
    assert links.refuse("new", Frame(1, 0, 1, 0, "1")) == refusal
    if more >= 0:
        assert links.refuse("c0", Frame(1, 0, 2, 0, "2")) == [], "one that is known goes on"


def test_a_client_begins_anew_above_the_floor():
    links: Links[str] = Links(0.5, patient=True, first=3)
    links.post("s", "1")
    links.flush(0.0)
    links.begin_anew("s", 7)
    assert links.session("s") == above(7, 3) > 7
    links.post("s", "1")
    [frame] = messages(links.flush(0.0))
    assert (frame.session, frame.number) == (above(7, 3), 1)
    links.begin_anew("s", 2)
    assert links.session("s") == above(above(7, 3), 3), "never below its own"


def test_a_client_that_has_forgotten_a_session_begins_another_one(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.book.LINK_ENDED_MAX", 1)
    links: Links[str] = Links(0.5, patient=True, first=3)
    for peer in ("s", "t"):
        links.post(peer, "1")
        links.flush(0.0)
        links.acknowledged(peer, Ack(3, 0, 1), 0.0)
        links.end(peer)
    links.flush(0.0)
    assert sorted(links.s.ended) == ["t"]
    anew = above(3, 3)
    assert (links.session("s"), links.session("t")) == (anew, 3)
    assert links.greeting("s") == Send("s", Ack(anew, 0, 0))
    links.post("s", "2")
    [frame] = messages(links.flush(0.0))
    assert (frame.session, frame.number) == (anew, 1), "number 1 of session 3 was taken long ago"


def test_no_two_lives_share_a_session_however_often_they_begin_anew():
    seen = set()
    for first in range(1, 30):
        links: Links[str] = Links(0.5, patient=True, first=first << 16)
        for floor in (0, 0, 5 << 16, 40 << 16, 2**41):
            assert links.session("s") not in seen
            seen.add(links.session("s"))
            links.begin_anew("s", floor)
            assert links.session("s") > floor
        seen.add(links.session("s"))


def test_a_peer_cannot_use_up_the_numbers(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.book.LINK_ENDED_MAX", 1)
    links: Links[str] = Links(0.5)
    assert links.refuse("h", Frame(2**63, 0, 1, 0, "1")) == [Note("bad_session", "h")]
    for name in "hij":
        links.take(name, Frame(2**63 - 1, 0, 1, 0, "1"))
        links.end(name)
    assert links.s.floor == 2**62
    client: Links[str] = Links(0.5, patient=True, first=1 << 16)
    client.begin_anew("s", links.s.floor)
    client.post("s", "1")
    [frame] = messages(client.flush(0.0))
    assert links.refuse("c", frame) == []
    assert encode(frame)


def test_an_overflowing_session_is_cut_and_its_peer_must_begin_anew(monkeypatch):
    monkeypatch.setattr("inorder.protocols.session.links.LINK_UNACKED_MAX", 3)
    links: Links[str] = Links(0.5)
    for number in range(4):
        links.post("c", str(number), session=1)
        links.post("service", str(number))
    assert links.overfull() == ["c"], "services are waited for as long as it takes"
    links.end("c", cut=True)
    assert Note("link_cut", "c") in links.flush(0.0)
    for session in (0, 1):
        assert links.refuse("c", Ack(session, 0, 0))[1:] == [Send("c", Unknown(session, 1))]
    links.post("c", "later", session=1)
    [frame] = messages(links.flush(0.0))
    assert (frame.session, frame.number) == (2, 1), "a session that nobody has begun"


def test_a_peer_silent_for_hours_is_tried_a_thousand_times_and_comes_back():
    reachable = True

    def way(message, rng):
        if not reachable or (isinstance(message, Frame) and message.body == "lost once"):
            return []
        return [0.05]

    one, other = pair()
    wire = Wire(one, other, way)
    wire.post("a", "first")
    wire.run(1.0)
    reachable = False
    wire.post("a", "lost once", "third")
    wire.run(3 * 3600.0)
    assert one.links.s.peers["b"].out.flights[0].tries > 1000
    reachable = True
    wire.post("a", "fourth")
    wire.run(3 * 3600.0 + 30.0)
    wire.way = fair
    wire.run(3 * 3600.0 + 60.0)
    assert other.taken == ["first", "lost once", "third", "fourth"]


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
