"""What the two ends of a session say to each other.

Rule 1: `session` and `number` name a frame for ever. `token` fences owners: an end that has heard a
        larger one of its peer refuses this one. `channel` tells sessions of the same two machines
        from each other: a peer of a network and the guarantee inside it have one each.
Rule 2: `ack` and `Ack.number` say that everything up to there was taken. `runs` name what came
        early and is kept: the run of the frame that has just come first, then the highest ones.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from inorder.core.numbers import Run

Body = TypeVar("Body")

Runs = tuple[Run, ...]


class Frame(Struct, Generic[Body], frozen=True, gc=False, array_like=True, tag="frame"):
    """One numbered message of a session."""

    session: int
    token: int
    number: int
    ack: int
    body: Body
    runs: Runs = ()
    channel: str = ""


class Ack(Struct, frozen=True, gc=False, array_like=True, tag="ack"):
    """What has come, when there is nothing else to say."""

    session: int
    token: int
    number: int
    runs: Runs = ()
    channel: str = ""


class Bye(Struct, frozen=True, gc=False, array_like=True, tag="bye"):
    """The session has ended with this many frames; who has fewer of them keeps it."""

    session: int
    token: int
    sent: int
    channel: str = ""


class Unknown(Struct, frozen=True, gc=False, array_like=True, tag="unknown"):
    """Nothing is remembered of this session: begin another one, with a number above `floor`."""

    session: int
    floor: int
    channel: str = ""


# What travels in a session besides frames.
Control = Ack | Bye | Unknown
