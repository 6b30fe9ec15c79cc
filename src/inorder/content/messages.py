"""What clients and brokers of content subscriptions say to each other.

Rule 1: names of parameters never travel; forms (a skeleton and its values) and vectors do. A number
        means something on one link only: `sid` between a client and its edge broker, the rids of a
        delta between two brokers (the paper's broker variables, Sec. 4.3).
Rule 2: each message is applied as a whole. All variables of one update stand in one `Set` (E-C7b),
        all changes of a summary in one `Flt` (E-C6).
Rule 3: links are reliable and keep the order; over a network that does neither, each of them is a
        session (guarantee/lines.py). What a link is when it begins is said by `Attach` or `Hello`;
        nothing is listened to before.

A *session* is the time between an advertisement and its end on one link. The advertiser numbers it,
and the filters that answer it carry the number: those of a closed session are recognised (E-C19).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.content.engine import Forms
from inorder.content.skeleton import Vector
from inorder.content.summary import Delta
from inorder.core.event import Scalar


class Attach(Struct, frozen=True, gc=False, array_like=True, tag="attach"):
    """A client begins, or begins anew: all else the edge knew of it is over.

    The edge keeps what is listed until the client says it again, so that a client that reconnects
    takes nothing back that it still wants.
    """

    topics: tuple[str, ...] = ()
    sids: tuple[int, ...] = ()
    # Larger after every beginning: answers to an earlier one are recognised by it.
    life: int = 0


class Adv(Struct, frozen=True, gc=False, array_like=True, tag="adv"):
    """Events of the topic may come from here, or will not any more; a client's session is 0."""

    topic: str
    on: bool
    session: int = 0


class Sub(Struct, frozen=True, gc=False, array_like=True, tag="sub"):
    """A new subscription: it matches what one of its forms matches."""

    sid: int
    topic: str
    forms: Forms
    version: int


class Set(Struct, frozen=True, gc=False, array_like=True, tag="set"):
    """Other values: the place of each form that changes, and its whole new vector."""

    sid: int
    version: int
    vectors: tuple[tuple[int, Vector], ...]


class Replace(Struct, frozen=True, gc=False, array_like=True, tag="replace"):
    """Another structure, in one step."""

    sid: int
    version: int
    forms: Forms


class Unsub(Struct, frozen=True, gc=False, array_like=True, tag="unsub"):
    """The end of a subscription."""

    sid: int
    version: int


class Pub(Struct, frozen=True, gc=False, array_like=True, tag="pub"):
    """An event on its way. Without attributes it matches every interest in its topic, except one
    that with its present values nothing could match: summaries do not mention those.

    `body` is what the machines at the ends exchange; brokers do not look into it.
    """

    topic: str
    publisher: str
    seq: int
    attributes: dict[str, Scalar] | None
    body: Any = None


class Hello(Struct, frozen=True, gc=False, array_like=True, tag="hello"):
    """A broker begins a link: the brokers that would hang on it, itself among them.

    `again`: there was a link before, of which one end may have forgotten everything (repair.py).
    """

    members: tuple[str, ...]
    again: bool = False


class News(Struct, frozen=True, gc=False, array_like=True, tag="news"):
    """Brokers that came, or went, behind the sender."""

    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Said(Struct, frozen=True, gc=False, array_like=True, tag="said"):
    """Since the link began anew the sender has said all that it, and what is behind it, knew."""


class Bye(Struct, frozen=True, gc=False, array_like=True, tag="bye"):
    """The link is refused or over."""

    reason: str


class Flt(Struct, frozen=True, gc=False, array_like=True, tag="flt"):
    """What the sender's side wants of a topic: a change, or with `reset` all of it.

    `version` counts the filters of one session from 1. `more`: the reset goes on in the next one.
    """

    topic: str
    session: int
    version: int
    reset: bool
    delta: Delta
    more: bool = False


class Fack(Struct, frozen=True, gc=False, array_like=True, tag="fack"):
    """The filters up to `version` are in force here and on every way to an advertiser."""

    topic: str
    session: int
    version: int


class Installed(Struct, frozen=True, gc=False, array_like=True, tag="installed"):
    """The same news for a client: what is published from now on meets this version."""

    sid: int
    version: int
    life: int = 0


class Err(Struct, frozen=True, gc=False, array_like=True, tag="err"):
    """The edge refused something; for a publication `sid` is 0 and `version` its number."""

    sid: int
    version: int
    code: str
    text: str


ToBroker = (
    Attach | Adv | Sub | Set | Replace | Unsub | Pub | Hello | News | Said | Bye | Flt | Fack
)  # fmt: skip
ToClient = Pub | Installed | Err
Message = ToBroker | Installed | Err
