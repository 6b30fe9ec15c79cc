"""A filter session: what one neighbour that advertises a topic is told about our side.

Rule 1: what was sent on the link is compared with what is wanted now, entry by entry, under the
        link's own numbers (rids). Predicates that look alike are not a reason for silence (E-C9b),
        and nobody else's names appear (E-C9a).
Rule 2: one change is one message. Only new entries may go ahead of the rest when there are too many
        for one: early additions lose nothing.
Rule 3: the first message of a session is a reset with everything, also when that is nothing.
Rule 4: every message has a version. `needed` is the one that carries all that is wanted now; the
        neighbour confirms it when it is in force behind it too (broker.py).

Summaries have rids of their own. They are translated, so that a session survives a snapshot: the
new summary's entries are matched with those the neighbour knows already, and only what differs is
sent. Two brokers with equal snapshots hence differ at most in which of two equal entries is which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from inorder.content.engine import Form, Forms
from inorder.content.messages import Flt
from inorder.content.same import alike
from inorder.content.skeleton import Vector
from inorder.content.smoothing import Smoothing, Window, broadened, narrowed, outermost
from inorder.content.summary import Delta, Summary
from inorder.core.limits import (
    CONTENT_FILTER_ENTRIES,
    CONTENT_FILTER_VALUES,
    CONTENT_UNCONFIRMED_MAX,
)
from inorder.core.pack import pack


class FilterState(Struct):
    """The state of a session, for the snapshot."""

    session: int
    # Versions sent and confirmed; whether the reset has gone out.
    sent: int = 0
    acked: int = 0
    begun: bool = False
    # What the neighbour knows, by rid.
    told: dict[int, Form] = {}
    next_rid: int = 1
    # A change waits for `min_interval` to pass; when something was last sent.
    withheld: bool = False
    sent_at: float = 0.0
    # Entries that could be narrower, by rid.
    windows: dict[int, Window] = {}


class Filter:
    """One topic, one neighbour."""

    def __init__(
        self,
        topic: str,
        state: FilterState,
        summary: Summary,
        smoothing: Smoothing | None = None,
        min_interval: float = 0.0,
        unconfirmed_max: int = CONTENT_UNCONFIRMED_MAX,
    ) -> None:
        self.s = state
        self.s.windows = dict(sorted(state.windows.items(), key=_opened))
        self._topic = topic
        self._summary = summary
        self._smoothing = smoothing
        self._min_interval = min_interval
        self._unconfirmed_max = unconfirmed_max
        # The summary's rids in the link's.
        self._rids: dict[int, int] = {}
        self._touched = False
        # What `adopt` left to say: deleted rids are the link's, the others the summary's.
        self._rest = Delta()

    def adopt(self) -> None:
        """After a snapshot: find out which entries of the summary the neighbour knows already."""
        if not self.s.begun:
            return
        told, entries = self.s.told, dict(self._summary.everything())
        free = {*told}
        for aspect in (_whole, _skeleton):
            known: dict[bytes, list[int]] = {}
            for rid in sorted(free, reverse=True):
                known.setdefault(aspect(told[rid]), []).append(rid)
            for inner, form in sorted(entries.items()):
                rids = known.get(aspect(form)) if inner not in self._rids else None
                if rids:
                    self._rids[inner] = rids.pop()
                    free.remove(self._rids[inner])
        self._rest = Delta(
            tuple(sorted(free)),
            tuple((inner, entries[inner]) for inner in sorted(entries) if inner not in self._rids),
            tuple(
                (inner, entries[inner][1])
                for inner, rid in sorted(self._rids.items())
                if not alike(told[rid][1], entries[inner][1])
            ),
        )
        self._touched = bool(self._rest) or self.s.withheld

    def put(self, key: tuple[str, int], forms: Forms) -> None:
        self._summary.put(key, forms)
        self._touched = True

    def drop(self, key: tuple[str, int]) -> None:
        self._summary.drop(key)
        self._touched = True

    @property
    def full(self) -> bool:
        """Whether the neighbour has enough to confirm. It must not be told more than it allows;
        half of that leaves room for a change in several pieces."""
        return self.s.sent - self.s.acked >= max(1, self._unconfirmed_max // 2)

    @property
    def needed(self) -> int:
        return self.s.sent + 1 if self.s.withheld else self.s.sent

    def due(self) -> float | None:
        """When to look again though nothing happens; a full link looks when it is confirmed."""
        if self.full:
            return None
        earliest = self.s.sent_at + self._min_interval
        times = [earliest] if self.s.withheld else []
        # The windows stand in the order in which they were opened.
        times += [window.since + self._hold for window in islice(self.s.windows.values(), 1)]
        return max(min(times), earliest) if times else None

    def step(self, now: float) -> list[Flt]:
        """The messages that bring the neighbour up to date, as far as it may be told now."""
        s = self.s
        if not s.begun:
            return self._begin(now)
        if not (self._touched or s.windows):
            return []
        # A clock that went back must not silence the link for long.
        if self.full or s.sent_at <= now < s.sent_at + self._min_interval:
            s.withheld = s.withheld or self._touched
            return []
        delta = self._change(now)
        if not delta and not s.withheld:
            return []
        # Somebody may wait for the version of a change that has been taken back meanwhile.
        s.withheld = False
        s.sent_at = now
        return list(self._messages(delta, reset=False))

    def _begin(self, now: float) -> list[Flt]:
        s = self.s
        s.begun, s.sent_at, self._touched = True, now, False
        added: list[tuple[int, Form]] = []
        for inner, form in self._summary.everything():
            added.append((self._new_rid(inner), form))
        s.told = dict(added)
        return list(self._messages(Delta(added=tuple(added)), reset=True))

    def _change(self, now: float) -> Delta:
        """What the summary says has changed, in the link's rids, smoothed if so chosen."""
        s = self.s
        rest, self._rest = self._rest, Delta()
        change = self._summary.delta() if self._touched else Delta()
        self._touched = False
        # An entry that was withheld and taken back has no number yet.
        freed = [self._rids.pop(inner) for inner in change.deleted if inner in self._rids]
        deleted = [*rest.deleted, *freed]
        for rid in deleted:
            s.told.pop(rid)
            s.windows.pop(rid, None)
        gone = {*change.deleted}
        added: dict[int, Form] = {}
        for inner, form in [*(one for one in rest.added if one[0] not in gone), *change.added]:
            added[self._new_rid(inner)] = form
        moves = [*(one for one in rest.moved if one[0] not in gone), *change.moved]
        moved: dict[int, Vector] = {}
        for inner, vector in moves:
            rid = self._rids[inner]
            if rid in added:
                added[rid] = (added[rid][0], vector)
            elif not alike(vector := self._smoothed(rid, vector, now), s.told[rid][1]):
                moved[rid] = vector
                s.told[rid] = (s.told[rid][0], vector)
        s.told.update(added)
        self._narrow(now, moved)
        return Delta(
            tuple(sorted(deleted)), tuple(sorted(added.items())), tuple(sorted(moved.items()))
        )

    def _new_rid(self, inner: int) -> int:
        rid = self._rids[inner] = self.s.next_rid
        self.s.next_rid += 1
        return rid

    @property
    def _hold(self) -> float:
        return self._smoothing.hold if self._smoothing else 0.0

    def _smoothed(self, rid: int, target: Vector, now: float) -> Vector:
        if self._smoothing is None:
            return target
        windows, margin = self.s.windows, self._smoothing.margin
        skeleton, told = self.s.told[rid]
        known = broadened(skeleton, told, target, margin)
        window = windows.get(rid)
        peak = outermost(skeleton, window.peak, target) if window else target
        if narrowed(skeleton, known, peak, margin) != known:
            windows[rid] = Window(window.since if window else now, target, peak)
        else:
            windows.pop(rid, None)
        return known

    def _narrow(self, now: float, moved: dict[int, Vector]) -> None:
        """Draw in what has been too wide for long enough; the next hold begins where it is now."""
        if self._smoothing is None:
            return
        s, margin = self.s, self._smoothing.margin
        for rid, window in list(s.windows.items()):
            if window.since <= now < window.since + self._smoothing.hold:
                break
            skeleton, told = s.told[rid]
            vector = narrowed(skeleton, told, window.peak, margin)
            del s.windows[rid]
            if narrowed(skeleton, vector, window.target, margin) != vector:
                s.windows[rid] = Window(now, window.target, window.target)
            moved[rid] = vector
            s.told[rid] = (skeleton, vector)

    def _messages(self, delta: Delta, reset: bool) -> Iterator[Flt]:
        chunks = list(_chunks(delta.added))
        more = reset
        for chunk in chunks[:-1]:
            yield self._message(Delta(added=chunk), reset, more)
            reset = False
        last = chunks[-1] if chunks else ()
        yield self._message(Delta(delta.deleted, last, delta.moved), reset)

    def _message(self, delta: Delta, reset: bool, more: bool = False) -> Flt:
        self.s.sent += 1
        return Flt(self._topic, self.s.session, self.s.sent, reset, delta, more)


def _opened(window: tuple[int, Window]) -> tuple[float, int]:
    return window[1].since, window[0]


def _whole(form: Form) -> bytes:
    return pack(form)


def _skeleton(form: Form) -> bytes:
    return pack(form[0])


def _chunks(added: Sequence[tuple[int, Form]]) -> Iterator[tuple[tuple[int, Form], ...]]:
    """Pieces that fit into one frame each."""
    piece: list[tuple[int, Form]] = []
    weight = 0
    for entry in added:
        heavy = _weight(entry[1])
        full = len(piece) >= CONTENT_FILTER_ENTRIES or weight + heavy > CONTENT_FILTER_VALUES
        if piece and full:
            yield tuple(piece)
            piece, weight = [], 0
        piece.append(entry)
        weight += heavy
    if piece:
        yield tuple(piece)


def _weight(form: Form) -> int:
    """About how many bytes the values of an entry take."""
    total = 0
    for filling in form[1]:
        for value in filling if isinstance(filling, tuple) else (filling,):
            total += len(value) * 2 if isinstance(value, str) else 9
    return total
