"""A subscriber over one log: live, from the past, and in Spark the only kind there is.

It reads ahead, and judges an event when the application asks for the next one. So a filter that
moves judges everything above what was handed out last, also what was kept back before: "done" is
what the application has had, and reading goes on there again.

Rule 1: an event is handed over once, in the order of the log, if its topic is held and the filter,
        as it is at that moment, lets it through.
Rule 2: `done` never goes back, and never lies below a position that was stored as durable.
Rule 3: what was removed or damaged is handed over as an error between two events, once.
Rule 4: what is read ahead is bounded in bytes; the log keeps the rest.

Theory. Over one log the offset is the position, so no record of an order is needed: every reader's
sequence is a projection of one log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from inorder.core.errors import BadValue, Damaged, InorderError, Removed
from inorder.core.limits import READ_BYTES_AT_ONCE, UNREAD_BYTES_MAX
from inorder.logs.broker import Rows, Run
from inorder.logs.event import Event
from inorder.logs.topics import Topics

# Whether an event of this value is wanted.
Judge = Callable[[Any], bool]

_decode_any = msgspec.msgpack.Decoder(list[Any]).decode
_decode_raw = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_decode_one = msgspec.msgpack.Decoder().decode


class Reader:
    """Reads the log with the identity `order` above position `after`."""

    def __init__(
        self, topics: Topics, order: str, after: int, judge: Judge | None = None,
        kind: type | None = None,
    ) -> None:  # fmt: skip
        self.topics = topics
        # Handed out last; and how far everything was handed out or kept back.
        self.done = self.passed = after
        self._order = order
        self._judge = judge
        self._decode: Callable[[Any], Sequence[Any]] = _decode_any
        self._convert: Callable[[Any], Any] | None = None
        if kind is not None:
            self._convert = lambda value: msgspec.convert(value, kind)
            if judge is None:
                # A filter looks at plain values; without one they need not exist.
                self._decode = msgspec.msgpack.Decoder(list[kind]).decode  # type: ignore[valid-type]
                self._convert = None
        self._left: dict[str, None] = {}
        self._ahead: deque[Run | InorderError] = deque()
        self._bytes = 0
        self._next = after + 1
        self._run: Run | None = None
        self._values: Sequence[Any] = ()
        self._index = 0

    # Reading ahead.

    @property
    def wants(self) -> int | None:
        """The offset to read from, or None while enough waits here."""
        return self._next if self._bytes < UNREAD_BYTES_MAX else None

    @property
    def limit(self) -> int:
        """About how many bytes to read."""
        return min(READ_BYTES_AT_ONCE, UNREAD_BYTES_MAX - self._bytes)

    def receive(self, offset: int, rows: Rows) -> None:
        """What was read from this offset on. A filter may have moved meanwhile: then it is not what
        is wanted now."""
        if offset != self._next:
            return
        removed = deque(Removed(start, upto) for start, upto in rows.removed if upto > offset)
        for run in rows.runs:
            while removed and removed[0].start <= run.offset:
                self._ahead.append(removed.popleft())
            if self.topics.matches(run.topic) and run.count:
                self._ahead.append(run)
                self._bytes += len(run.values)
        self._ahead.extend(removed)
        self._next = rows.upto

    def damaged(self, offset: int, error: Damaged) -> None:
        """Nothing can be read at this offset."""
        if offset == self._next:
            self._ahead.append(error)
            self._next = error.upto if error.upto is not None else offset

    # Handing out.

    def take(self) -> Event[Any] | None:
        """The next event, or None as long as there is none; raises what lies between events."""
        while True:
            run = self._run
            if run is not None:
                values, judge, index, count = self._values, self._judge, self._index, run.count
                while index < count:
                    value = values[index]
                    index += 1
                    if value is None or (judge is not None and not judge(value)):
                        continue
                    self._index = index
                    self.done = self.passed = position = run.offset + index - 1
                    if self._convert is not None:
                        value = self._converted(value)
                    return Event(value, position, self._order, run, index - 1)
                self._finish(run)
            if not self._ahead:
                self.passed = max(self.passed, self._next - 1)
                return None
            self._advance()

    def _finish(self, run: Run) -> None:
        self._run, self._values = None, ()
        self._bytes -= len(run.values)
        self.passed = run.offset + run.count - 1

    def _advance(self) -> None:
        item = self._ahead.popleft()
        if not isinstance(item, Run):
            upto = item.upto if isinstance(item, Removed | Damaged) else None
            if upto is not None:
                self.done = self.passed = max(self.passed, upto - 1)
            raise item
        if item.topic in self._left or item.offset + item.count - 1 <= self.passed:
            self._finish(item)
            return
        self._run, self._index = item, max(0, self.passed + 1 - item.offset)
        try:
            self._values = self._decode(item.values)
        except msgspec.MsgspecError:
            self._values = self._one_by_one(item)
        if len(self._values) != item.count:
            problem = f"{len(self._values)} values stand where {item.count} events are"
            self._finish(item)
            raise Damaged("log", problem, item.offset, item.offset + item.count)

    def _one_by_one(self, run: Run) -> Sequence[Any]:
        """Values of which one is of another type: the others are handed out all the same."""
        values: list[Any] = []
        for raw in _decode_raw(run.values):
            try:
                [value] = self._decode(b"\x91" + bytes(raw))
            except msgspec.MsgspecError as error:
                value = _Wrong(str(error)) if _decode_one(raw) is not None else None
            values.append(value)
        self._convert = self._convert or _unless_wrong
        return values

    def _converted(self, value: Any) -> Any:
        assert self._convert is not None
        try:
            return self._convert(value)
        except msgspec.ValidationError as error:
            raise BadValue(f"the event at position {self.done}: {error}") from None

    # Changing.

    def move(self, judge: Judge | None, durable: int) -> int:
        """From now on another filter judges; returns the position above which it does. `durable`
        is the highest position stored, or being stored, for this subscription."""
        self._judge = judge
        self.done = self.passed = max(self.done, durable)
        self._ahead.clear()
        self._run, self._values, self._bytes = None, (), 0
        self._next = self.done + 1
        return self.done

    def holds(self, topic: str) -> bool:
        return self.topics.matches(topic) and topic not in self._left

    def leave(self, topic: str) -> None:
        """Hand over nothing more of this topic."""
        self._left[topic] = None
        if self._run is not None and self._run.topic == topic:
            self._finish(self._run)


class _Wrong(msgspec.Struct):
    """A value of another type, and what is wrong with it."""

    problem: str


def _unless_wrong(value: Any) -> Any:
    if isinstance(value, _Wrong):
        raise msgspec.ValidationError(value.problem)
    return value
