"""A subscriber fed from recorded rows: it walks to nobody, and nobody answers it.

Rule 1: every event it is given leaves: in order, or tagged, or as a duplicate that is noted. There
        is nobody to ask again, so nothing may be refused for want of room.
Rule 2: hold waits for what is missing, as long as input lasts and there is room. Both at an end,
        it passes over the hole, and what comes for it later is tagged, however late. So is what
        may be a duplicate or not (core/numbers.py). Tag waits for nothing unless it is told to.
Rule 3: a topic starts where it is said to (`start`), else at its first number. One that is named
        there is held from the beginning: what names its events waits for them. Any other is held
        from its first event on, because until then nobody knows that it will be given.

Theory. Without a hole, tag with a buffer that never fills delivers what hold delivers: the engine
releases what is ready in the same order, and nothing ready is late. So hold is read as tag with
the largest buffer, which also knows what to do when the hole is never filled.

Rows that a network's subscriber was handed have stamps that sequence what it held. Who reads
topics that nobody held together needs stamps that sequence all of them (`threshold = 0`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec import Struct, field
from msgspec.structs import replace

from inorder.core.effect import Deliver, Effect, Note
from inorder.core.errors import BadMessage
from inorder.core.event import Event
from inorder.core.numbers import Numbers
from inorder.core.pack import pack, unpacker
from inorder.protocols.total.engine import Engine, EngineState
from inorder.protocols.total.holding import Key
from inorder.protocols.total.messages import Events
from inorder.protocols.total.options import Options
from inorder.protocols.total.stamp import read_text, text_of


class _State(Struct):
    name: str
    options: Options
    # Where topics start that are not at their beginning; first: at the first number seen.
    start: dict[str, int] = {}
    from_first: bool = False
    engine: EngineState = field(default_factory=EngineState)
    received: dict[str, Numbers] = {}


_unpack = unpacker(_State)


class Reader:
    """The machine of one subscriber over recorded rows."""

    def __init__(
        self,
        name: str,
        options: Options | None = None,
        start: Mapping[str, int] | None = None,
        from_first: bool = False,
    ) -> None:
        options = for_reader(options or Options())
        self._become(_State(name, options, dict(start or {}), from_first))
        for topic in sorted(self._s.start):
            self._begin(topic, 1)

    def _become(self, state: _State) -> None:
        self._s = state
        self._engine = Engine(state.engine, state.options)

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        if not isinstance(message, Events) or message.first < 1 or not message.events:
            raise BadMessage(source, f"{type(message).__name__} is nothing for a reader")
        topic = message.topic
        self.hold(topic, message.first)
        engine, received = self._engine, self._s.received[topic]
        passes = engine.passes(topic, message.first, message.epoch, message.stamp)
        if passes and received.extend(message.first, len(message.events)):
            engine.deliver_batch(
                topic, message.first, message.epoch, message.stamp, message.events, now
            )
            return self._take_out()
        for number, event in enumerate(message.events, message.first):
            verdict = received.add(number)
            if verdict == "new":
                engine.arrive((topic, number), message.epoch, message.stamp, event, now)
            elif verdict == "again":
                engine.out.append(Note("duplicate", event.id))
            else:
                engine.out.append(Deliver(event, False))
        return self._take_out()

    def _begin(self, topic: str, first: int) -> None:
        start = self.start_of(topic, first)
        self._engine.activate([topic], ((topic, start),), 0.0)
        self._s.received[topic] = Numbers.after(start)

    # For skim.py.

    @property
    def options(self) -> Options:
        return self._s.options

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def received(self) -> dict[str, Numbers]:
        return self._s.received

    def start_of(self, topic: str, first: int) -> int:
        """The number before the first one owed, if `first` is the first one given."""
        s = self._s
        if topic in s.received:
            return s.engine.start[topic]
        return s.start.get(topic, first - 1 if s.from_first else 0)

    def hold(self, topic: str, first: int) -> None:
        """Hold a topic from now on, unless it is held already."""
        if topic not in self._s.received:
            self._begin(topic, first)

    def let_go(self, key: Key) -> None:
        """An event that waited has been delivered."""
        self._engine.held.pop(key)
        self._engine._since.pop(key, None)

    def look_again(self) -> None:
        """Clocks have moved by other hands: see anew what each waiting event waits for."""
        for topic, number, held in self._engine.held.rows():
            self._engine._park((topic, number), held.stamp)

    def fire(self, timer: str, now: float) -> list[Effect]:
        kind, _, rest = timer.partition("/")
        assert kind == "ttl", timer
        topic, _, number = rest.rpartition("/")
        self._engine.expire((topic, int(number)), now)
        return self._take_out()

    def finish(self, now: float) -> list[Effect]:
        """Nothing will come any more: whoever still waits goes, in stamp order."""
        self._engine.force_all(now)
        return self._take_out()

    @property
    def waiting(self) -> int:
        """Events held back."""
        return self._engine.held.size

    def snapshot(self) -> bytes:
        self._engine.store()
        return pack(self._s)

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        reader = cls("")
        reader._become(_unpack(snapshot))
        return reader

    def _take_out(self) -> list[Effect]:
        effects, self._engine.out = self._engine.out, []
        return effects


def for_reader(options: Options) -> Options:
    """What a reader makes of options: hold is tag with the largest buffer, tag alone has none.

    Tag's own buffer is for who reads while events arrive. A reader of rows that may wait has hold,
    which waits for what is missing and for nothing else; and a number that a filter kept back, or
    that nobody gave it, would cost tag its whole time.
    """
    if options.mode == "hold":
        return replace(options, mode="tag", buffer=options.room)
    if options.buffer is None and options.ttl is None:
        return replace(options, buffer=0)
    return options


class Rows:
    """Recorded rows with stamps of total order, as text (stamp.py): guarantee/rows.py."""

    needs_stamps = True

    def reader(
        self, name: str, options: Options, start: Mapping[str, int] | None, from_first: bool
    ) -> Reader:
        return Reader(name, options, start, from_first)

    def restore(self, snapshot: bytes) -> Reader:
        return Reader.restore(snapshot)

    def message(self, event: Event, stamp: str) -> Events:
        epoch, number, others = read_text(event.topic, stamp)
        return Events(event.topic, number, epoch, others, (event,))

    def placeholder(self, topic: str, offset: int) -> str:
        """It says nothing about other topics."""
        return text_of(0, ((topic, offset + 1),))

    def waits_for_all(self, options: Options) -> bool:
        return for_reader(options).buffered

    def skimmer(self, names: Sequence[str], codes: Any, stamps: bytes) -> Any:
        from inorder.protocols.total.skim import read

        return read(names, codes, stamps)
