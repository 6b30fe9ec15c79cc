"""Runs of events, as adapters check, cut and admit them. No Python object for an event on the way,
but where a run is cut in the middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from inorder.core.errors import Misuse, Refused, Replaced, TooLarge
from inorder.core.limits import NAMELESS_KEPT_MAX
from inorder.logs.broker import Author, Run

_encode = msgspec.msgpack.Encoder().encode
_raw = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode

NIL = msgspec.Raw(_encode(None))


def check(author: Author, runs: Sequence[Run], event_bytes: int) -> tuple[int, int]:
    """Raise if these are not events that this author may append, in this order; the first sequence
    and the number of events."""
    if not runs:
        raise Misuse("an append without events")
    following = events = 0
    for run in runs:
        if run.publisher != author.publisher or run.epoch != author.epoch:
            wrong = f"{run.publisher}:{run.epoch}"
            raise Misuse(f"{author.publisher}:{author.epoch} appends events of {wrong}")
        if run.count < 1 or run.sequence < 1 or run.sequence < following:
            raise Misuse(f"{author.publisher}: sequences of an append begin at 1 and grow")
        for column in (run.keys, run.headers):
            if column is not None and len(column) != run.count:
                raise Misuse(f"{run.count} events with {len(column)} keys or headers")
        if length(run.values) != run.count:
            raise Misuse(f"values are no MessagePack array of {run.count}")
        if len(run.values) > event_bytes:
            largest = max(map(len, _raw(run.values)))
            if largest > event_bytes:
                raise TooLarge("event, in bytes,", largest, event_bytes)
        following = run.sequence + run.count
        events += run.count
    return runs[0].sequence, events


def admit(author: Author, first: int, known: tuple[int, int]) -> None:
    """Raise if events from this sequence on may not follow what is `known` of their publisher: its
    last epoch, and the last sequence of that."""
    if author.epoch > known[0]:
        return
    if author.epoch < known[0]:
        raise Replaced(author.publisher, author.epoch)
    if first <= known[1]:
        name = f"{author.publisher}:{author.epoch}"
        raise Refused(f"{name}: event {first} is not above {known[1]}, the last that is stored")


class Authors:
    """What is known of publishers: each one's last epoch, and the last sequence of that.

    Of those without a name only the latest are kept. A publisher settles what has become of an
    append before it sends on, so what it sends again is soon sent again.
    """

    def __init__(self) -> None:
        self._named: dict[str, tuple[int, int]] = {}
        self._nameless: dict[str, tuple[int, int]] = {}

    def known(self, author: Author) -> tuple[int, int]:
        return (self._named if author.named else self._nameless).get(author.publisher, (0, 0))

    def last(self, author: Author) -> int | None:
        """The last sequence of this life; None if that is not kept."""
        return last(author, self.known(author), len(self._nameless))

    def note(self, author: Author, sequence: int) -> None:
        kept = self._named if author.named else self._nameless
        kept.pop(author.publisher, None)
        kept[author.publisher] = author.epoch, sequence
        if len(self._nameless) > NAMELESS_KEPT_MAX:
            del self._nameless[next(iter(self._nameless))]


def last(author: Author, known: tuple[int, int], nameless: int) -> int | None:
    """What is known of an author's last sequence, where so many nameless ones are kept."""
    if known[0] == author.epoch:
        return known[1]
    if known[0] > author.epoch:
        return None
    return None if known[0] == 0 and not author.named and nameless >= NAMELESS_KEPT_MAX else 0


def length(array: bytes) -> int:
    """How many values a MessagePack array has by its own account; -1 if it is none."""
    first = array[0] if array else 0
    if first & 0xF0 == 0x90:
        return first & 0x0F
    if first in (0xDC, 0xDD):
        return int.from_bytes(array[1 : 3 if first == 0xDC else 5])
    return -1


def span(run: Run) -> int:
    """How many offsets a run takes: the beginning of a life takes one."""
    return run.count or 1


def cut(run: Run, start: int, end: int) -> Run:
    """The events of a run from one place to before another."""
    return run if start == 0 and end >= run.count else _part(run, _raw(run.values), start, end)


def _part(run: Run, values: list[msgspec.Raw], start: int, end: int) -> Run:
    return replace(
        run,
        sequence=run.sequence + start,
        count=end - start,
        values=_encode(values[start:end]),
        keys=run.keys and run.keys[start:end],
        headers=run.headers and run.headers[start:end],
        offset=run.offset + start if run.offset >= 0 else run.offset,
    )


def pieces(run: Run, size: int) -> Iterator[Run]:
    """A run in pieces of about so many bytes; a larger event is a piece by itself."""
    if len(run.values) <= size or run.count <= 1:
        yield run
        return
    values = _raw(run.values)
    start = taken = 0
    for place, value in enumerate(values):
        if taken and taken + len(value) > size:
            yield _part(run, values, start, place)
            start, taken = place, 0
        taken += len(value)
    yield _part(run, values, start, run.count)


def without(run: Run, place: int) -> Run:
    """A run with one of its events erased."""
    values: list[Any] = _raw(run.values)
    values[place] = NIL
    return replace(
        run,
        values=_encode(values),
        keys=run.keys and _none_at(run.keys, place),
        headers=run.headers and _none_at(run.headers, place),
    )


def _none_at(column: Sequence[Any], place: int) -> tuple[Any, ...]:
    return (*column[:place], None, *column[place + 1 :])
