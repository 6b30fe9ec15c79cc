"""Everything a machine may ask its driver to do.

A machine answers an input with a list of effects. The driver carries them out in list order and
may crash between any two of them; a machine must be correct whichever prefix was carried out.

Rule 1: a `Persist` comes before every `Send`, `Diffuse`, `Deliver` and `Answer` of the same list,
        and the driver carries out nothing behind it before the record is on disk and synced.
Rule 2: effects are values. They can be logged, replayed, compared and cut; they hold no callbacks.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from inorder.core.event import Event, Stamp


class Persist(Struct, frozen=True, gc=False):
    """Append a record to this machine's durable log, and sync it."""

    record: bytes


class Send(Struct, frozen=True, gc=False):
    """Hand a message to the network for one other machine."""

    target: str
    message: Any


class Diffuse(Struct, frozen=True, gc=False):
    """Hand a message to the network for everybody who joined the topic."""

    topic: str
    message: Any


class Join(Struct, frozen=True, gc=False):
    """Ask the network for a topic's diffusions; the driver answers with `joined(topic)`."""

    topic: str


class Leave(Struct, frozen=True, gc=False):
    """Tell the network to stop a topic's diffusions."""

    topic: str


class Deliver(Struct, frozen=True, gc=False):
    """Hand an event to the application.

    `in_order` is False when it came too late to keep its place; `waited_s` says how long the
    machine held it back.
    """

    event: Event
    in_order: bool = True
    waited_s: float = 0.0


class Answer(Struct, frozen=True, gc=False):
    """End an application's call: `outcome` is accepted or refused (publish), done (the rest).

    `gap` is an answer nobody asked for: events of the topic in the call `gap/TOPIC` are lost for
    good, and the subscription begins anew behind them.
    """

    call: str
    outcome: str
    reason: str = ""
    stamp: Stamp = ()


class Launched(Struct, frozen=True, gc=False):
    """A publication that has waited in the machine is published now: the call it was asked for
    with, and the event that it has become. Its fate is answered under the event's id."""

    call: str
    event: Event


class SetTimer(Struct, frozen=True, gc=False):
    """Fire `name` after so many seconds; setting a running timer moves it.

    A `background` timer only watches: a world where nothing else is to happen is at rest.
    """

    name: str
    after_s: float
    background: bool = False


class CancelTimer(Struct, frozen=True, gc=False):
    """Forget a timer; forgetting one that does not run is fine."""

    name: str


class Note(Struct, frozen=True, gc=False):
    """Say that something worth counting happened: a line in the trace and a coverage mark."""

    mark: str
    detail: str = ""


Effect = (
    Persist | Send | Diffuse | Join | Leave | Deliver | Answer | Launched
    | SetTimer | CancelTimer | Note
)  # fmt: skip
