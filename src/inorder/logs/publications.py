"""What one life of a publisher has under way on one log.

Three tasks publish at once: their events go as one append. The broker answers with offsets, or
refuses, or does not answer. Then nothing more is sent: the log is read to its end, what stands
there was stored, and what does not is sent again.

Rule 1: one append is under way at a time, of as many publications as are waiting.
Rule 2: nothing is sent behind an append whose fate is unknown. Else the log could hold 4, 6 and
        then 5 again, and readers would take 5 for a repeat.
Rule 3: where the broker does not refuse repeats, a new epoch begins before the log is read: what
        the old one may still bring behind its row counts for nothing, so what is found is final.
Rule 4: a publication whose time is over is refused if it was not sent, and unknown if it was; an
        unknown one stays under way until the log has been read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from inorder.core.errors import TooLarge
from inorder.core.limits import APPEND_BYTES_MAX, WAITING_PUBLICATIONS_MAX
from inorder.logs.broker import Author, Run, Stored


class Publication(Struct, eq=False):
    """Some events of one topic that were published together; `call` is the caller's name for it,
    `until` the time after which its fate is told, known or not."""

    call: int
    topic: str
    count: int
    values: bytes
    published_at: float
    until: float
    keys: tuple[str | None, ...] | None = None
    headers: tuple[Mapping[str, str] | None, ...] | None = None
    # Given at the launch.
    sequence: int | None = None
    # How many of its events have been told of, now and when it was sent.
    told: int = 0
    skipped: int = 0


class Append(Struct, frozen=True):
    """Ask the broker to append this."""

    author: Author
    runs: Sequence[Run]


class Look(Struct, frozen=True):
    """Read the log from this offset to its end: what of this author counts there? Where its life
    was ended by a later one's row, only what is below that row."""

    author: Author
    offset: int


class Renew(Struct, frozen=True):
    """Begin a new epoch: answer with `renewed`."""


class Fate(Struct, frozen=True, gc=False):
    """What became of `count` events of a call, from its event number `first` on (from 0)."""

    call: int
    first: int
    count: int
    outcome: str
    author: Author
    sequence: int
    offsets: Sequence[int] = ()
    reason: str = ""


Effect = Append | Look | Renew | Fate


class Publications:
    """`known` is an offset of the log: nothing of this life lies below it."""

    def __init__(self, author: Author, refuses_repeats: bool, known: int) -> None:
        self.author = author
        self._refuses_repeats = refuses_repeats
        self._known = known
        self._sequence = 0
        self._waiting: deque[Publication] = deque()
        self._flight: list[Publication] = []
        # Whether what is under way has been sent before, and whether that was refused.
        self._again = False
        self._looks = False
        self._count = 0
        # The life under which what is under way was sent.
        self._sent_by = author

    @property
    def waiting(self) -> int:
        """Events without a fate."""
        return self._count

    def publish(self, publication: Publication) -> list[Effect]:
        if self._count + publication.count > WAITING_PUBLICATIONS_MAX and self._count:
            raise TooLarge(
                "number of events under way",
                self._count + publication.count,
                WAITING_PUBLICATIONS_MAX,
            )
        self._count += publication.count
        self._waiting.append(publication)
        return self._launch()

    # What the broker says.

    def stored(self, stored: Stored) -> list[Effect]:
        effects: list[Effect] = []
        offsets = stored.offsets
        place = 0
        for publication in self._flight:
            sent = publication.count - publication.skipped
            if publication.told == publication.skipped:
                self._tell(effects, publication, "stored", offsets[place : place + sent])
                self._tell(effects, publication, self._lost, (), stored.reason)
            place += sent
        if offsets:
            self._known = offsets[-1] + 1
        self._land()
        return effects + self._launch()

    def refused(self, reason: str) -> list[Effect]:
        if self._again and self._refuses_repeats and not self._looks:
            # A repeat is refused, too: look whether the first try has come meanwhile.
            self._looks = True
            return [Look(self.author, self._known)]
        effects: list[Effect] = []
        for publication in self._flight:
            self._tell(effects, publication, self._lost, (), reason)
        self._land()
        return effects + self._launch()

    @property
    def _lost(self) -> str:
        """The fate of what was refused: a first try without an answer may still come."""
        return "unknown" if self._again and self._refuses_repeats else "refused"

    def unsure(self) -> list[Effect]:
        self._again = True
        return [Look(self.author, self._known)] if self._refuses_repeats else [Renew()]

    def renewed(self, author: Author, offset: int) -> list[Effect]:
        """A new epoch has begun, with a row at this offset: nothing of the one before counts behind
        it, so what it has below is final."""
        self.author, self._sequence = author, 0
        return [Look(self._sent_by, self._known)] if self._flight else self._launch()

    def found(self, runs: Sequence[Run], upto: int) -> list[Effect]:
        """The log has been read to its end: these runs of the author asked for stand there."""
        places = {
            run.sequence + index: run.offset + index for run in runs for index in range(run.count)
        }
        effects: list[Effect] = []
        for publication in self._flight:
            first = (publication.sequence or 0) + publication.told
            mine: list[int] = []
            for sequence in range(first, first + publication.count - publication.told):
                if sequence not in places:
                    break  # an append stores a prefix
                mine.append(places[sequence])
            self._tell(effects, publication, "stored", mine)
        self._flight = [each for each in self._flight if each.told < each.count]
        self._known = upto
        if not self._flight:
            self._land()
            return effects + self._launch()
        if self._looks:
            return effects + self.refused("the broker refused what was sent again")
        if not self._refuses_repeats:
            for publication in self._flight:
                self._number(publication)
        return [*effects, self._append()]

    def ended(self, reason: str) -> list[Effect]:
        """This life is over: nothing more is sent."""
        effects: list[Effect] = []
        for publication in self._flight:
            outcome = "unknown" if self._again else "refused"
            self._tell(effects, publication, outcome, (), reason)
        self._land()
        while self._waiting:
            self._tell(effects, self._waiting.popleft(), "refused", (), reason)
        return effects

    # Time.

    def expire(self, now: float) -> list[Effect]:
        """Tell the fates of what has waited long enough."""
        effects: list[Effect] = []
        for publication in self._flight:
            if publication.until <= now:
                self._tell(effects, publication, "unknown", (), "no answer in time")
        kept = deque(each for each in self._waiting if each.until > now)
        for publication in self._waiting:
            if publication.until <= now:
                self._tell(effects, publication, "refused", (), "not sent in time")
        self._waiting = kept
        return effects

    def next_end(self) -> float | None:
        """When `expire` has something to tell."""
        ends = [each.until for each in self._waiting]
        ends += [each.until for each in self._flight if each.told < each.count]
        return min(ends, default=None)

    # Inside.

    def _launch(self) -> list[Effect]:
        if self._flight or not self._waiting:
            return []
        size = 0
        while self._waiting and (not self._flight or size < APPEND_BYTES_MAX):
            publication = self._waiting.popleft()
            self._number(publication)
            size += len(publication.values)
            self._flight.append(publication)
        return [self._append()]

    def _number(self, publication: Publication) -> None:
        publication.sequence = self._sequence + 1 - publication.told
        self._sequence += publication.count - publication.told

    def _append(self) -> Append:
        self._sent_by = self.author
        return Append(self.author, [self._run(each) for each in self._flight])

    def _run(self, publication: Publication) -> Run:
        p, skip = publication, publication.told
        p.skipped = skip
        return Run(
            p.topic, self.author.publisher, self.author.epoch, (p.sequence or 0) + skip,
            p.count - skip,
            p.values if not skip else without(p.values, skip), p.published_at,
            p.keys if p.keys is None else p.keys[skip:],
            p.headers if p.headers is None else p.headers[skip:],
        )  # fmt: skip

    def _land(self) -> None:
        self._flight = []
        self._again = self._looks = False

    def _tell(
        self,
        effects: list[Effect],
        publication: Publication,
        outcome: str,
        offsets: Sequence[int],
        reason: str = "",
    ) -> None:
        left = publication.count - publication.told
        count = len(offsets) if outcome == "stored" else left
        if count:
            launched = publication.sequence
            author = self.author if launched is None else self._sent_by
            sequence = 0 if launched is None else launched + publication.told
            effects.append(
                Fate(publication.call, publication.told, count, outcome, author, sequence,
                     offsets, reason)
            )  # fmt: skip
            publication.told += count
            self._count -= count


def without(values: bytes, skip: int) -> bytes:
    """A MessagePack array without its first elements."""
    kept = msgspec.msgpack.decode(values, type=list[msgspec.Raw])[skip:]
    return msgspec.msgpack.encode(kept)
