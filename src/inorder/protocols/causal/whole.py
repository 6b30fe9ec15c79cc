"""Whole stamps: everything in an event's past, on all topics.

A asks on `sales`. B holds `sales` and `chat` and passes it on to `chat`. C holds `chat` and `news`
and writes of it on `news`. D holds `sales` and `news`. A direct barrier on `news` names the event
of `chat`, which says nothing to D, and D reads the news before the question. The whole stamp names
the event of `sales`, too, although C has never held `sales`.

Rule 1: a stamp has the highest number of every origin of every topic in its past. The entries of
        topics that a carrier does not hold are passed over when it takes events in, and kept when
        it stamps.
Rule 2: when a topic is joined, events of it that are in one's past already only set the order. D
        may read the news first and join `sales` while the question is still on its way to D: by
        then the question comes after its consequence, and is not handed over.

The price: a stamp has an entry for each publisher of each topic that anything heard of rests on.
"""

from __future__ import annotations

from inorder.core.place import Origin, Places
from inorder.core.table import Table
from inorder.protocols.causal.messages import Others, Published
from inorder.protocols.causal.stamp import Stamps


class Whole(Stamps):
    """The past of this client."""

    def stamp(self, topic: str) -> tuple[Places, Others]:
        own = self.own.get(topic)
        pairs = {name: self.tables[name].pairs() for name in sorted(self.tables)}
        places = tuple(pair for pair in pairs.pop(topic, ()) if pair[0] != own)
        return places, tuple(pairs.items())

    def launched(self, origin: Origin, number: int) -> None:
        topic, peer = origin
        self.own[topic] = peer
        self.table(topic)[peer] = number

    def taken_in(self, origin: Origin, number: int, message: Published) -> None:
        past = self.table(origin[0])
        _raise_to(past, message.places)
        if past[origin[1]] < number:
            past[origin[1]] = number
        for topic, places in message.others:
            _raise_to(self.table(topic), places)

    def learn(self, origin: Origin, number: int) -> None:
        _raise_to(self.table(origin[0]), ((origin[1], number),))

    def reached(self, topic: str) -> Places:
        table = self.tables.get(topic)
        return () if table is None else table.pairs()


def _raise_to(past: Table, places: Places) -> None:
    for origin, number in places:
        if past[origin] < number:
            past[origin] = number
