"""Sessions between two lives: what begins one, what is acknowledged when, and what comes again."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from inorder.content.messages import Attach, Pub
from inorder.core.effect import CancelTimer, Effect, Note, Send, SetTimer
from inorder.core.errors import BadMessage
from inorder.guarantee.lines import Greeting, Lines
from inorder.protocols.session.messages import Ack, Frame


def pub(seq: int, publisher: str = "p", topic: str = "t") -> Pub:
    return Pub(topic, publisher, seq, {"n": seq})


class End:
    """A machine that passes what it takes on to `onward`, through `lines`."""

    def __init__(self, name: str, life: int = 1, *onward: str) -> None:
        self.name = name
        self.lines = Lines(name, life, 0.5, lambda peer, event: peer not in self.closed)
        self.onward = onward
        self.closed: set[str] = set()
        self.taken: list[Any] = []
        self.began: list[str] = []
        self.effects: list[Effect] = []

    def post(self, peer: str, *bodies: Any) -> list[Any]:
        for body in bodies:
            self.lines.post(peer, body)
        return self._sent(self.lines.flush(0.0))

    def greet(self, peer: str) -> list[Any]:
        return self._sent(self.lines.greet(peer))

    def receive(self, source: str, message: Any) -> list[tuple[str, Any]]:
        begins, effects = self.lines.hear(source, message)
        if begins:
            self.began.append(source)
            self.lines.drain(source)
        for number, body in self.lines.take(source, message, 0.0):
            self.taken.append(body)
            if isinstance(body, Pub):
                with self.lines.passing(source, number, body):
                    for peer in self.onward:
                        self.lines.post(peer, body)
        return self._sent([*effects, *self.lines.flush(0.0)])

    def _sent(self, effects: list[Effect]) -> list[tuple[str, Any]]:
        self.effects += effects
        return [(each.target, each.message) for each in effects if isinstance(each, Send)]

    def acked(self, peer: str) -> int:
        """What the peer has been given an acknowledgement of."""
        return self.lines._links.s.peers[peer].into.acknowledged


class Wire:
    """Everything arrives at once, in order, but what is on a link that is cut."""

    def __init__(self, *ends: End) -> None:
        self.ends = {end.name: end for end in ends}
        self.cut: set[tuple[str, str]] = set()

    def carry(self, source: str, sent: list[tuple[str, Any]]) -> None:
        queue = [(source, target, message) for target, message in sent]
        while queue:
            source, target, message = queue.pop(0)
            if (source, target) not in self.cut:
                answers = self.ends[target].receive(source, message)
                queue += [(target, peer, answer) for peer, answer in answers]

    def post(self, source: str, target: str, *bodies: Any) -> None:
        self.carry(source, self.ends[source].post(target, *bodies))

    def greet(self, source: str, target: str) -> None:
        self.carry(source, self.ends[source].greet(target))

    def fire(self, name: str, timer: str) -> None:
        end = self.ends[name]
        self.carry(name, end._sent(end.lines.fire(timer, 0.0)))


def chain() -> Wire:
    """p passes on to b, b to c."""
    wire = Wire(End("p"), End("b", 1, "c"), End("c"))
    wire.greet("b", "p")
    wire.greet("b", "c")
    return wire


def test_two_who_greet_have_one_session_named_by_both_lives():
    a, b = End("a", 3), End("b", 5)
    wire = Wire(a, b)
    wire.greet("a", "b")
    assert (a.began, b.began) == (["b"], ["a"])
    [(_, frame)] = a.post("b", "hello")
    assert frame.session == 3 * 2**31 + 5
    assert frame.channel == "content"
    assert b.receive("a", frame) == [("a", Ack(frame.session, 0, 1, (), "content"))]
    assert b.taken == ["hello"]


def test_greetings_go_on_until_an_answer_comes_and_then_stop():
    a, b = End("a"), End("b")
    waits = []
    for _ in range(8):
        a.greet("b")
        waits.append(a.effects[-1].after_s)
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]
    assert isinstance(a.effects[-1], SetTimer)
    Wire(a, b).greet("a", "b")
    assert a.effects[-1] == CancelTimer("greet/b")
    assert b.effects == [Send("a", Greeting(1, 1))], "who never greeted has no timer to cancel"


def test_a_frame_tells_a_life_as_well_as_a_greeting():
    a, b = End("a", 2), End("b")
    a.receive("b", Greeting(1, 0))
    [(_, frame)] = a.post("b", "first")
    assert b.receive("a", frame) != []
    assert (b.began, b.taken) == (["a"], ["first"])


def test_nothing_of_an_older_life_is_taken_and_a_new_one_is_heard_of():
    a, b = End("a"), End("b")
    Wire(a, b).greet("a", "b")
    [(_, late)] = a.post("b", "late")
    again = End("b", 2)
    assert again.receive("a", late) == [("a", Greeting(2, 1))], "a session of our former life"
    assert again.taken == []
    assert a.receive("b", Greeting(2, 1)) == [], "it knows us"
    assert a.began == ["b", "b"]
    assert a.receive("b", Ack(2**31 + 1, 0, 1, (), "content")) == [], "of its former life"
    assert a.receive("b", Greeting(1, 0)) == [("b", Greeting(1, 2))]
    assert a.began == ["b", "b"]


def test_a_greeting_that_comes_twice_begins_nothing():
    a, b = End("a"), End("b")
    Wire(a, b).greet("a", "b")
    assert b.receive("a", Greeting(1, 0)) == [("a", Greeting(1, 1))], "it may not know us"
    assert b.receive("a", Greeting(1, 1)) == []
    assert b.began == ["a"]


def test_who_has_lost_its_disk_goes_on_above_what_others_remember():
    a, b = End("a", 1), End("b", 4)
    a.receive("b", Greeting(4, 7))
    assert a.lines.life == 8
    assert Note("life_lost", "a") in a.effects
    assert a.began == []
    Wire(a, b).greet("a", "b")
    assert (a.began, b.began) == (["b"], ["a"])


@pytest.mark.parametrize(
    "message", [Greeting(0, 1), Greeting(2**31, 1), Greeting(1, -1), Greeting(1, 2**31),
                Frame(2**31, 0, 1, 0, "x"), Ack(-1, 0, 1)],
)  # fmt: skip
def test_lives_that_cannot_be_are_refused_and_leave_nothing(message):
    a = End("a")
    with pytest.raises(BadMessage, match="is in life"):
        a.receive("b", message)
    assert a.lines._lines == {}


def test_no_more_peers_than_the_limit(monkeypatch):
    monkeypatch.setattr("inorder.guarantee.lines.LINK_PEERS_MAX", 2)
    a = End("a")
    for name in "bc":
        a.receive(name, Greeting(1, 0))
    a.receive("b", Greeting(2, 0))
    with pytest.raises(BadMessage, match="one more than 2"):
        a.receive("d", Greeting(1, 0))


# Acknowledging.


def test_an_event_is_acknowledged_when_it_has_been_passed_on():
    wire = chain()
    wire.cut = {("b", "c")}
    wire.post("p", "b", pub(1))
    b = wire.ends["b"]
    assert (b.taken, b.acked("p")) == ([pub(1)], 0)
    [ack] = [each.message for each in b.effects if isinstance(each, Send)
             and isinstance(each.message, Ack)]  # fmt: skip
    assert (ack.number, ack.runs) == (0, ((1, 1),)), "it need not come again, and must be kept"
    assert not wire.ends["p"].lines.idle
    wire.cut = set()
    wire.fire("b", "resend/c")
    assert b.acked("p") == 1
    assert wire.ends["c"].taken == [pub(1)]
    assert all(end.lines.idle for end in wire.ends.values())


def test_an_acknowledgement_that_was_lost_is_asked_for():
    wire = chain()
    wire.cut = {("b", "p")}
    wire.post("p", "b", pub(1), pub(2))
    wire.cut = set()
    wire.fire("p", "resend/b")
    assert wire.ends["p"].lines.idle
    wire.cut = {("b", "c")}
    wire.post("p", "b", pub(3))
    wire.cut = {("b", "p")}
    wire.fire("b", "resend/c")
    wire.cut = set()
    assert not wire.ends["p"].lines.idle, "it knows that 3 has come, not that it was passed on"
    frames = wire.ends["p"].lines.account()["frames_again"]
    wire.fire("p", "resend/b")
    assert wire.ends["p"].effects[-1] == SetTimer("resend/b", 0.5), "it has come: wait with asking"
    assert wire.ends["p"].lines.account()["frames_again"] == frames
    wire.fire("p", "resend/b")
    assert wire.ends["p"].lines.account()["frames_again"] == frames + 1
    assert wire.ends["p"].lines.idle
    assert wire.ends["c"].taken == [pub(1), pub(2), pub(3)]


def test_what_is_no_event_waits_only_for_its_place():
    wire = chain()
    wire.cut = {("b", "c")}
    wire.post("p", "b", Attach(), pub(1), Attach())
    assert wire.ends["b"].acked("p") == 1
    wire.cut = set()
    wire.fire("b", "resend/c")
    assert wire.ends["b"].acked("p") == 3


def test_events_of_a_machine_that_crashed_come_again():
    wire = chain()
    wire.cut = {("b", "c")}
    wire.post("p", "b", pub(1), Attach(), pub(2))
    wire.cut = set()
    wire.ends["b"] = End("b", 2, "c")
    wire.greet("b", "c")
    wire.greet("b", "p")
    assert wire.ends["b"].taken == wire.ends["c"].taken == [pub(1), pub(2)], "nothing but events"
    assert wire.ends["p"].lines.idle


def test_events_come_again_before_those_that_waited():
    a, b = End("a"), End("b")
    wire = Wire(a, b)
    wire.greet("a", "b")
    wire.cut = {("a", "b")}
    wire.post("a", "b", pub(1), pub(2))
    a.closed = {"b"}
    wire.post("a", "b", pub(3))
    wire.cut = set()
    wire.ends["b"] = again = End("b", 2)
    wire.greet("b", "a")
    assert again.taken == []
    a.closed = set()
    a.lines.drain("b")
    wire.carry("a", a._sent(a.lines.flush(0.0)))
    assert again.taken == [pub(1), pub(2), pub(3)]


def test_behind_an_event_that_is_never_passed_on_only_so_many_wait(monkeypatch):
    monkeypatch.setattr("inorder.guarantee.lines.CUSTODY_MAX", 4)
    wire = chain()
    wire.cut = {("b", "c")}
    wire.post("p", "b", *(pub(seq) for seq in range(1, 5)))
    assert wire.ends["b"].acked("p") == 0
    wire.post("p", "b", pub(5))
    assert wire.ends["b"].acked("p") == 1
    wire.post("p", "b", Attach())
    assert wire.ends["b"].acked("p") == 2


def test_a_copy_that_comes_again_waits_for_the_first():
    """p crashes and sends 1 again while b still keeps it for c."""
    wire = chain()
    wire.cut = {("b", "c")}
    wire.post("p", "b", pub(1))
    wire.ends["p"] = End("p", 2)
    wire.greet("p", "b")
    wire.post("p", "b", pub(1), pub(2))
    b = wire.ends["b"]
    assert (b.taken, b.acked("p"), b.lines.repeated) == ([pub(1), pub(2)], 0, 1)
    wire.cut = set()
    for _ in range(2):  # the first time it finds that 2 left later
        wire.fire("b", "resend/c")
    assert b.acked("p") == 2
    assert wire.ends["c"].taken == [pub(1), pub(2)]


def test_frames_that_waited_keep_their_order_of_acknowledgement():
    """2 comes again behind 3, both taken at once: 3 must not be acknowledged before it is safe."""
    a, b = End("a"), End("b", 1, "c")
    b.receive("c", Greeting(1, 0))
    Wire(a, b).greet("a", "b")
    sent = a.post("b", pub(2), pub(3), pub(2), pub(4))
    for _, frame in [sent[0], *sent[:0:-1]]:
        b.receive("a", frame)
    assert b.taken == [pub(2), pub(3), pub(4)]
    assert b.acked("a") == 0
    session = b.lines._session("c", 1)
    b.receive("c", Ack(session, 0, 1, (), "content"))
    assert b.acked("a") == 1
    b.receive("c", Ack(session, 0, 3, (), "content"))
    assert b.acked("a") == 4


def test_what_comes_behind_a_later_event_of_its_publisher_is_dropped():
    wire = chain()
    wire.post("p", "b", pub(5), pub(3), pub(4, "q"), pub(6))
    assert wire.ends["b"].taken == [pub(5), pub(4, "q"), pub(6)]
    message = Pub("t", "p", 2, None)
    wire.post("p", "b", message)
    assert wire.ends["b"].taken[-1] == message, "what is no event counts for itself"
    assert wire.ends["p"].lines.idle


def test_only_so_many_publishers_are_remembered(monkeypatch):
    monkeypatch.setattr("inorder.guarantee.lines.LINE_PUBLISHERS_MAX", 2)
    wire = chain()
    wire.post("p", "b", pub(1, "x"), pub(1, "y"), pub(2, "x"), pub(1, "z"))
    wire.post("p", "b", pub(2, "x"), pub(1, "y"))
    assert wire.ends["b"].taken == [pub(1, "x"), pub(1, "y"), pub(2, "x"), pub(1, "z"), pub(1, "y")]


# Waiting.


def test_what_is_no_event_is_not_kept_for_who_is_not_there():
    a, b = End("a"), End("b")
    assert a.post("b", "lost", pub(1)) == []
    Wire(a, b).greet("a", "b")
    assert b.taken == [pub(1)]


def test_one_that_waits_holds_up_those_behind_it():
    a, b = End("a"), End("b")
    Wire(a, b).greet("a", "b")
    a.lines._gate = lambda peer, event: event.topic != "shut"
    sent = a.post("b", pub(1), pub(2, topic="shut"), pub(3))
    assert [frame.body.seq for _, frame in sent] == [1]
    assert a.lines.purge("b", lambda event: event.topic == "shut") == 1
    a.lines.drain("b")
    assert [frame.body.seq for _, frame in a._sent(a.lines.flush(0.0))] == [3]


def test_given_up_copies_are_paid_for():
    wire = chain()
    b = wire.ends["b"]
    b.closed = {"c"}
    wire.post("p", "b", pub(1))
    assert b.acked("p") == 0
    b.lines.purge("c", lambda event: True)
    wire.carry("b", b._sent(b.lines.flush(0.0)))
    assert b.acked("p") == 1
    assert wire.ends["p"].lines.idle


def test_no_more_wait_than_the_limit(monkeypatch):
    monkeypatch.setattr("inorder.guarantee.lines.LINE_WAITING_MAX", 3)
    a, b = End("a"), End("b")
    Wire(a, b).greet("a", "b")
    a.closed = {"b"}
    a.post("b", pub(1), pub(2))
    a.post("b", Attach())
    a.post("b", pub(3))
    assert (len(a.lines._line("b").waiting), a.lines.dropped) == (2, 1)
    assert a.lines.account()["events_dropped"] == 1


def test_a_cause_that_fails_leaves_none_behind():
    b = End("b")
    with pytest.raises(ZeroDivisionError), b.lines.passing("p", 1, pub(1)):
        raise ZeroDivisionError
    b.post("c", pub(2))
    assert [debt for _, debt in b.lines._line("c").waiting] == [None]


@pytest.mark.parametrize("order", [*permutations(range(4))])
def test_in_whatever_order_frames_come(order):
    a, b = End("a"), End("b", 1, "c")
    c = End("c")
    wire = Wire(a, b, c)
    wire.greet("a", "b")
    wire.greet("b", "c")
    sent = a.post("b", *(pub(seq) for seq in range(1, 5)))
    for place in order:
        wire.carry("a", [sent[place]])
    assert b.taken == c.taken == [pub(seq) for seq in range(1, 5)]
    assert a.lines.idle
    assert b.lines.idle
