"""What all kinds of stamps have in common, and what a stamp may look like.

| stamps  | an event names                                      | entries                      |
|---------|-----------------------------------------------------|------------------------------|
| barrier | its direct causes                                   | a handful                    |
| clock   | what its publisher took in since its event before   | up to one per active member  |
| whole   | everything in its past, on all topics               | one per publisher and topic  |

Rule 1: a stamp is made at the launch, from what its publisher has taken in by then.
Rule 2: nothing changes a stamp that has come. (The published `CHECKCB` deletes from it what has
        been delivered, so that `last` is never pruned: erratum P10.)
Rule 3: the own entry is left out. An origin's numbers have no holes, so each event rests on the one
        before it.

An event is *taken in* when its turn has come, whether it is handed over or only sets the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inorder.core.errors import BadMessage
from inorder.core.limits import CAUSAL_STAMP_ENTRIES_MAX, STAMP_NUMBER_MAX
from inorder.core.place import Origin, Place, Places
from inorder.core.table import Table
from inorder.protocols.causal.messages import Others, Published


class Stamps:
    """What a client stamps its events from: one table a topic. A topic that is left keeps its
    table, since its past is not forgotten with it (erratum P18)."""

    # Whether a stamp says only what its publisher's stamp before it has not said.
    chained = False

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        # The own number among the origins of a topic, as far as it matters.
        self.own: dict[str, int] = {}

    def table(self, topic: str) -> Table:
        table = self.tables.get(topic)
        if table is None:
            table = self.tables[topic] = Table()
        return table

    def stamp(self, topic: str) -> tuple[Places, Others]:
        """What comes before an event that is launched now."""
        table = self.tables.get(topic)
        return ((), ()) if table is None else (table.pairs(), ())

    def launched(self, origin: Origin, number: int) -> None:
        """An event of one's own: what it rests on, later ones rest on through it."""
        self.tables.pop(origin[0], None)

    def taken_in(self, origin: Origin, number: int, message: Published) -> None:
        """An event of another publisher."""
        raise NotImplementedError

    def learn(self, origin: Origin, number: int) -> None:
        """A place that has not been taken in is in the application's past all the same."""

    def reached(self, topic: str) -> Places:
        """How far the past reaches into a topic that is not held yet."""
        return ()

    def packed(self) -> dict[str, Places]:
        pairs = {topic: table.pairs() for topic, table in self.tables.items()}
        return {topic: places for topic, places in pairs.items() if places}

    def become(self, tables: Mapping[str, Iterable[tuple[int, int]]], own: dict[str, int]) -> None:
        self.tables = {topic: Table.of(pairs) for topic, pairs in tables.items()}
        self.own = own


def entries(places: Places, others: Others) -> int:
    """How many places a stamp names."""
    return len(places) + sum(len(there) for _, there in others)


def check(place: Place, source: str, message: Published) -> None:
    """Raise unless this message may stand at this place."""
    (topic, origin), number = place
    if type(message) is not Published:
        raise BadMessage(source, f"{type(message).__name__} is nothing for a place")
    event = message.event
    if event.topic != topic:
        raise BadMessage(source, f"{event.id} is on {event.topic!r}, its place on {topic!r}")
    if event.publisher != source:
        raise BadMessage(source, f"{event.id} at a place of {source}")
    if not 1 <= number <= STAMP_NUMBER_MAX:
        raise BadMessage(source, f"{event.id} has the number {number}")
    _check_places(source, event.id, message.places, origin, number)
    if message.others:
        _check_others(source, topic, message)
    if entries(message.places, message.others) > CAUSAL_STAMP_ENTRIES_MAX:
        count = entries(message.places, message.others)
        raise BadMessage(source, f"{count} causes, the limit is {CAUSAL_STAMP_ENTRIES_MAX}")


def _check_places(source: str, event: str, places: Places, own: int, below: int) -> None:
    last = -1
    for origin, number in places:
        if origin <= last:
            raise BadMessage(source, f"causes of {event} do not grow at origin {origin}")
        last = origin
        if not 1 <= number <= STAMP_NUMBER_MAX:
            raise BadMessage(source, f"a cause of {event} with the number {number}")
        if origin == own and number >= below:
            raise BadMessage(source, f"{event} has the number {below} and rests on {number}")


def _check_others(source: str, topic: str, message: Published) -> None:
    event = message.event.id
    last = ""
    for other, places in message.others:
        if other <= last or other == topic:
            raise BadMessage(source, f"causes of {event} do not grow at topic {other!r}")
        last = other
        if not places:
            raise BadMessage(source, f"no causes of {event} on topic {other!r}")
        _check_places(source, event, places, -1, 0)
