"""What must be true of a run of the rig, whatever its seed.

1. `stored` is in the log exactly once, at the offset and under the name of its receipt; `refused`
   never; without an answer once or never. Nothing else is in the log.
2. One task's publications, one after the other, stand in their order; the lives of a name follow
   each other; a life counts upwards.
3. Each subscription was handed the projection of the log on its topics, its filters and its places,
   without a hole, up to where it ended; one that was not ended has all of it.
4. `latest` begins behind everything that had a receipt before, and before everything published
   after.
5. A durable name goes on behind what was acknowledged, and leaves nothing out that its last reader
   had not finished.
6. When the store works, everybody has everything within a quarter of a second.
7. Every call ends within its patience.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inorder.logs.topics import Topics
from tests.bus.rig import Life, Told

# Some polls and steps of the store; far below the second after which a lost wake-up is made up for.
SOON_S = 0.25


def judge(told: Told) -> None:
    """Raise AssertionError, with the seed, if something is not as it must be."""
    for problem in problems(told):
        raise AssertionError(f"seed {told.seed}, {told.kind}: {problem}")


def problems(told: Told) -> Iterator[str]:
    yield from _receipts(told)
    yield from _authors(told)
    for life in told.lives:
        yield from _projection(told, life)
        yield from _beginning(told, life)
    yield from _names(told)
    yield from _calm(told)
    yield from (f"took too long: {call}" for call in told.slow_calls)
    yield from (f"a failure that nobody took: {each}" for each in told.failures)


def _receipts(told: Told) -> Iterator[str]:
    places = defaultdict(list)
    for offset, topic, publisher, epoch, sequence, n in told.log:
        places[n].append((offset, topic, f"{publisher}:{epoch}:{sequence}"))
    for n, some in places.items():
        if n not in told.attempts:
            yield f"{some} were never published"
    for n, attempt in told.attempts.items():
        found = places.get(n, [])
        mine = (attempt.offset, attempt.topic, attempt.id)
        if len(found) > 1:
            yield f"event {n} is there twice: {found}"
        if attempt.outcome == "stored" and found != [mine]:
            yield f"event {n} has a receipt for {mine}, and the log has {found}"
        if attempt.outcome == "refused" and found:
            yield f"event {n} was refused ({attempt.error}), and is there: {found}"


def _authors(told: Told) -> Iterator[str]:
    lines: dict[str, int] = {}
    lives: dict[str, tuple[int, int]] = {}
    for offset, _, publisher, epoch, sequence, n in told.log:
        line = told.attempts[n].line if n in told.attempts else ""
        # What a caller has given up may come late: it waits for nothing then.
        answered = n in told.attempts and told.attempts[n].outcome == "stored"
        if answered and n < lines.get(line, -1):
            yield f"offset {offset}: event {n} of {line} stands behind {lines[line]}"
        if answered:
            lines[line] = n
        if (epoch, sequence) <= lives.get(publisher, (0, 0)):
            yield f"offset {offset}: {publisher}:{epoch}:{sequence} behind {lives[publisher]}"
        lives[publisher] = epoch, sequence


def expected(told: Told, life: Life) -> list[int]:
    """The positions that a life is handed, if it lives long enough."""
    topics = Topics(life.topics)
    found = []
    for offset, topic, _, _, _, n in told.log:
        if offset <= life.start or not topics.matches(topic):
            continue
        if topic in life.left and offset > life.left[topic]:
            continue
        low = [low for above, low in life.filters if offset > above][-1]
        if low is None or told.attempts[n].value >= low:
            found.append(offset)
    return found


def _projection(told: Told, life: Life) -> Iterator[str]:
    got = [position for position, *_ in life.got]
    wanted = expected(told, life)
    if got != wanted[: len(got)]:
        place = next(
            (k for k, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]),
            len(wanted),
        )
        yield (
            f"{life.name} from {life.start}: was handed {got[max(0, place - 2) : place + 3]} where"
            f" {wanted[max(0, place - 2) : place + 3]} stand (filters {life.filters}, left"
            f" {life.left})"
        )
    elif life.ended == "drained" and len(got) < len(wanted):
        yield f"{life.name}: never was handed {wanted[len(got) :]}"
    by_position = {offset: (topic, n) for offset, topic, _, _, _, n in told.log}
    for position, topic, n, value, _ in life.got:
        if by_position.get(position) != (topic, n) or told.attempts[n].value != value:
            yield f"{life.name}: position {position} was {topic}, {n}, {value}"


def _beginning(told: Told, life: Life) -> Iterator[str]:
    if not life.latest:
        return
    if life.start < life.before:
        yield f"{life.name}: latest began at {life.start}, but {life.before} had a receipt"
    for offset, _, _, _, _, n in told.log:
        if n >= life.next_n and offset <= life.start:
            yield f"{life.name}: latest began at {life.start}, event {n} at {offset} came later"


def _names(told: Told) -> Iterator[str]:
    """What a durable name went on behind. A call that takes the name over reads the position, and
    then shuts others out: what they acknowledge between the two may come again."""
    for claim in told.claims:
        life = claim.life
        others = [each for each in told.claims if each.name == claim.name and each is not claim]
        if life is None:
            continue
        for other in others:
            for called, at, position in other.life.acked if other.life else ():
                between = any(e.called <= at and e.returned >= called for e in told.claims)
                if at < claim.called and not between and life.start < position:
                    yield f"{life.name} began at {life.start}, {position} was acknowledged"
        before = [each for each in others if each.returned <= claim.called]
        if not before:
            continue
        last = max(before, key=lambda each: each.epoch)
        after = [each for each in others if each.returned > last.called and each is not last]
        if any(each.life is None and each.called < claim.returned for each in after):
            continue  # nobody knows what it had
        some = [each for each in (last, *after) if each.life and each.epoch < claim.epoch]
        done = max(max(each.life.start, each.life.done) for each in some if each.life)
        left = {topic for each in some if each.life for topic in each.life.left}
        held = Topics(life.topics)
        for offset, topic, *_ in told.log:
            if done < offset <= life.start and held.matches(topic) and topic not in left:
                yield f"{life.name} began at {life.start}, {done} was done: {offset} is left out"
                break


def _calm(told: Told) -> Iterator[str]:
    for n, at in told.calm.items():
        if told.attempts[n].outcome != "stored":
            yield f"event {n} was {told.attempts[n].outcome} though the store works"
        for life in told.lives:
            for _, _, number, _, got in life.got:
                if number == n and life.ended == "drained" and got > at + SOON_S:
                    yield f"{life.name}: event {n} came {got - at:.2f} s after its receipt"
