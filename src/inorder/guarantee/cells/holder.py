"""Subscriptions to areas: which cells an application holds, and what it is handed of them.

The application holds `ticks` where `x < :east`, and so on; the machine inside holds `ticks@0,0` and
`ticks@1,0`. When `east` moves, the holder joins what is new first, and leaves what is old when it
is in. What it hands over is of `ticks` again, and matches.

Rule 1: the machine inside orders events of cells; the holder decides whether an event is handed
        over, with the values of that instant. An event that does not match has been ordered all the
        same: what rests on it has waited for it.
Rule 2: new values are in force from the call on. `Answer(call, "done")` says when all cells of a
        change, or of a later one of the same topic, are in: from then on all that matches is due.
        Calls for one topic are answered in their order.
Rule 3: a cell is left when no change under way and not the last one over needs it.
Rule 4: an event in several cells is handed over once, whichever of its copies comes first, and its
        application then knows of all of them: what it publishes rests on each.
Rule 5: a subscription is answered when all that its topics need at that moment is in, whatever
        was set meanwhile. Before that nothing is handed over.

Rule 4 is why copies say where the others stand. B gets an event through cell a, and answers it in
cell c. A reader of b and c knows nothing of a: it must find the place in b in B's stamp.

What is not promised: order across cells is that of the machine inside. Direct barriers lose it; a
causal client needs whole stamps. Values of one kind of `where` can need more cells than there may
be (CUBE_CELLS_MAX); the change is then refused, and the values stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from inorder.content.door import topic_problem
from inorder.content.predicate import Predicate
from inorder.core.effect import Answer, Deliver, Effect, Note
from inorder.core.errors import Misuse, PredicateError, TooLarge
from inorder.core.event import Event, Scalar
from inorder.core.limits import (
    CUBE_AREAS_REMEMBERED_MAX,
    CUBE_CALLS_MAX,
    TOPICS_PER_SUBSCRIBER_MAX,
)
from inorder.core.machine import Accountable, Client, Durable
from inorder.core.pack import pack, unpacker
from inorder.core.place import Forgetting, Origin, Place, Places, Placing
from inorder.guarantee.attach import WHOLE
from inorder.guarantee.cells.copies import COPIES, Copies, cell_topic, shown, topic_of
from inorder.guarantee.cells.grid import Grid
from inorder.guarantee.registry import Guarantee, guarantee

# Before the names of calls to the machine inside.
INNER = "@"


class Area(Struct):
    """A topic that the application holds, or has asked for."""

    where: str
    values: dict[str, Any]
    # The cells of the last change that is over.
    settled: list[str] = []
    # Whether the application has been told that it holds the topic.
    held: bool = False


class Change(Struct):
    """A call that waits for its cells: by topic those that it needs, as long as no later call has
    overtaken it there."""

    call: str
    topics: list[str]
    cells: dict[str, list[str]]
    # All is in; but an earlier call for one of its topics is to be answered first.
    over: bool = False


class _State(Struct):
    guarantee: str
    grid: Grid
    inner: bytes
    areas: dict[str, Area]
    cells: dict[str, bool]
    changes: list[Change]
    handed: list[tuple[str, list[str]]]
    filtered: int
    again: int


_unpack = unpacker(_State)


class Cells:
    """A client of some guarantee on a cube, whose topics have places."""

    def __init__(self, ordered: Guarantee, inner: Client, grid: Grid) -> None:
        self._guarantee = ordered
        self._inner = inner
        self._grid = grid
        self._areas: dict[str, Area] = {}
        # The cells asked for, and whether each is in.
        self._cells: dict[str, bool] = {}
        self._changes: list[Change] = []
        # Events handed over whose other copies may still come, and through which cells.
        self._handed: dict[str, list[str]] = {}
        self._predicates: dict[str, Predicate] = {}
        # Whether a change has ended in the input in progress, so that cells may be old.
        self._ended = False
        # Events that did not match, and copies of such as had been handed over.
        self.filtered = 0
        self.again = 0

    # What applications ask for.

    def publish(self, topic: str, value: dict[str, Scalar], now: float) -> list[Effect]:
        """Here the topic is a cell's: the peer around has found it (peer.py)."""
        return self._passed(self._inner.publish(topic, value, now), now)

    @property
    def next_seq(self) -> int:
        return self._inner.next_seq

    def subscribe(
        self,
        call: str,
        topics: Iterable[str],
        now: float,
        where: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> list[Effect]:
        wanted = sorted({*topics})
        if not wanted:
            raise Misuse("subscribe names no topic")
        for topic in wanted:
            if topic in self._areas:
                raise Misuse(f"{topic!r} is held already: set its values")
            if trouble := topic_problem(topic):
                raise Misuse(trouble)
        if where is None and values:
            raise Misuse("values without a where")
        predicate = WHOLE if where is None else Predicate.parse(where)
        checked = predicate.check(values or {})
        needed = {topic: self._needed(topic, predicate, checked) for topic in wanted}
        self._check_room(needed)
        self._predicates[predicate.source] = predicate
        self._areas.update({topic: Area(predicate.source, checked) for topic in wanted})
        return self._change(call, needed, now)

    def set(
        self, call: str, topics: Iterable[str], values: Mapping[str, Any], now: float
    ) -> list[Effect]:
        """Move parameters of the filters of these topics, and so the areas; all of them, or
        none."""
        moved: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for topic in sorted({*topics}):
            area = self._known(topic)
            predicate = self._predicates[area.where]
            checked = predicate.check(values, area.values)
            moved[topic] = checked, self._needed(topic, predicate, checked)
        needed = {topic: cells for topic, (_, cells) in moved.items()}
        self._check_room(needed)
        for topic, (checked, cells) in moved.items():
            area = self._areas[topic]
            area.values = checked
            if not area.held:
                # The subscription begins with these values: it waits for these cells.
                for change in self._changes:
                    if topic in change.topics:
                        change.cells[topic] = cells
                        change.over = False
        return self._change(call, needed, now)

    def unsubscribe(self, call: str, topics: Iterable[str], now: float) -> list[Effect]:
        dropped = [topic for topic in sorted({*topics}) if topic in self._areas]
        if not dropped:
            raise Misuse("unsubscribe names no topic that is held")
        for topic in dropped:
            del self._areas[topic]
        for change in self._changes:
            change.topics = [topic for topic in change.topics if topic not in dropped]
            for topic in dropped:
                change.cells.pop(topic, None)
        self._forget_predicates()
        effects = self._leave([cell for cell in self._cells if topic_of(cell) in dropped], now)
        # Nobody waits for what is over.
        return [*effects, *self._answers(), Answer(call, "done")]

    # Cells.

    def _needed(self, topic: str, predicate: Predicate, values: dict[str, Any]) -> list[str]:
        return [cell_topic(topic, cell) for cell in self._grid.cells_for(predicate.bind(values))]

    def _known(self, topic: str) -> Area:
        area = self._areas.get(topic)
        if area is None or area.where == WHOLE.source:
            problem = f"topic {topic!r} is not held with a filter"
            raise PredicateError("UNKNOWN_SUBSCRIPTION", problem, None, "")
        return area

    def _check_room(self, needed: Mapping[str, Sequence[str]]) -> None:
        """Raise unless all these cells may be held beside those held now, and be waited for."""
        cells = [cell for each in needed.values() for cell in each if cell not in self._cells]
        for cell in cells:
            if trouble := topic_problem(cell):
                raise Misuse(trouble)
        if (count := len(self._cells) + len(cells)) > TOPICS_PER_SUBSCRIBER_MAX:
            raise TooLarge("cells of one subscriber", count, TOPICS_PER_SUBSCRIBER_MAX)
        if len(self._changes) >= CUBE_CALLS_MAX:
            raise TooLarge("changes that wait", len(self._changes) + 1, CUBE_CALLS_MAX)

    def _change(self, call: str, needed: dict[str, list[str]], now: float) -> list[Effect]:
        """Join what is new; the answer comes when all is in."""
        self._changes.append(Change(call, [*needed], needed))
        effects: list[Effect] = []
        for cell in [cell for each in needed.values() for cell in each]:
            if cell not in self._cells:
                self._cells[cell] = False
                # Each for itself: what is in is not to wait for what is not.
                effects += self._inner.subscribe(INNER + cell, [cell], now)
        return [*self._translated(effects), *self._answers(), *self._leave_old(now)]

    def _answers(self) -> list[Effect]:
        """End the changes whose cells are all in, and those that a later change has overtaken."""
        settled: dict[str, list[str]] = {}
        for change in reversed(self._changes):
            change.cells = {
                topic: cells for topic, cells in change.cells.items() if topic not in settled
            }
            if not change.over:
                cells = [cell for each in change.cells.values() for cell in each]
                change.over = all(self._cells[cell] for cell in cells)
                self._ended |= change.over
            if change.over:
                settled.update(change.cells)
        for topic, cells in settled.items():
            self._areas[topic].settled = cells
        # Calls for one topic are answered in their order, or an old one would seem to be the last.
        answered: list[Change] = []
        waiting: list[Change] = []
        blocked: dict[str, None] = {}
        for change in self._changes:
            is_next = change.over and not any(topic in blocked for topic in change.topics)
            (answered if is_next else waiting).append(change)
            blocked.update(() if is_next else dict.fromkeys(change.topics))
        self._changes = waiting
        for topic in [topic for change in answered for topic in change.topics]:
            self._areas[topic].held = True
        return [Answer(change.call, "done") for change in answered]

    def _leave_old(self, now: float) -> list[Effect]:
        """Leave what neither the last change that is over has needed, nor a later one does."""
        if not self._ended:
            return []
        self._ended = False
        kept = {cell for area in self._areas.values() for cell in area.settled}
        for change in self._changes:
            kept.update(cell for cells in change.cells.values() for cell in cells)
        return self._leave([cell for cell in self._cells if cell not in kept], now)

    def _leave(self, cells: Sequence[str], now: float) -> list[Effect]:
        if not cells:
            return []
        for cell in cells:
            del self._cells[cell]
        for event, others in list(self._handed.items()):
            self._await(event, [cell for cell in others if cell in self._cells])
        return self._passed(self._inner.unsubscribe(INNER, cells, now), now)

    # Inputs.

    def joined(self, topic: str, now: float) -> list[Effect]:
        return self._passed(self._inner.joined(topic, now), now)

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        return self._passed(self._inner.receive(source, message, now), now)

    def fire(self, timer: str, now: float) -> list[Effect]:
        return self._passed(self._inner.fire(timer, now), now)

    def replay(self, record: bytes) -> None:
        if isinstance(self._inner, Durable):
            self._inner.replay(record)

    def resume(self, now: float) -> list[Effect]:
        effects = self._inner.resume(now) if isinstance(self._inner, Durable) else []
        return self._passed(effects, now)

    def _passed(self, effects: list[Effect], now: float) -> list[Effect]:
        """Effects of the machine inside, in the application's words. Old cells are left behind all
        of them: what is set free by that comes after what has been decided."""
        return [*self._translated(effects), *self._leave_old(now)]

    def _translated(self, effects: list[Effect]) -> list[Effect]:
        out: list[Effect] = []
        for each in effects:
            if isinstance(each, Deliver):
                out += self._delivered(each)
            elif isinstance(each, Answer) and each.call.startswith(INNER):
                cell = each.call.removeprefix(INNER)
                if cell in self._cells:
                    self._cells[cell] = True
                    out += self._answers()
            else:
                out.append(each)
        return out

    def gap_of(self, answer: Answer) -> list[Effect]:
        """A gap in a cell is one in its topic, if the application holds that. The peer around asks,
        since it tells of gaps of its own, too."""
        topic = topic_of(answer.call.partition("/")[2])
        area = self._areas.get(topic)
        if area is None or not area.held:
            return []
        return [Answer(f"gap/{topic}", "gap", answer.reason)]

    def _delivered(self, delivery: Deliver) -> list[Effect]:
        """What an application sees of an event of a cell."""
        event = delivery.event
        topic = topic_of(event.topic)
        area = self._areas.get(topic)
        if area is None or not area.held:
            return []
        value, copies = shown(event.value)
        if not self._predicates[area.where].matches(area.values, value):
            self.filtered += 1
            return []
        seq = event.seq
        if copies is not None:
            seq = copies.first
            if self._has_been_handed(event.publisher, seq, event.topic):
                self.again += 1
                return []
            self._hand(event, copies, topic)
        elif COPIES in event.value:
            return [Note("bad_copies", event.id)]
        shown_event = Event(event.publisher, seq, topic, value, event.published_at)
        return [Deliver(shown_event, delivery.in_order, delivery.waited_s)]

    # Events in several cells.

    def _has_been_handed(self, publisher: str, seq: int, cell: str) -> bool:
        """Whether another copy has been; this one need not be waited for any more."""
        event = f"{publisher}:{seq}"
        others = self._handed.get(event)
        if others is None:
            return False
        self._await(event, [other for other in others if other != cell])
        return True

    def _await(self, event: str, others: list[str]) -> None:
        if others:
            self._handed[event] = others
        else:
            del self._handed[event]

    def _hand(self, event: Event, copies: Copies, topic: str) -> None:
        """The first copy: its application knows now of the others."""
        places = copies.places(topic)
        others = [cell for (cell, _), _ in places if cell != event.topic and cell in self._cells]
        if others:
            self._handed[f"{event.publisher}:{copies.first}"] = others
            if len(self._handed) > CUBE_AREAS_REMEMBERED_MAX:
                del self._handed[next(iter(self._handed))]
        learn = getattr(self._inner, "learn", None)
        if learn is not None:
            learn(event.publisher, places)

    # What a driver may ask.

    @property
    def cells(self) -> Sequence[str]:
        """The topics of the cells that are held, or asked for."""
        return tuple(self._cells)

    @property
    def idle(self) -> bool:
        return getattr(self._inner, "idle", True)

    @property
    def owes(self) -> bool:
        return getattr(self._inner, "owes", False)

    def account(self) -> dict[str, float]:
        counted = self._inner.account() if isinstance(self._inner, Accountable) else {}
        return {**counted, "filtered": float(self.filtered), "again": float(self.again)}

    # Snapshots.

    def _forget_predicates(self) -> None:
        in_use = {area.where for area in self._areas.values()}
        for where in [each for each in self._predicates if each not in in_use]:
            del self._predicates[where]

    def snapshot(self) -> bytes:
        state = _State(
            self._guarantee.name, self._grid, self._inner.snapshot(),
            dict(sorted(self._areas.items())), dict(sorted(self._cells.items())), self._changes,
            list(self._handed.items()), self.filtered, self.again,
        )  # fmt: skip
        return pack(state)

    @classmethod
    def restore(cls, snapshot: bytes) -> Cells:
        state: _State = _unpack(snapshot)
        ordered = guarantee(state.guarantee)
        holder = celled(ordered, ordered.client.restore(state.inner), state.grid)
        holder._areas, holder._cells = state.areas, state.cells
        holder._changes = state.changes
        holder._handed = dict(state.handed)
        holder.filtered, holder.again = state.filtered, state.again
        for area in state.areas.values():
            holder._predicates[area.where] = Predicate.parse(area.where)
        return holder


class PlacedCells(Cells):
    """The same around a client that takes places."""

    def begins(self, origin: Origin, start: int, counts: int, now: float) -> list[Effect]:
        return self._passed(self._placing.begins(origin, start, counts, now), now)

    def placed(self, place: Place, source: str, message: Any, now: float) -> list[Effect]:
        return self._passed(self._placing.placed(place, source, message, now), now)

    def lost(self, place: Place, now: float) -> list[Effect]:
        return self._passed(self._placing.lost(place, now), now)

    def forget(self, now: float) -> list[Effect]:
        if isinstance(self._inner, Forgetting):
            return self._passed(self._inner.forget(now), now)
        return []

    def expanded(self, place: Place) -> Places | None:
        wanted: Places | None = cast(Any, self._inner).expanded(place)
        return wanted

    @property
    def waiting(self) -> int:
        """Events held back: by the guarantee, since a filter holds nothing."""
        return getattr(self._inner, "waiting", 0)

    @property
    def _placing(self) -> Placing:
        return cast(Placing, self._inner)


def celled(ordered: Guarantee, inner: Client, grid: Grid) -> Cells:
    """A holder that takes places if, and only if, the client inside does."""
    return (PlacedCells if isinstance(inner, Placing) else Cells)(ordered, inner, grid)
