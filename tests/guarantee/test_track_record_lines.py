"""Counterexamples of a review of links between lives: each test failed when it was written."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.content.broker import Broker
from inorder.content.engine import Form
from inorder.content.messages import Adv, Attach, Hello, Installed, Pub, Said, Sub
from inorder.content.repair import PATIENCE_S
from inorder.content.repair import TIMER as PATIENCE
from inorder.content.skeleton import Skeleton
from inorder.core.effect import CancelTimer, Diffuse, Effect, Note, Persist, Send
from inorder.core.errors import BadMessage
from inorder.core.pack import pack
from inorder.guarantee.attach import WHOLE, BrokerLink
from inorder.guarantee.broker import Knows, LinkedBroker, Lived
from inorder.guarantee.lines import Greeting
from inorder.protocols.session.messages import Ack, Frame
from tests.guarantee.test_lines import End, Wire, pub

EVERYTHING: Form = (Skeleton(), ())


# Lives.


def test_a_life_that_was_lost_begins_all_sessions_anew():
    """b says that a has lived longer than a knows: c, which does not, must not be stranded."""
    a, b, c = End("a"), End("b"), End("c")
    wire = Wire(a, b, c)
    wire.greet("a", "b")
    wire.greet("a", "c")
    wire.cut = {("a", "c"), ("c", "a")}
    wire.post("a", "c", pub(1))
    wire.post("c", "a", pub(1, "q"))
    wire.cut = set()
    a.receive("b", Greeting(2, 7))
    assert a.lines.life == 8
    wire.fire("c", "resend/a")
    wire.post("a", "c", pub(2))
    wire.post("c", "a", pub(2, "q"))
    assert a.taken == [pub(1, "q"), pub(2, "q")]
    assert c.taken == [pub(1), pub(2)]
    assert c.lines.idle


def test_a_life_that_leaves_none_above_it_is_refused():
    a, b = End("a"), End("b")
    with pytest.raises(BadMessage, match="is in life"):
        a.receive("b", Greeting(1, 2**31 - 1))
    Wire(a, b).greet("a", "b")
    assert (a.began, b.began) == (["b"], ["a"])


def test_what_is_late_from_a_former_life_does_not_end_the_greeting():
    """a comes back and greets b, which has nothing to say; an old acknowledgement comes, and what
    a answers is lost. b must hear of the new life all the same."""
    a, b = End("a"), End("b")
    wire = Wire(a, b)
    wire.greet("a", "b")
    late = Ack(2**31 + 1, 0, 0, (), "content")
    wire.ends["a"] = again = End("a", 2)
    wire.cut = {("a", "b")}
    wire.greet("a", "b")
    again.receive("b", late)
    assert CancelTimer("greet/b") not in again.effects
    wire.cut = set()
    wire.fire("a", "greet/b")
    assert b.began == ["a", "a"]
    assert again.effects[-1] == CancelTimer("greet/b")


def test_a_greeting_whose_answers_are_lost_is_answered_in_the_end():
    """b has begun the session and has nothing to say; a goes on greeting until it knows that."""
    a, b = End("a"), End("b")
    wire = Wire(a, b)
    wire.cut = {("b", "a")}
    wire.greet("a", "b")
    wire.cut = set()
    a.receive("b", Greeting(1, 0))
    wire.fire("a", "greet/b")
    assert a.effects[-1] == CancelTimer("greet/b")
    assert (a.began, b.began) == (["b"], ["a"])


def test_those_behind_one_that_is_given_up_go_on():
    """Nobody posts anything more: who waited behind it would wait for ever."""
    a, b = End("a"), End("b")
    wire = Wire(a, b)
    wire.greet("a", "b")
    a.lines._gate = lambda peer, event: event.topic != "shut"
    wire.post("a", "b", pub(1, topic="shut"), pub(2))
    assert b.taken == []
    a.lines.purge("b", lambda event: event.topic == "shut")
    wire.carry("a", a._sent(a.lines.flush(0.0)))
    assert b.taken == [pub(2)]


def test_what_a_former_life_waits_for_does_not_hold_up_the_next_one():
    wire = Wire(End("p"), End("b", 1, "c"), End("c"))
    wire.greet("b", "p")
    wire.greet("b", "c")
    wire.cut = {("b", "c")}
    wire.post("p", "b", pub(1))
    wire.ends["p"] = End("p", 2)
    wire.greet("p", "b")
    wire.post("p", "b", Attach())
    assert wire.ends["b"].acked("p") == 1


def test_a_former_life_that_knew_of_us_says_nothing_of_the_present_one():
    a = End("a")
    a.greet("b")
    a.receive("b", Greeting(2, 0))
    a.receive("b", Ack(2**31 + 1, 0, 0, (), "content"))
    assert CancelTimer("greet/b") not in a.effects


# Brokers.


class Speaker:
    """The other end of one link of a broker."""

    def __init__(self, name: str, broker: LinkedBroker, life: int = 1) -> None:
        self.name, self.broker = name, broker
        self.end = End(name, life)
        self.effects: list[Effect] = []

    def say(self, *bodies: Any) -> None:
        self.carry(self.end.post(self.broker.broker.name, *bodies))

    def carry(self, sent: list[tuple[str, Any]]) -> None:
        name = self.broker.broker.name
        while sent:
            effects: list[Effect] = []
            for target, message in sent:
                assert target == name
                effects += self.broker.receive(self.name, message, 0.0)
            self.effects += effects
            sent = []
            for effect in effects:
                if isinstance(effect, Send) and effect.target == self.name:
                    sent += self.end.receive(name, effect.message)

    def greet(self) -> None:
        self.carry(self.end.greet(self.broker.broker.name))


def returned(*clients: str, life: int = 1, near: tuple[str, ...] = ()) -> LinkedBroker:
    """A broker that has crashed, with these clients."""
    broker = LinkedBroker(Broker("b1"), near)
    broker.replay(pack(Lived(life)))
    for client in clients:
        broker.replay(pack(Knows(client, True)))
    broker.resume(0.0)
    return broker


def test_a_client_that_is_there_is_not_given_up_for_good():
    """Its subscriptions take longer than the patience; after the next crash it is greeted."""
    broker = returned("c")
    client = Speaker("c", broker)
    client.greet()
    client.say(Attach((), (7,)))
    effects = broker.fire(PATIENCE, PATIENCE_S)
    client.say(Sub(7, "t", (EVERYTHING,), 1))
    assert Installed(7, 1) in client.end.taken
    disk = [each.record for each in [*effects, *client.effects] if isinstance(each, Persist)]
    later = LinkedBroker(Broker("b1"), ())
    for record in [pack(Lived(2)), pack(Knows("c", True)), *disk]:
        later.replay(record)
    assert Send("c", Greeting(3, 0)) in later.resume(0.0)


def test_only_a_neighbour_may_greet_as_a_broker():
    broker = LinkedBroker(Broker("b1"), ("b2",))
    broker.begin(0.0)
    stranger = Speaker("x", broker)
    stranger.greet()
    stranger.say(Hello(("x",)))
    assert broker.broker.neighbours == ()
    assert any(isinstance(each, Note) and each.mark == "bad_frame" for each in stranger.effects)


def test_nothing_is_confirmed_in_the_batch_in_which_a_neighbour_has_said_all():
    """The advertisement and the word come in one inbox: the filter has not been sent yet."""
    broker = Broker("b1")
    broker.recover(("b2",), ())
    broker.renew("b2", 0.0)
    broker.receive("c", Attach(), 0.0)
    broker.receive("c", Sub(1, "t", (EVERYTHING,), 1), 0.0)
    broker.receive("b2", Hello(("b2",), again=True), 0.0)
    effects = broker.receive_all([("b2", Adv("t", True, 1)), ("b2", Said())], 0.0)
    assert Send("c", Installed(1, 1)) not in effects


def publisher(broker: LinkedBroker) -> Speaker:
    speaker = Speaker("p", broker)
    speaker.greet()
    speaker.say(Attach(("t",)))
    return speaker


@pytest.mark.parametrize("told", [False, True])
def test_events_that_a_neighbour_would_refuse_are_given_up_and_counted(told):
    """p takes the topic back while b2 is away, or before what b2 was told of can leave."""
    broker = returned(near=("b2",))
    source, neighbour = publisher(broker), Speaker("b2", broker)
    if told:
        neighbour.greet()
        neighbour.say(Hello(("b2",), again=True))
        broker._advertised["b2"].clear()  # as between the beginning of a session and its greeting
    source.say(pub(1), Adv("t", False))
    into = broker._lines._links.s.peers["p"].into
    assert broker.account()["events_dropped"] == told
    if not told:
        assert into.acknowledged == 1 < into.received, "it may be for b2"
        neighbour.greet()
        neighbour.say(Hello(("b2",), again=True))
        neighbour.say(Said())
    assert broker.account()["events_dropped"] == 1
    assert into.acknowledged == into.received == 3, "what is given up is paid for"


def test_a_client_that_is_given_up_leaves_nothing_behind():
    broker = returned("c", "p")
    source = publisher(broker)
    source.say(pub(1))
    assert not source.end.lines.idle, "it may be for c"
    effects = broker.fire(PATIENCE, PATIENCE_S)
    assert CancelTimer("greet/c") in effects
    for effect in effects:
        if isinstance(effect, Send):
            source.carry(source.end.receive("b1", effect.message))
    assert source.end.lines.idle
    later = LinkedBroker(Broker("b1"), ())
    for record in [pack(Knows("c", True)), *(e.record for e in effects if isinstance(e, Persist))]:
        later.replay(record)
    assert not any(isinstance(each, Send) for each in later.resume(0.0))


def test_what_waits_for_a_client_that_has_forgotten_all_is_given_up():
    broker = returned("c")
    source = publisher(broker)
    source.say(pub(1))
    client = Speaker("c", broker)
    client.greet()
    client.say(Attach())
    source.carry(source.end._sent(source.end.lines.fire("resend/b1", 0.0)))
    source.carry(source.end._sent(source.end.lines.fire("resend/b1", 0.0)))
    assert source.end.lines.idle
    assert client.end.taken == []


def test_what_waits_for_a_neighbour_that_will_not_hear_of_its_topic_is_given_up():
    broker = returned("p", near=("b2",))
    source = publisher(broker)
    source.say(pub(1))
    source.say(Adv("t", False))
    near = Speaker("b2", broker)
    near.greet()
    near.say(Hello(("b2",), again=True))
    for _ in range(4):  # the acknowledgement was lost: it is asked for, with patience
        source.carry(source.end._sent(source.end.lines.fire("resend/b1", 0.0)))
    assert source.end.lines.idle
    assert pub(1) not in near.end.taken


# Peers that do what no honest one does.


def test_copies_of_one_event_are_not_kept_without_bound(monkeypatch):
    monkeypatch.setattr("inorder.guarantee.lines.CUSTODY_MAX", 4)
    wire = Wire(End("p"), End("b", 1, "c"), End("c"))
    wire.greet("b", "p")
    wire.greet("b", "c")
    wire.cut = {("b", "c")}
    wire.post("p", "b", *[pub(1)] * 20)
    b = wire.ends["b"]
    [debt] = b.lines._open.values()
    assert len(debt.again) == 4
    assert b.acked("p") == 16
    wire.cut = set()
    wire.fire("b", "resend/c")
    assert b.acked("p") == 20
    assert wire.ends["p"].lines.idle


def test_a_client_that_acknowledges_no_answer_is_not_listened_to(monkeypatch):
    monkeypatch.setattr("inorder.guarantee.lines.LINE_WAITING_MAX", 3)
    broker = LinkedBroker(Broker("b1"), ())
    client = Speaker("c", broker)
    client.greet()
    client.say(Attach())
    answers = []
    for _, message in client.end.post("b1", *(Sub(1, "t", (), 1) for _ in range(20))):
        answers += broker.receive("c", message, 0.0)
    assert len(broker._lines._line("c").debts) == 4
    client.carry(client.end._sent(client.end.lines.fire("resend/b1", 0.0)))
    assert len(broker._lines._line("c").debts) == 4, "it has not heard of them either"
    sent = [each.message for each in answers if isinstance(each, Send)]
    for message in sent:
        client.carry(client.end.receive("b1", message))
    for _ in range(4):
        client.carry(client.end._sent(client.end.lines.fire("resend/b1", 0.0)))
    assert len(client.end.taken) == 20
    assert client.end.lines.idle


def test_a_topic_taken_back_that_was_not_advertised_again_changes_nothing():
    broker = Broker("b1")
    broker.recover(("b2",), ())
    broker.renew("b2", 0.0)
    broker.receive("b2", Hello(("b2",), again=True), 0.0)
    broker.receive("b2", Adv("t", True, 1), 0.0)
    broker.renew("b2", 1.0)
    broker.receive("b2", Hello(("b2",), again=True), 1.0)
    for wrong in (Adv("t", False, 1), Adv("t", True, 0)):
        with pytest.raises(BadMessage):
            broker.receive("b2", wrong, 1.0)
    broker.receive("b2", Said(), 1.0)
    assert broker.topics == {}


def test_numbers_of_a_link_stand_above_those_of_its_earlier_lives():
    """Of subscriptions, which the broker may still hold, and of messages that are no events."""
    numbers = []
    disk: list[bytes] = []
    for _ in range(2):
        link = BrokerLink("s", "b1", ("t",), "parametric")
        for record in disk:
            assert link.replay(record)
        disk += [each.record for each in link.begin(0.0) if isinstance(each, Persist)]
        link.join("t", (WHOLE, {}), 0.0)
        effects, _ = link.receive(Greeting(1, 0), 0.0)
        effects += [*link.flush(0.0), *link.diffuse(Diffuse("t", "no event"), 0.0)]
        bodies = [each.message.body for each in effects
                  if isinstance(each, Send) and isinstance(each.message, Frame)]  # fmt: skip
        numbers.append([each.sid for each in bodies if isinstance(each, Sub)]
                       + [each.seq for each in bodies if isinstance(each, Pub)])  # fmt: skip
    assert all(len(each) == 2 for each in numbers)
    assert min(numbers[1]) > max(numbers[0])
