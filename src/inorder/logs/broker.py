"""The seam: what a broker, which holds logs, does for publishers and readers.

A file is a broker with one log. A table, a partition, a stream are logs, too. Every log keeps what
was appended, in an order of its own: each event has an *offset*, which grows, may leave holes, and
never changes.

Rule 1: `append` stores a prefix of what it is given, and says which. `Refused`: nothing was stored
        and nothing will be. `Unsure`: no answer came; `last` says later what was stored.
        `Replaced`: a later life of this publisher has written here.
Rule 2: below an end that is *stable* nothing is ever added or replaced. Ends come from whoever
        leads the log, never from a guess with a timeout.
Rule 3: `read` gives everything below `Rows.upto`, in order, once. Fewer runs than expected, or
        none, are holes. What was removed is said in `Rows.removed`, between the runs.
Rule 4: a log's identity comes from the broker itself: two addresses of one file are one log, and a
        file made again under an old name is another.
Rule 5: what cannot be what was written is `Damaged`, with log and offsets; the rest stays readable.
Rule 6: nothing above an adapter knows its name. What adapters can do is data (`Traits`), and one
        suite of tests holds all of them to what they say (tests/brokers/contract).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from inorder.logs.coordinator import Coordinator
from inorder.logs.topics import Topics


class Log(Struct, frozen=True, gc=False):
    """A log: `identity` is its own for ever, `name` is for people. `topics` are those it holds;
    None if its events say themselves what they are about, as those of a file do."""

    identity: str
    name: str
    topics: tuple[str, ...] | None = None


class Author(Struct, frozen=True, gc=False):
    """One life of a publisher. Who has no name of its own has a random one, and one life."""

    publisher: str
    epoch: int = 1
    named: bool = False


class Run(Struct, frozen=True, gc=False):
    """Events of one topic by one author that stand side by side in a log.

    `offset` and `sequence` are those of the first event; the others follow without a hole.
    `values` is one MessagePack array with `count` values; nil stands for an event that was erased.
    `keys` and `headers` have a place for each event, or are None if none has any. `published_at` is
    the publisher's clock, `stored_at` the broker's. A run of 0 events is the beginning of a life:
    what earlier epochs of its publisher have behind it is not published.

    `mark` is what `Broker.mark` says for the offset behind each of these events: events that were
    stored in one step may share it, since none of them is ever there without the others.

    For an append `offset`, `stored_at` and `mark` say nothing yet.
    """

    topic: str
    publisher: str
    epoch: int
    sequence: int
    count: int
    values: bytes
    published_at: float = 0.0
    keys: tuple[str | None, ...] | None = None
    headers: tuple[Mapping[str, str] | None, ...] | None = None
    offset: int = -1
    stored_at: float = 0.0
    mark: bytes = b""


class Stored(Struct, frozen=True, gc=False):
    """What an append has stored: the offset of each event, in their order (a range where they stand
    side by side). Fewer than were given: `reason` says why the rest was refused."""

    offsets: Sequence[int]
    reason: str = ""


class Rows(Struct, frozen=True, gc=False):
    """What was read: every event below `upto` that was wanted, and the ranges (from, to) that were
    removed. `upto` may lie above the last run, and above what was asked for."""

    runs: Sequence[Run]
    upto: int
    removed: Sequence[tuple[int, int]] = ()


class End(Struct, frozen=True, gc=False):
    """The end of a log: the first offset kept; then, each the offset after the last, how far it is
    stable, and how far receipts were given. `mark` is that of the stable end (`Broker.mark`)."""

    first: int
    stable: int
    written: int
    mark: bytes


class Traits(Struct, frozen=True):
    """What an adapter says of its broker. The contract suite checks every line.

    `wakes`: it tells of other processes' appends by itself. `refuses_repeats`: an append whose
    sequence is not above its author's last is refused by the broker. `atomic`: an append is stored
    whole or not at all. `shares`: other processes can open the same logs. `durable`: what has a
    receipt outlives a power cut. `event_bytes`: the largest value, encoded.
    """

    wakes: bool
    refuses_repeats: bool
    atomic: bool
    shares: bool
    durable: bool
    event_bytes: int


class Broker(Protocol):
    """One connection. Every method may raise `Refused`, when it may work a little later."""

    traits: Traits

    @property
    def coordinator(self) -> Coordinator | None:
        """Where facts about publishers and readers of these logs are kept, if it keeps any."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def logs(self, topics: Topics) -> Sequence[Log]:
        """The logs that hold such topics, or may; others may appear later."""

    async def append(self, log: Log, author: Author, runs: Sequence[Run]) -> Stored:
        """Append events, in this order; their sequences grow."""

    async def last(self, log: Log, author: Author) -> int | None:
        """The last sequence stored of this author, 0 if none; None if the broker does not keep it,
        and the log must be read."""

    async def shut(self, log: Log, author: Author) -> int:
        """Write the beginning of this life: from here on nothing of earlier ones is stored. Its
        offset. `Replaced` if a later life has begun."""

    async def read(self, log: Log, offset: int, limit: int, topics: Topics) -> Rows:
        """Events from an offset on, in about so many bytes, at least one run if there is any."""

    async def settle(self, logs: Sequence[Log]) -> Mapping[str, End]:
        """The ends of logs, by identity, as they are now. A log that does not answer is missing."""

    async def at(self, log: Log, time: float) -> int:
        """The first offset stored at this time (seconds since 1970) or after; the stable end if
        there is none."""

    async def mark(self, log: Log, offset: int) -> bytes | None:
        """What the past below this offset looks like, in 8 bytes: another past has another mark.
        None if that past was removed, no bytes if the log does not reach so far."""

    async def erase(self, log: Log, offset: int) -> None:
        """Leave a stub of this event: its value is gone, its place stays."""

    async def remove(self, log: Log, below: int) -> None:
        """Drop what lies below an offset."""

    async def moved(self, ends: Mapping[str, int], timeout: float) -> None:
        """Return when a log may have grown above this end (by identity), or after so many seconds;
        returning for nothing is allowed."""

    async def status(self) -> dict[str, Any]:
        """Figures for people: topics, events, bytes, names."""
