"""What the roles of total order say to each other.

Rule 1: a message holds values only, and whoever receives one may keep it: all are frozen.
Rule 2: `at` names the topic a `Fill` or `Walk` has reached; `want` lists the topics it still needs,
        lowest rank first. The route is decided hop by hop (path.py), never by the sender.
Rule 3: what must arrive exactly once and in order travels in a `Frame` (../session). What may be
        lost travels bare: events, heartbeats, repairs and renewals. Those say only what is durable,
        so a copy sent by an owner that has been replaced meanwhile does no harm.

Section numbers are those of "Total notification order", technical report MIDLAB 9/2011 ("the
report"): its CREATE_STAMP and FILL_IN rounds are section 4, its subscription walk is Figure 7.
"""

from __future__ import annotations

from msgspec import Struct

from inorder.core.event import Event, Stamp
from inorder.protocols.session.messages import Control, Frame


class Create(Struct, frozen=True, gc=False, array_like=True, tag="create"):
    """A publisher asks for numbers for a batch; the payload comes along (F3)."""

    topic: str
    events: tuple[Event, ...]


class Fill(Struct, frozen=True, gc=False, array_like=True, tag="fill"):
    """A stamp on its way up."""

    epoch: int
    topic: str
    first: int
    count: int
    at: str
    want: tuple[str, ...]
    stamp: Stamp


class Complete(Struct, frozen=True, gc=False, array_like=True, tag="complete"):
    """A stamp without gaps, back at its origin."""

    topic: str
    first: int
    stamp: Stamp


class Accepted(Struct, frozen=True, gc=False, array_like=True, tag="accepted"):
    """The batch whose first event is `seq` has the numbers first, first + 1, ..."""

    topic: str
    seq: int
    first: int
    count: int
    epoch: int
    stamp: Stamp
    # For a publisher that diffuses its events itself.
    forgotten: int = 0


class Events(Struct, frozen=True, gc=False, array_like=True, tag="events"):
    """A numbered batch for everybody who holds the topic.

    `stamp` holds the entries of the other topics. They are shared by the whole batch: nobody can
    see the counter between two events of a batch, so a batch is contiguous in the total order.
    """

    topic: str
    first: int
    epoch: int
    stamp: Stamp
    events: tuple[Event, ...]
    # The topic's number `forgotten` when the batch was made (lease.py).
    forgotten: int = 0


class Walk(Struct, frozen=True, gc=False, array_like=True, tag="walk"):
    """A change of what a subscriber holds: `topics` from now on, told to all of `visit`.

    `epoch` is -1 until the walk has entered, that is until the manager of the lowest topic of
    `visit` has let it in and become responsible for it. A stage that passes it on to that manager
    puts its own epoch into `seen`: who knows only an older order would send it back.
    """

    subscriber: str
    version: int
    topics: tuple[str, ...]
    visit: tuple[str, ...]
    epoch: int = -1
    at: str = ""
    want: tuple[str, ...] = ()
    stamp: Stamp = ()
    seen: int = 0
    # What it has seen of the numbers `forgotten`, where they are not 0.
    forgotten: Stamp = ()


class WalkDone(Struct, frozen=True, gc=False, array_like=True, tag="walk_done"):
    """The walk has passed everybody; `stamp` says where each topic stood."""

    subscriber: str
    version: int
    stamp: Stamp
    forgotten: Stamp = ()


class Left(Struct, frozen=True, gc=False, array_like=True, tag="left"):
    """The same news for the manager at which the walk entered: one round fewer outstanding."""

    subscriber: str
    version: int


class Repair(Struct, frozen=True, gc=False, array_like=True, tag="repair"):
    """A subscriber misses the numbers first..last of a topic."""

    topic: str
    first: int
    last: int


class Gone(Struct, frozen=True, gc=False, array_like=True, tag="gone"):
    """The answer to a repair that comes too late: nothing up to `last` is kept any more."""

    topic: str
    last: int


class Heartbeat(Struct, frozen=True, gc=False, array_like=True, tag="heartbeat"):
    """The highest number diffused on a topic, said once when no event has followed for a while."""

    topic: str
    number: int


class Renew(Struct, frozen=True, gc=False, array_like=True, tag="renew"):
    """A subscriber still holds these topics: it has everything of each up to a number, and knows
    of so many that each has forgotten."""

    topics: tuple[tuple[str, int, int], ...]


# A topic, how many forgotten the one asking knew of, how many there are, and whether it is still
# registered and has been ever since.
Standing = tuple[str, int, int, bool]


class Renewed(Struct, frozen=True, gc=False, array_like=True, tag="renewed"):
    """The answer to a renewal, of the topics that have forgotten somebody."""

    topics: tuple[Standing, ...]


class Forget(Struct, frozen=True, gc=False, array_like=True, tag="forget"):
    """Subscribers whose lease has run out; never on a wire, only in a stage's log."""

    subscribers: tuple[str, ...]


class SwapRequest(Struct, frozen=True, gc=False, array_like=True, tag="swap_request"):
    """A manager found a busier topic below its own (the report's measure)."""

    epoch: int
    upper: str
    lower: str


class Moved(Struct, frozen=True, gc=False, array_like=True, tag="moved"):
    """The rate of a topic has doubled, or halved, since its manager last said so."""

    topic: str


class Demand(Struct, frozen=True, gc=False, array_like=True, tag="demand"):
    """A walk visits these topics: they belong together, and on one line of a forest."""

    topics: tuple[str, ...]


class Reorder(Struct, frozen=True, gc=False, array_like=True, tag="reorder"):
    """An operator's order of all topics; never on a wire, only in the ranking's log."""

    order: tuple[str, ...]


class Ask(Struct, frozen=True, gc=False, array_like=True, tag="ask"):
    """A change is to come: are you there? Nothing stops yet."""

    epoch: int
    attempt: int


class Ready(Struct, frozen=True, gc=False, array_like=True, tag="ready"):
    """Here we are; our topics' counters stand at `counts`, and the longest round since we were last
    asked took so many seconds."""

    epoch: int
    attempt: int
    counts: Stamp
    longest: float


class Freeze(Struct, frozen=True, gc=False, array_like=True, tag="freeze"):
    """Begin no rounds of these topics of yours; say when their last one has ended."""

    epoch: int
    attempt: int
    topics: tuple[str, ...]


class Frozen(Struct, frozen=True, gc=False, array_like=True, tag="frozen"):
    """All rounds of the topics named have ended; their counters stand at `counts`."""

    epoch: int
    attempt: int
    counts: Stamp


class Abort(Struct, frozen=True, gc=False, array_like=True, tag="abort"):
    """Somebody has not answered in time: go on as before."""

    epoch: int
    attempt: int


class Install(Struct, frozen=True, gc=False, array_like=True, tag="install"):
    """The order of a new epoch. `cut` is the counter of every topic that stood still for it;
    `parents` is the forest as (topic, parent) pairs."""

    epoch: int
    order: tuple[str, ...]
    cut: Stamp
    parents: tuple[tuple[str, str], ...] = ()


# What travels in frames.
Body = (
    Create | Fill | Complete | Accepted | Walk | WalkDone | Left | Forget
    | SwapRequest | Moved | Demand | Reorder | Ask | Ready | Freeze | Frozen | Abort | Install
)  # fmt: skip

# What travels bare.
Casual = Events | Repair | Gone | Heartbeat | Renew | Renewed


Message = Frame[Body] | Control | Casual | Body
