"""Random adversarial runs of one receiver, and what must hold after each of them.

A run draws a publisher with up to three lives whose clock may step, a network that loses, doubles
and delays, and a receiver with random options. The judge below looks only at what arrived when and
what was delivered when.
"""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import Struct

from inorder.protocols.fifo.estimator import estimator_class
from inorder.protocols.fifo.header import Header
from inorder.protocols.fifo.interests import Interests
from inorder.protocols.fifo.options import Options
from inorder.protocols.fifo.receiver import Receiver
from inorder.protocols.fifo.record import RecordWriter
from inorder.protocols.fifo.summary import (
    TOPIC_SUMMARY_BYTES,
    content_summary,
    elements,
    topic_summary,
)
from tests.protocols.fifo.twin import Twin

WANTED = ("a", "b")
TOPICS = ("a", "b", "c", "d", "e")


class Arrival(Struct, frozen=True):
    at: float
    header: Header
    # (incarnation, number): what the application would see.
    event: tuple[int, int]


class Delivery(Struct, frozen=True):
    event: tuple[int, int]
    in_order: bool
    at: float
    waited_s: float


class Run(Struct):
    options: Options
    arrivals: list[Arrival]
    deliveries: list[Delivery] = []
    # Numbers waited for, with their deadlines, after each input.
    waits: list[dict[tuple[int, int], float]] = []
    problems: list[str] = []


def draw(seed: int) -> Run:
    """The run of a seed."""
    rng = Random(f"fifo/{seed}")
    estimator = rng.choice(["predictive", "predictive", "laplace2", "static"])
    tau_max = rng.choice([0.01, 0.05, 0.2, 1.0])
    options = Options(
        late=rng.choice([0.01, 0.05, 0.2]),
        estimator=estimator,
        record=rng.choice([0, 1, 5, 25]),
        summary=rng.choice(["topic", "content"]),
        use_record=rng.choice([None, True, False]),
        tau_max=tau_max,
        initial_latch=rng.choice([0.0, 0.02, 0.05]),
        min_samples=rng.choice([1, 8]),
        adapt=rng.random() < 0.3,
        latch=rng.choice([0.005, 0.05, 0.5]),
        max_pending=rng.choice([10_000, 10_000, 5]),
        window=rng.choice([None, 8]),
    )
    arrivals: list[Arrival] = []
    clock = rng.uniform(0.0, 100.0)
    share = rng.choice([0.1, 0.5, 1.0])
    for life in range(rng.randint(1, 3)):
        clock = _life(rng, life * 1000, clock, share, options, arrivals)
    arrivals.sort(key=lambda each: (each.at, each.event))
    return Run(options, arrivals)


def _life(  # one life of the publisher: what it publishes, and what arrives of it
    rng: Random, incarnation: int, clock: float, share: float, options: Options, out: list[Arrival]
) -> float:
    by_topic = options.summary == "topic"
    hashes = 0 if by_topic else options.hashes
    size = TOPIC_SUMMARY_BYTES if by_topic else options.summary_bytes
    writer = RecordWriter(options.record, size, hashes)
    loss, double = rng.choice([0.0, 0.1, 0.5]), rng.choice([0.0, 0.2])
    spread = rng.choice([0.0, 0.002, 0.02, 0.1])
    steps = rng.random() < 0.2
    offset = 0.0
    last_us = 0
    for seq in range(1, rng.randint(2, 150)):
        clock += rng.expovariate(100.0) if rng.random() < 0.9 else 0.0
        if steps and rng.random() < 0.05:
            offset += rng.choice([2.0, -1.0, -0.01])
        departure_us = max(0, int((clock + offset) * 1e6))
        wanted = rng.random() < share
        topic = rng.choice(WANTED) if wanted else rng.choice(TOPICS[2:])
        gap_us = max(0, departure_us - last_us) if seq > 1 else 0
        summary = topic_summary(topic) if by_topic else _content(topic, seq, options)
        record = writer.next(gap_us, summary)
        header = Header(incarnation, seq, departure_us, gap_us, record)
        last_us = departure_us
        if not wanted or rng.random() < loss:
            continue
        for _ in range(2 if rng.random() < double else 1):
            delay = 0.01 + rng.expovariate(1.0) * spread
            if rng.random() < 0.02:
                delay += rng.uniform(0.0, 2.0)
            # Round, so that arrivals and deadlines fall on one instant now and then.
            at = round(clock + delay, 3) if rng.random() < 0.3 else clock + delay
            out.append(Arrival(at, header, (incarnation, seq)))
    return clock


def _content(topic: str, seq: int, options: Options) -> bytes:
    shown = elements(topic, {"n": seq, "kind": "x"})
    return content_summary(shown, options.summary_bytes, options.hashes)


def build(options: Options, kind: Any = Receiver) -> Any:
    interests = Interests(options.interest_window)
    interests.hold(WANTED)
    return kind(options, estimator_class(options.estimator).from_options(options), interests)


def play(run: Run, receiver: Any = None) -> Run:
    """Let the receiver hear it all: timers on time, arrivals first at the same instant."""
    receiver = receiver or build(run.options)

    def note(deliveries: list[Any], at: float) -> None:
        for each in deliveries:
            run.deliveries.append(Delivery(each.event, each.in_order, at, each.waited_s))
        run.waits.append(_waits(receiver))
        if (receiver.deadline is None) != (not receiver.pending):
            run.problems.append(f"deadline {receiver.deadline} with {receiver.pending}")

    now = 0.0
    for arrival in run.arrivals:
        while receiver.deadline is not None and receiver.deadline < arrival.at:
            now = max(now, receiver.deadline)
            note(receiver.fire(now), now)
        now = arrival.at
        note(receiver.receive(arrival.header, arrival.event, now), now)
    for _ in range(10_000):
        if receiver.deadline is None:
            return run
        now = max(now, receiver.deadline)
        note(receiver.fire(now), now)
    run.problems.append("never comes to rest")
    return run


def _waits(receiver: Receiver) -> dict[tuple[int, int], float]:
    missing = receiver.missing
    life = receiver.incarnation or 0
    return {
        (life, number): deadline
        for start, end, deadline in zip(
            missing.starts, missing.ends, missing.deadlines, strict=True
        )
        for number in range(start, end + 1)
    }


def problems(run: Run) -> list[str]:
    """What is wrong with a run that was played; the letters are those of the properties."""
    found = list(run.problems)
    first_arrival: dict[tuple[int, int], float] = {}
    for arrival in run.arrivals:
        first_arrival.setdefault(arrival.event, arrival.at)
    times = [each.event for each in run.deliveries]
    if len(set(times)) != len(times):
        found.append("B3: an event was delivered twice")
    if set(times) - set(first_arrival):
        found.append("B4: an event was invented")
    if set(first_arrival) - set(times):
        found.append(f"B4: never delivered {sorted(set(first_arrival) - set(times))}")
    highest: tuple[int, int] = (-1, 0)
    contradictions = _contradictions(run)
    for each in run.deliveries:
        if each.in_order:
            if each.event < highest:
                found.append(f"B1: {each.event} in order after {highest}")
        elif each.event > highest and each.event not in contradictions:
            found.append(f"B2: {each.event} tagged, nothing later was delivered")
        if each.in_order:
            highest = each.event
        arrived = first_arrival.get(each.event, 0.0)
        if each.at < arrived:
            found.append(f"B5: {each.event} delivered before it came")
        if each.at - arrived > run.options.tau_max + 1e-9:
            found.append(f"B5: {each.event} waited {each.at - arrived}")
        if abs(each.waited_s - (each.at - arrived)) > 1e-9:
            found.append(f"B5: {each.event} says it waited {each.waited_s}")
    found += _needless_waits(run, first_arrival)
    for before, after in zip(run.waits, run.waits[1:], strict=False):
        for number, deadline in after.items():
            if deadline > before.get(number, deadline):
                found.append(f"B7: the deadline of {number} grew")
    return found


def _contradictions(run: Run) -> set[tuple[int, int]]:
    """Events whose departure lay before that of a smaller number that had come: tagged by rule."""
    found: set[tuple[int, int]] = set()
    for place, arrival in enumerate(run.arrivals):
        for earlier in run.arrivals[:place]:
            same = earlier.event[0] == arrival.event[0]
            if (
                same
                and earlier.event < arrival.event
                and earlier.header.departure_us > arrival.header.departure_us
            ):
                found.add(arrival.event)
    return found


def _needless_waits(run: Run, first_arrival: dict[tuple[int, int], float]) -> list[str]:
    """B6: whoever waits has a smaller number of its life that had not come when it came."""
    found = []
    for each in run.deliveries:
        if not each.waited_s:
            continue
        life, number = each.event
        arrived = first_arrival[each.event]
        come = {
            event[1] for event, at in first_arrival.items() if event[0] == life and at <= arrived
        }
        if all(smaller in come for smaller in range(1, number)):
            found.append(f"B6: {each.event} waited for nothing")
    return found


def differs_from_twin(run: Run) -> str:
    """Where the receiver and its twin disagree on a run; empty if nowhere."""
    if run.options.max_pending < 10_000:
        return ""
    receiver, twin = build(run.options), build(run.options, Twin)
    now = 0.0
    for arrival in run.arrivals:
        while receiver.deadline is not None and receiver.deadline < arrival.at:
            now = max(now, receiver.deadline)
            if said := _compare(receiver.fire(now), twin.fire(now), now):
                return said
        now = arrival.at
        ours = receiver.receive(arrival.header, arrival.event, arrival.at)
        theirs = twin.receive(arrival.header, arrival.event, arrival.at)
        if said := _compare(ours, theirs, arrival.at):
            return said
        if receiver.deadline != twin.deadline:
            return f"at {arrival.at}: {receiver.deadline} is not {twin.deadline}"
    return ""


def _compare(ours: list[Any], theirs: list[Any], at: float) -> str:
    mine = [(each.event, each.in_order) for each in ours]
    return "" if mine == theirs else f"at {at}: {mine} is not {theirs}"


__all__ = ["Run", "build", "differs_from_twin", "draw", "play", "problems"]
