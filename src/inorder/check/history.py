"""What the judges read: the rows of one run, checked for sense and indexed.

A history may be poorer than a trace of ours. `events` or `subscriptions` may be absent (None, which
is not the same as empty), and the deliveries of a *bare* history name only subscriber, nth
and event. Judges say "not judged" rather than guess what is missing.

Ground rules, shared by all judges:

- A subscriber's deliveries are read by `nth`, never by time.
- A delivery is *in order* unless it was tagged late.
- The topic, publisher and sequence number of an event are those of its `events` row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from inorder.check import merge
from inorder.check.ending import Ending, clocks_apart, others_publish, window
from inorder.check.holding import OPS, Holding, holdings_of, json_object, scalars
from inorder.check.trace import DeliveryRow, EventRow, SubscriptionRow, read_summary, read_table
from inorder.core.errors import BadTrace


class History:
    """The rows of a run; reading the same rows in another order gives the same verdicts.

    `complete` is False when the end of the run may be missing; `accepted_known` is False when
    nobody recorded which publications were accepted; `bare` is explained above. `ending` is None
    when nobody said how the run ended. `clock_error` is how far the clocks of the publishers may be
    apart, in seconds: 0 for one clock, None when nobody knows. `within` replaces the window.
    `elsewhere` is True when events may have been published by processes whose traces are not here.
    """

    def __init__(
        self,
        deliveries: Iterable[DeliveryRow],
        events: Iterable[EventRow] | None = None,
        subscriptions: Iterable[SubscriptionRow] | None = None,
        *,
        complete: bool = True,
        accepted_known: bool = True,
        bare: bool = False,
        ending: Ending | None = None,
        within: float | None = None,
        clock_error: float | None = None,
        elsewhere: bool = False,
        source: str = "history",
    ) -> None:
        self.deliveries = tuple(deliveries)
        self.events = None if events is None else tuple(events)
        self.subscriptions = None if subscriptions is None else tuple(subscriptions)
        self.complete = complete
        self.accepted_known = accepted_known
        self.bare = bare
        self.ending = ending if ending is None or within is None else replace(ending, within=within)
        self.within = window(ending, within)
        self.clock_error = clock_error
        self.elsewhere = elsewhere
        self.source = source
        self._attributes: dict[str, dict[str, Any]] = {}
        self._validate()

    @classmethod
    def read(
        cls,
        folder: str | os.PathLike[str],
        within: float | None = None,
        clock_error: float | None = None,
    ) -> History:
        """The history in a trace folder; tables that are not there are absent."""
        summary = read_summary(folder)
        events = _rows_if_any(folder, "events")
        ours = "rows" in summary  # only our own writer counts the rows, and it writes all columns
        return cls(
            deliveries=read_table(folder, "deliveries"),
            events=events,
            subscriptions=_rows_if_any(folder, "subscriptions"),
            complete=bool(summary.get("complete", False)),
            accepted_known=ours or any(row.accepted_at is not None for row in events or ()),
            ending=Ending.of(summary, str(folder)),
            within=within,
            clock_error=clocks_apart([summary]) if clock_error is None else clock_error,
            elsewhere=others_publish([summary]),
            source=str(folder),
        )

    @classmethod
    def read_all(cls, folders: Sequence[str | os.PathLike[str]]) -> History:
        """The traces of several processes as one run."""
        merge.once(folders)
        parts = {str(folder): cls.read(folder) for folder in folders}
        merge.apart("subscriber", {path: _subscribers(one) for path, one in parts.items()})
        merge.apart("application", {path: one.applications for path, one in parts.items()})
        summaries = [read_summary(folder) for folder in folders]
        histories = list(parts.values())
        changes = [
            merge.with_ends(one.subscriptions, one.ending)
            for one in histories
            if one.subscriptions is not None
        ]
        events = [one.events for one in histories if one.events is not None]
        return cls(
            [row for one in histories for row in one.deliveries],
            [row for some in events for row in some] if len(events) == len(parts) else None,
            [row for some in changes for row in some] if len(changes) == len(parts) else None,
            complete=all(one.complete for one in histories),
            accepted_known=all(one.accepted_known for one in histories),
            ending=merge.ending_of([one.ending for one in histories]),
            clock_error=clocks_apart(summaries),
            elsewhere=others_publish(summaries),
            source=", ".join(parts),
        )

    @classmethod
    def foreign(
        cls, lines: Iterable[tuple[str, int, str]], source: str = "delivery log"
    ) -> History:
        """A bare history: who delivered what, at which place in its own sequence.

        >>> History.foreign([("s1", 2, "b"), ("s1", 1, "a")]).sequences
        {'s1': ['a', 'b']}
        """
        rows = [
            DeliveryRow(subscriber, nth, event, "", "", 0, 0.0, 0.0, 0.0)
            for subscriber, nth, event in lines
        ]
        return cls(rows, bare=True, source=source)

    @property
    def latest(self) -> float:
        """When the last thing happened that the history knows of."""
        times = [row.delivered_at for row in self.deliveries]
        times += [row.at for row in self.subscriptions or ()]
        for event in self.events or ():
            times += [event.published_at, event.accepted_at or event.published_at]
        return max(times, default=0.0)

    @cached_property
    def by_subscriber(self) -> dict[str, list[DeliveryRow]]:
        """Each subscriber's deliveries by `nth`; subscribers by name."""
        found: dict[str, list[DeliveryRow]] = {}
        for row in self.deliveries:
            found.setdefault(row.subscriber, []).append(row)
        return {name: sorted(found[name], key=lambda row: row.nth) for name in sorted(found)}

    @cached_property
    def sequences(self) -> dict[str, list[str]]:
        """Each subscriber's events delivered in order, each at its first such delivery."""
        return {
            name: list(dict.fromkeys(row.event for row in rows if row.in_order))
            for name, rows in self.by_subscriber.items()
        }

    @cached_property
    def event_rows(self) -> dict[str, EventRow]:
        """The events by name."""
        return {row.event: row for row in self.events or ()}

    @cached_property
    def numbers(self) -> dict[tuple[str, int], tuple[int, int]]:
        """The lowest and the highest number of each life of a publisher."""
        found: dict[tuple[str, int], tuple[int, int]] = {}
        for row in self.events or ():
            life = (row.publisher, row.epoch)
            lowest, highest = found.get(life, (row.seq, row.seq))
            found[life] = (min(lowest, row.seq), max(highest, row.seq))
        return found

    @cached_property
    def applications(self) -> dict[str, list[EventRow]]:
        """Each application's events in the order published.

        That is the order of their numbers; an application that published under several names (one
        after the other, or at once) is put in the order of its clock.
        """
        found: dict[str, list[EventRow]] = {}
        for row in self.events or ():
            found.setdefault(application(row), []).append(row)
        for rows in found.values():
            if len({row.publisher for row in rows}) == 1:
                rows.sort(key=lambda row: (row.epoch, row.seq))
            else:
                rows.sort(key=lambda row: (row.published_at, row.publisher, row.epoch, row.seq))
        return {name: found[name] for name in sorted(found)}

    @cached_property
    def holdings(self) -> dict[tuple[str, str], Holding]:
        """What each subscriber held of each topic, sorted by (subscriber, topic)."""
        return holdings_of(self.subscriptions or (), self.source)

    def attributes(self, event: EventRow) -> Mapping[str, Any]:
        """What a filter sees of an event, read from its JSON text."""
        found = self._attributes.get(event.event)
        if found is None:
            what = f"attributes of {event.event}"
            found = scalars(json_object(event.attributes, what, self.source))
            self._attributes[event.event] = found
        return found

    def _validate(self) -> None:
        places: set[tuple[str, int]] = set()
        for row in self.deliveries:
            place = (row.subscriber, row.nth)
            if row.nth < 1:
                raise BadTrace(self.source, f"{row.subscriber} delivers at place {row.nth}")
            if place in places:
                raise BadTrace(self.source, f"{row.subscriber} delivers twice at {row.nth}")
            places.add(place)
        for change in self.subscriptions or ():
            if change.op not in OPS:
                raise BadTrace(self.source, f"{change.subscriber}: unknown op {change.op!r}")
        self._validate_events()

    def _validate_events(self) -> None:
        names: set[str] = set()
        numbers: set[tuple[str, int, int]] = set()
        for row in self.events or ():
            if row.outcome not in (None, "accepted", "refused", "unknown"):
                raise BadTrace(self.source, f"event {row.event} has the outcome {row.outcome!r}")
            if row.seq < 1:
                raise BadTrace(self.source, f"event {row.event} has the number {row.seq}")
            number = (row.publisher, row.epoch, row.seq)
            if row.event in names or number in numbers:
                raise BadTrace(self.source, f"event {row.event} is published twice")
            names.add(row.event)
            numbers.add(number)


def _subscribers(history: History) -> set[str]:
    named = {row.subscriber for row in history.subscriptions or ()}
    return named | {row.subscriber for row in history.deliveries}


def application(event: EventRow) -> str:
    """Who published it."""
    return event.publisher if event.application is None else event.application


def _rows_if_any(folder: str | os.PathLike[str], table: str) -> list[Any] | None:
    try:
        rows = read_table(folder, table)  # complains at once if the table is absent
    except BadTrace:
        return None
    return list(rows)
