"""Everything a broker knows of one topic: who publishes, who wants what, who was told what.

The per-link rule (the paper sends everything to everybody, which never ends: E-C3a, E-C3b):

Rule 1: a neighbour hears of an advertiser iff some *other* link advertises.
Rule 2: a neighbour that advertises is told what all *other* links want; any other is told nothing.
Rule 3: an event goes once to each link that wants it (never once per predicate, E-C6).
Rule 4: when we stop advertising to a neighbour, what it wanted is forgotten, and what it still
        sends about it belongs to a closed session (E-C19).
Rule 5: a change is confirmed to the link it came from when every advertiser's side has confirmed
        the version that carries it. That may be an older version than one of our own, if this
        change needed none: then somebody else's interest carries it. Confirmations of a link keep
        their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from inorder.content.engine import Engine, Form, Forms
from inorder.content.links import Filter, FilterState
from inorder.content.messages import Flt

# The number of what stands for somebody who has not answered; neither rids nor sids begin at 0.
UNANSWERED = 0

MakeFilter = Callable[[str, FilterState], Filter]


class Entry(Struct):
    """One interest; `key` is its number in the engine."""

    key: int
    forms: Forms
    version: int


class Asked(Struct):
    """A neighbour we advertise to: our session, and what has arrived of its filters."""

    session: int
    version: int = 0


class Duty(Struct, frozen=True, gc=False):
    """A confirmation owed: `needs` are (neighbour, its session, version) still to be confirmed.

    A session of 0 is that of a neighbour that has not said all (repair.py).
    """

    number: int
    version: int
    needs: tuple[tuple[str, int, int], ...]


class TopicState(Struct):
    """The state of a topic, for the snapshot."""

    name: str
    # Links that advertise, with their session; clients have session 0.
    advertisers: dict[str, int] = {}
    asked: dict[str, Asked] = {}
    entries: dict[str, dict[int, Entry]] = {}
    filters: dict[str, FilterState] = {}
    duties: dict[str, list[Duty]] = {}
    next_key: int = 1


class Topic:
    """Changes here are told to nobody until the broker settles."""

    def __init__(self, state: TopicState, engine: Engine, make_filter: MakeFilter) -> None:
        self.s = state
        self.engine = engine
        self._make_filter = make_filter
        self._owners: dict[int, str] = {}
        self.filters: dict[str, Filter] = {}
        for link, entries in sorted(state.entries.items()):
            for entry in entries.values():
                engine.add(entry.key, entry.forms)
                self._owners[entry.key] = link
        for neighbour, known in sorted(state.filters.items()):
            self._fill(neighbour, known).adopt()

    @property
    def idle(self) -> bool:
        """Whether it may be forgotten."""
        s = self.s
        return not (s.advertisers or s.asked or s.entries or s.duties)

    # Interests.

    def entry(self, link: str, number: int) -> Entry | None:
        return self.s.entries.get(link, {}).get(number)

    def table(self, link: str) -> dict[int, Form]:
        """What a neighbour wants, by rid."""
        return {rid: entry.forms[0] for rid, entry in self.s.entries.get(link, {}).items()}

    def concerned(self, link: str) -> list[str]:
        """The neighbours that are told about what a link wants: never that link itself."""
        return [neighbour for neighbour in sorted(self.filters) if neighbour != link]

    def put(self, link: str, number: int, forms: Forms, version: int) -> None:
        """Take in an interest, or another structure for one that is known."""
        entries = self.s.entries.setdefault(link, {})
        known = entries.get(number)
        if known is None:
            key = self.s.next_key
            self.engine.add(key, forms)
            self.s.next_key += 1
            self._owners[key] = link
            entries[number] = Entry(key, forms, version)
        elif [one for one, _ in known.forms] == [one for one, _ in forms]:
            self.engine.set(known.key, [vector for _, vector in forms])
            known.forms, known.version = forms, version
        else:
            self.engine.replace(known.key, forms)
            known.forms, known.version = forms, version
        for neighbour in self.concerned(link):
            self.filters[neighbour].put((link, number), forms)

    def remove(self, link: str, number: int) -> None:
        entries = self.s.entries[link]
        key = entries.pop(number).key
        if not entries:
            del self.s.entries[link]
        self.engine.remove(key)
        del self._owners[key]
        for neighbour in self.concerned(link):
            self.filters[neighbour].drop((link, number))

    def forget(self, link: str) -> None:
        """A link is gone, or what it wanted does not matter any more."""
        for number in list(self.s.entries.get(link, ())):
            self.remove(link, number)
        self.s.duties.pop(link, None)

    def apply(self, link: str, message: Flt) -> None:
        """A filter that was found in order. What stands for a neighbour that has not answered goes
        with the last piece of its answer."""
        delta = message.delta
        unanswered = self.entry(link, UNANSWERED) is not None
        if message.reset:
            kept = {rid for rid, _ in delta.added} | {UNANSWERED}
            for rid in list(self.s.entries.get(link, ())):
                if rid not in kept:
                    self.remove(link, rid)
        for rid in delta.deleted:
            self.remove(link, rid)
        for rid, form in delta.added:
            self.put(link, rid, (form,), message.version)
        for rid, vector in delta.moved:
            skeleton, _ = self.s.entries[link][rid].forms[0]
            self.put(link, rid, ((skeleton, vector),), message.version)
        if unanswered and not message.more:
            self.remove(link, UNANSWERED)

    def wanting(self, attributes: Mapping[str, Any] | None) -> list[str]:
        """The links that want an event, each once; without attributes, all that want any."""
        if attributes is None:
            return sorted(self.s.entries)
        return sorted({self._owners[key] for key in self.engine.match(attributes)})

    # Advertisers.

    def is_wanted_by(self, neighbour: str) -> bool:
        """Whether a neighbour should hear of an advertiser."""
        return any(link != neighbour for link in self.s.advertisers)

    def advertised(self, link: str, session: int, is_broker: bool) -> None:
        self.s.advertisers[link] = session
        if is_broker:
            self.open(link, session)

    def open(self, neighbour: str, session: int) -> None:
        """Answer an advertisement: the filters of the new session begin with everything (E-C4b)."""
        self.s.filters[neighbour] = FilterState(session)
        self._fill(neighbour, self.s.filters[neighbour])

    def silenced(self, link: str) -> None:
        self.s.advertisers.pop(link, None)
        self.s.filters.pop(link, None)
        self.filters.pop(link, None)

    def is_current(self, link: str, session: int) -> bool:
        """Whether a filter belongs to the advertisement that is open."""
        asked = self.s.asked.get(link)
        return asked is not None and asked.session == session

    def _fill(self, neighbour: str, state: FilterState) -> Filter:
        made = self.filters[neighbour] = self._make_filter(self.s.name, state)
        for link, entries in sorted(self.s.entries.items()):
            if neighbour in self.concerned(link):
                for number, entry in sorted(entries.items()):
                    made.put((link, number), entry.forms)
        return made

    # Confirmations.

    def owe(self, link: str, number: int, version: int, missing: Iterable[str] = ()) -> None:
        """`missing` are the neighbours that have not said all."""
        told = tuple(self._need(one) for one in sorted(self.filters) if one != link)
        untold = tuple((one, 0, 0) for one in sorted(missing) if one != link)
        needs = (*(need for each in told for need in each), *untold)
        self.s.duties.setdefault(link, []).append(Duty(number, version, needs))

    def _need(self, neighbour: str) -> tuple[tuple[str, int, int], ...]:
        """What a neighbour has still to confirm, if anything."""
        one = self.filters[neighbour]
        return ((neighbour, one.s.session, one.needed),) if one.needed > one.s.acked else ()

    def suspend(self, neighbour: str) -> None:
        """The filters told to a neighbour may be forgotten there: what needs them must wait."""
        self.s.filters.pop(neighbour, None)
        self.filters.pop(neighbour, None)
        self._rewrite(neighbour, ((neighbour, 0, 0),))

    def resolve(self, neighbour: str) -> None:
        """The neighbour has said all: what waited for that needs its confirmations now."""
        self._rewrite(neighbour, self._need(neighbour) if neighbour in self.filters else ())

    def _rewrite(self, neighbour: str, by: tuple[tuple[str, int, int], ...]) -> None:
        """Replace all needs about a neighbour."""
        for queue in self.s.duties.values():
            for place, duty in enumerate(queue):
                others = tuple(need for need in duty.needs if need[0] != neighbour)
                if others != duty.needs:
                    queue[place] = replace(duty, needs=(*others, *by))

    def postpone(self, neighbour: str, version: int, last: int) -> None:
        """Needs of a version that went out in several pieces are needs of the last."""
        for queue in self.s.duties.values():
            queue[:] = [
                replace(duty, needs=tuple(
                    (link, session, last if (link, need) == (neighbour, version) else need)
                    for link, session, need in duty.needs
                ))
                for duty in queue
            ]  # fmt: skip

    def paid(self) -> list[tuple[str, Duty]]:
        """The confirmations that can be given now; they count as given."""
        done: list[tuple[str, Duty]] = []
        for link in sorted(self.s.duties):
            queue = self.s.duties[link]
            count = 0
            while count < len(queue) and not any(map(self._open_need, queue[count].needs)):
                done.append((link, queue[count]))
                count += 1
            del queue[:count]
            if not queue:
                del self.s.duties[link]
        return done

    def _open_need(self, need: tuple[str, int, int]) -> bool:
        neighbour, session, version = need
        if session == 0:
            return True
        known = self.s.filters.get(neighbour)
        return known is not None and known.session == session and known.acked < version
