"""Recovery: a crash is only a delay (P11), and a replaced owner is not heard."""

from __future__ import annotations

from itertools import pairwise

import pytest

from inorder.core.effect import Diffuse, Persist, Send
from inorder.core.errors import BadMessage, PeerFault
from inorder.core.event import Event
from inorder.core.numbers import Numbers
from inorder.core.wire import Decoder, encode
from inorder.protocols.session.book import durable
from inorder.protocols.session.messages import Ack, Frame
from inorder.protocols.total import Client, Ranking, Stage, service
from inorder.protocols.total.messages import (
    Abort,
    Accepted,
    Ask,
    Complete,
    Create,
    Events,
    Fill,
    Freeze,
    Frozen,
    Gone,
    Heartbeat,
    Install,
    Left,
    Message,
    Ready,
    Renew,
    Repair,
    Walk,
    WalkDone,
)
from tests.protocols.total.drive import FIRST, SECOND, TOPICS, Net, bodies, client, marks, of, stage


def busy_net(**options):
    net = Net("a", "b", "p", swaps="on", **options)
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    net.call("b", "subscribe", "b/1", ["t2", "t3"])
    for number in range(6):
        net.call("p", "publish", TOPICS[number % 3], {"n": number})
    net.call("ranking", "reorder", ("t3", "t1", "t2"))
    net.fire("ranking", "collect")
    net.call("p", "publish", "t2", {})
    return net


@pytest.mark.parametrize("name", ["stage1", "stage2", "stage3", "ranking"])
def test_replaying_the_log_gives_the_same_machine(name):
    net = busy_net()
    machine = net.machines[name]
    twin = type(machine).restore(machine.snapshot())
    fresh = Stage(name, machine.directory, machine.options) if name != "ranking" else Ranking(
        machine.directory, machine.options)  # fmt: skip
    for record in net.disks[name]:
        fresh.replay(record)
    # What is not in the log only frees memory: acknowledgements, reports, heartbeats.
    for each in (fresh, twin):
        each.links.load(durable(each.links.s))
        for link in each.links.s.peers.values():
            link.out.unacked = []
            link.out.reached = Numbers.after(link.out.sent)
            link.token = 0
        for manager in getattr(each, "managers", {}).values():
            manager.s.reported = {}
            manager._trim()
        if name != "ranking":
            each.s.beats = {}
        each._logged = 0
    assert fresh.snapshot() == twin.snapshot()


def test_a_restarted_stage_goes_on_numbering_where_it_stopped():
    net = busy_net()
    before = {t: m.s.count for s in ("stage1", "stage2", "stage3")
              for t, m in net.machines[s].managers.items()}  # fmt: skip
    for name in ("stage1", "stage2", "stage3", "ranking"):
        net.restart(name)
    for topic in TOPICS:
        net.call("p", "publish", topic, {})
    after = {t: m.s.count for s in ("stage1", "stage2", "stage3")
             for t, m in net.machines[s].managers.items()}  # fmt: skip
    assert after == {topic: count + 1 for topic, count in before.items()}
    assert len(set(net.delivered["a"])) == len(net.delivered["a"])
    net.rest()
    assert all(net.machines[name].idle for name in ("stage1", "stage2", "stage3", "p"))


def is_image(record: bytes) -> bool:
    return isinstance(service._unpack(record), service.Image)


def test_the_log_is_cut_by_snapshots(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.service.LOG_RECORDS_MAX", 5)
    net = busy_net()
    disk = net.disks["stage2"]
    last = max(n for n, record in enumerate(disk) if is_image(record))
    assert len(disk) - last <= 6
    net.disks["stage2"] = disk[last:]
    count = net.machines["stage2"].managers["t2"].s.count
    net.restart("stage2")
    assert net.machines["stage2"].managers["t2"].s.count == count
    net.call("p", "publish", "t2", {})
    assert net.machines["stage2"].managers["t2"].s.count == count + 1


def test_the_log_is_cut_by_its_bytes_too(monkeypatch):
    """So few large events do not make a log that takes long to read."""
    monkeypatch.setattr("inorder.protocols.total.service.LOG_RECORD_BYTES_MAX", 400)
    net = busy_net()
    for _ in range(60):
        net.call("p", "publish", "t2", {})
    disk = net.disks["stage2"]
    images = [n for n, record in enumerate(disk) if is_image(record)]
    assert len(images) > 2
    for first, following in pairwise([*images, len(disk)]):
        between = sum(map(len, disk[first + 1 : following]))
        assert between <= max(400, 2 * len(disk[first])) or following == first + 2


def test_a_replay_counts_what_the_owner_before_has_counted(monkeypatch):
    monkeypatch.setattr("inorder.protocols.total.service.LOG_RECORD_BYTES_MAX", 400)
    net = busy_net()
    before = net.machines["stage2"]
    again = type(before)("stage2", before.directory, before.options)
    for record in net.disks["stage2"]:
        again.replay(record)
    counted = [(m._logged, m._logged_bytes, m._image_bytes) for m in (again, before)]
    assert counted[0] == counted[1]


def test_everything_visible_comes_behind_its_record():
    net = busy_net()
    machine = net.machines["stage3"]
    number = machine.links.s.peers["p"].into.received + 1
    event = Event("p", 5000, "t3")
    effects = machine.receive("p", Frame(FIRST, 0, number, 0, Create("t3", (event,))), 0.0)
    kinds = [type(effect) for effect in effects]
    assert kinds[0] is Persist
    assert Persist not in kinds[1:]
    assert {Send, Diffuse} & {*kinds[1:]}


def test_a_replaced_owner_is_not_heard():
    """Scenario 23: the zombie keeps sending."""
    net = Net("a", "p")
    net.call("a", "subscribe", "a/1", ["t1", "t2"])
    zombie = type(net.machines["stage2"]).restore(net.machines["stage2"].snapshot())
    net.restart("stage2")
    net.call("p", "publish", "t2", {})
    assert net.machines["stage2"].links.s.token == 1
    event = Event("q", 1, "t2")
    effects = zombie.receive("q", Frame(FIRST, 0, 1, 0, Create("t2", (event,))), 0.0)
    stage1 = net.machines["stage1"]
    before = stage1.snapshot()
    fills = [each for each in of(Send, effects) if each.target == "stage1"]
    assert fills, "the zombie believes it is the owner"
    for each in fills:
        assert marks(stage1.receive("stage2", each.message, 0.0)) == ["fenced"]
    assert stage1.snapshot() == before


def test_a_snapshot_is_the_whole_state():
    net = busy_net()
    for machine in net.machines.values():
        bytes_ = machine.snapshot()
        assert type(machine).restore(bytes_).snapshot() == bytes_


def test_messages_of_an_old_life_are_refused():
    net = Net("p")
    net.call("p", "publish", "t1", {})
    late = Frame(FIRST, 0, 2, 0, Create("t1", (Event("p", 2, "t1"),)))
    net.restart("p")
    net.call("p", "publish", "t1", {})
    stage1 = net.machines["stage1"]
    before = stage1.snapshot()
    assert marks(stage1.receive("p", late, 0.0)) == ["old_session"]
    assert stage1.snapshot() == before


# Bad messages: refused by name, and nothing has changed.

GOOD = Event("p", 1, "t1")

TO_A_STAGE = [
    Frame(FIRST, 0, 1, 0, Create("t3", (Event("p", 1, "t3"),))),  # not its home
    Frame(FIRST, 0, 1, 0, Create("t1", ())),
    Frame(FIRST, 0, 1, 0, Create("t1", (Event("q", 1, "t1"),))),  # a forged publisher
    Frame(FIRST, 0, 1, 0, Create("t1", (Event("p", 2, "t1"), Event("p", 1, "t1")))),
    Frame(FIRST, 0, 1, 0, Create("t1", (Event("p", 1, "t2"),))),
    Frame(FIRST, 0, 1, 0, Fill(0, "t2", 1, 1, "t1", ("t1",), ())),  # from a client
    Frame(FIRST, 0, 1, 0, Complete("t1", 1, ())),
    Frame(FIRST, 0, 1, 0, Left("p", 1)),
    Frame(FIRST, 0, 1, 0, Walk("q", 1 << 32, ("t1",), ("t1",))),  # a forged subscriber
    Frame(FIRST, 0, 1, 0, Walk("p", 1 << 32, ("t1",), ())),
    Frame(FIRST, 0, 1, 0, Walk("p", 1 << 32, ("t1",), ("t9",))),
    Frame(FIRST, 0, 1, 0, Walk("p", 7 << 32, ("t1",), ("t1",))),  # a life it has not begun
    Frame(FIRST, 0, 1, 0, Freeze(0, 1, ())),
    Frame(FIRST, 0, 1, 0, Install(1, TOPICS, ())),
    Frame(FIRST, 0, 1, 0, Ask(0, 1)),
    Frame(FIRST, 0, 1, 0, Abort(0, 1)),
    Frame(FIRST, 0, 1, 0, Accepted("t1", 1, 1, 1, 0, ())),
    Repair("t9", 1, 2),
    Repair("t1", 0, 2),
    Renew((("t9", 1, 0),)),
    Heartbeat("t1", 1),
    Create("t1", (GOOD,)),  # not in a frame
]


@pytest.mark.parametrize("message", TO_A_STAGE, ids=lambda m: type(getattr(m, "body", m)).__name__)
def test_a_stage_refuses_what_nobody_honest_sends(message):
    machine = stage("stage1")
    before = machine.snapshot()
    with pytest.raises(BadMessage):
        machine.receive("p", message, 0.0)
    assert machine.snapshot() == before


def test_a_round_of_an_old_epoch_is_served_if_its_way_is_still_the_way():
    machine = stage("stage1", swaps="on")
    machine.s.epoch = 3
    old = Fill(1, "t2", 1, 1, "t1", ("t1",), (("t2", 1),))
    effects = machine.receive("stage2", Frame(0, 0, 1, 0, old), 0.0)
    assert ("stage2", Complete("t2", 1, (("t1", 0), ("t2", 1)))) in bodies(effects)
    machine.s.order = ("t3", "t2", "t1")
    machine.lay_path()
    before = machine.snapshot()
    back = Fill(1, "t2", 2, 1, "t1", ("t2",), ())
    machine.receive("stage2", Frame(0, 0, 2, 0, back), 0.0)
    machine = Stage.restore(before)
    bad = Fill(1, "t2", 2, 1, "t1", ("t2", "t1"), ())
    with pytest.raises(BadMessage, match="a way from t1"):
        machine.receive("stage2", Frame(0, 0, 2, 0, bad), 0.0)
    assert machine.snapshot() == before


def test_a_round_of_a_newer_epoch_waits_for_it():
    machine = stage("stage1", swaps="on")
    effects = machine.receive(
        "stage2", Frame(0, 0, 1, 0, Fill(1, "t2", 1, 1, "t1", ("t1",), (("t2", 1),))), 0.0
    )
    assert "early" in marks(effects)
    assert len(machine.s.change.early) == 1


def test_what_only_an_epoch_to_come_could_say_is_refused():
    machine = stage("stage1", swaps="on")
    before = machine.snapshot()
    ahead = (
        Install(2, TOPICS, ()),
        Install(1, TOPICS, ()),
        Freeze(7, 1, ()),
        Ask(1, 1),
        Abort(1, 1),
    )
    for wrong in (*ahead, Freeze(0, 1, ("t2",))):
        with pytest.raises(BadMessage):
            machine.receive("ranking", Frame(0, 0, 1, 0, wrong), 0.0)
    machine.s.change.frozen = machine.s.change.answered = True
    with pytest.raises(BadMessage, match="not one of the topics"):
        machine.receive("ranking", Frame(0, 0, 1, 0, Install(1, ("t1",), ())), 0.0)
    machine.s.change.frozen = machine.s.change.answered = False
    assert machine.snapshot() == before


def test_what_is_late_is_taken_and_comes_to_nothing():
    """A frame that is refused is never counted as taken: its session would stand still for ever."""
    net = busy_net()
    machine = net.machines["stage1"]
    link = machine.links.s.peers["ranking"].into
    state = (machine.s.epoch, machine.s.order, machine.s.change.frozen)
    late = (Ask(0, 1), Freeze(0, 1, ("t1",)), Abort(0, 1), Abort(1, 1), Install(1, TOPICS, ()))
    for body in late:
        number = link.received + 1
        effects = machine.receive("ranking", Frame(0, 0, number, 0, body), 0.0)
        assert marks(effects) == ["late"]
        assert link.received == number
    assert (machine.s.epoch, machine.s.order, machine.s.change.frozen) == state
    ranking = net.machines["ranking"]
    link = ranking.links.s.peers["stage1"].into
    before = (ranking.s.epoch, ranking.s.phase, ranking.s.attempt)
    for body in (Ready(0, 1, (), 0.0), Frozen(0, 1, ()), Frozen(1, 1, (("t1", 9),))):
        number = link.received + 1
        effects = ranking.receive("stage1", Frame(0, 0, number, 0, body), 0.0)
        assert marks(effects) == ["late"]
        assert link.received == number
    assert (ranking.s.epoch, ranking.s.phase, ranking.s.attempt) == before


TO_A_CLIENT = [
    ("stage2", Events("t1", 1, 0, (), (GOOD,))),  # not its home
    ("q", Events("t1", 1, 0, (), (GOOD,))),
    ("stage1", Events("t1", 0, 0, (), (GOOD,))),
    ("stage1", Events("t1", 1, 0, (), ())),
    ("stage1", Events("t1", 1, 0, (), (Event("p", 1, "t2"),))),
    ("stage2", Heartbeat("t1", 1)),
    ("stage2", Gone("t1", 1)),
    ("stage1", Frame(FIRST, 0, 1, 0, WalkDone("a", 99 << 32, ()))),
    ("q", Frame(FIRST, 0, 1, 0, WalkDone("a", 1, ()))),
    ("stage1", Frame(FIRST, 0, 1, 0, Freeze(0, 1, ()))),
    ("stage1", WalkDone("a", 1 << 32, ())),  # not in a frame
    ("stage1", Repair("t1", 1, 1)),
]


@pytest.mark.parametrize(("source", "message"), TO_A_CLIENT)
def test_a_client_refuses_what_nobody_honest_sends(source, message):
    net = Net("a")
    net.call("a", "subscribe", "a/1", ["t1"])
    machine = net.machines["a"]
    before = machine.snapshot()
    if isinstance(message, Frame):
        link = machine.links.s.peers.get(source)
        number = link.into.received + 1 if link else 1
        message = Frame(FIRST, 0, number, 0, message.body)
    with pytest.raises(BadMessage):
        machine.receive(source, message, 0.0)
    assert machine.snapshot() == before


def test_a_stamp_from_the_future_is_held_and_asked_about():
    """The stated rule: nobody can tell it from an event whose predecessors are late."""
    net = Net("a")
    net.call("a", "subscribe", "a/1", ["t1"])
    machine = net.machines["a"]
    machine.receive("stage1", Events("t1", 9, 0, (), (GOOD,)), 0.0)
    assert machine.subscriber.engine.held.size == 1
    asked = machine.fire("repair", 0.0)
    assert [each.message for each in of(Send, asked)] == [Repair("t1", 1, 8)]


def test_a_duplicate_request_in_a_new_session_is_numbered_once():
    net = Net("p")
    net.call("p", "publish", "t1", {})
    stage1 = net.machines["stage1"]
    effects = stage1.receive("p", Frame(SECOND, 0, 1, 0, Create("t1", (GOOD,))), 0.0)
    assert "duplicate_create" in marks(effects)
    assert stage1.managers["t1"].s.count == 1


def test_every_message_survives_the_wire():
    decode = Decoder(Message).decode
    for message in (*TO_A_STAGE, *(message for _, message in TO_A_CLIENT), Ack(FIRST, 2, 3)):
        assert decode(encode(message)) == message


def test_mutated_frames_never_raise_anything_but_peer_faults():
    from random import Random

    rng = Random(7)
    decode = Decoder(Message).decode
    machine = stage("stage1")
    receiver: Client = client("a")
    receiver.subscribe("a/1", ["t1"], 0.0)
    good = [encode(message) for message in TO_A_STAGE] + [encode(m) for _, m in TO_A_CLIENT]
    for _ in range(20_000):
        frame = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 3)):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        try:
            message = decode(bytes(frame))
            source = rng.choice(("p", "a", "stage1", "stage2", "ranking"))
            rng.choice((machine, receiver)).receive(source, message, 0.0)
        except PeerFault:
            pass
