"""The receiving end: the next number is taken, what comes early waits in a window.

Rule 1: the window holds so many frames and so many bytes. What finds no room is dropped and not
        named in an acknowledgement, so that it comes again.
Rule 2: what is named is kept until it is taken, for as long as this owner lives.
"""

from __future__ import annotations

from typing import Generic, Literal

from msgspec import Struct, field

from inorder.core.limits import LINK_WINDOW_BYTES, LINK_WINDOW_FRAMES
from inorder.core.numbers import Numbers
from inorder.protocols.session.messages import Body, Frame, Runs
from inorder.protocols.session.outgoing import RUNS_MAX


class Early(Struct, Generic[Body], gc=False, array_like=True):
    """A frame that waits, and its bytes."""

    frame: Frame[Body]
    size: int


class Incoming(Struct, Generic[Body], array_like=True):
    """One direction of a session, as its receiver sees it."""

    # The floor was taken, the runs above it wait in the window.
    come: Numbers = field(default_factory=Numbers)
    # By number, as text: the keys of a state are.
    window: dict[str, Early[Body]] = {}
    bytes: int = 0
    # The number that came last: acknowledgements name its run first.
    latest: int = 0
    # Acknowledged up to here, if the owner says so; else all that was taken.
    safe: int | None = None

    @property
    def received(self) -> int:
        return self.come.floor

    @property
    def acknowledged(self) -> int:
        """What the sender may forget. What was taken besides is named as if it had come early."""
        return self.received if self.safe is None else min(self.safe, self.received)

    def place(self, number: int) -> Literal["next", "early", "again"]:
        if number == self.come.floor + 1:
            return "next"
        return "again" if number in self.come else "early"

    def has_room(self, number: int, size: int) -> bool:
        """Whether a frame that is early may wait."""
        near = number <= self.received + LINK_WINDOW_FRAMES
        return near and self.bytes + size <= LINK_WINDOW_BYTES

    def keep(self, frame: Frame[Body], size: int) -> None:
        self.window[str(frame.number)] = Early(frame, size)
        self.bytes += size
        self.come.add(frame.number)
        self.latest = frame.number

    def followers(self, number: int) -> list[Frame[Body]]:
        """What has waited only for this number."""
        frames = []
        while early := self.window.get(str(number := number + 1)):
            frames.append(early.frame)
        return frames

    def take(self, number: int) -> int:
        """Count the next number; returns the bytes that leave the window."""
        assert number == self.received + 1, "only the next number is taken"
        self.come.skip(number)
        self.latest = number
        early = self.window.pop(str(number), None)
        if early is None:
            return 0
        self.bytes -= early.size
        return early.size

    def runs(self) -> Runs:
        """What an acknowledgement names besides the floor."""
        kept = self.acknowledged < self.received
        if not self.come.starts and not kept:
            return ()
        runs = [(self.acknowledged + 1, self.received)] if kept else []
        runs += self.come.beyond()
        first = [run for run in runs if run[0] <= self.latest <= run[1]]
        rest = [run for run in reversed(runs[-RUNS_MAX:]) if run not in first]
        return tuple([*first, *rest][:RUNS_MAX])

    def forget_window(self) -> None:
        """A new owner knows only what was taken."""
        self.come = Numbers.after(self.received)
        self.window.clear()
        self.bytes = 0
        self.latest = 0
