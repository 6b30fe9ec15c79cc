"""How sessions begin, end and are forgotten."""

from __future__ import annotations

import pytest

from inorder.core.effect import CancelTimer, Note, Send, SetTimer
from inorder.core.wire import encode
from inorder.protocols.session.book import above
from inorder.protocols.session.links import Links
from inorder.protocols.session.messages import Ack, Bye, Frame, Unknown
from tests.protocols.session.wire import End, Wire, messages, numbers


def pair(**how):
    return End("a", "b", **how), End("b", "a", **how)


def frames(count):
    return [Frame(0, 0, number, 0, str(number)) for number in range(count + 1)]


def fair(message, rng):
    return [0.05]


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
