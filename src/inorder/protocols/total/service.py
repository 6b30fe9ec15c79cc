"""A role that survives crashes: a deterministic machine over its input log.

Rule 1: an input is persisted before anything it causes is visible. So nothing ever seen by
        others is forgotten, and no number is given twice (F4).
Rule 2: answers are a function of the log. Replaying it counts the same answers under the same
        link numbers; receivers drop those they have.
Rule 3: what is not in the log must not matter to the order: acknowledgements, reports and
        heartbeats only free memory or repeat what is durable, and are not persisted.
Rule 4: a new owner speaks with a larger token (link.py), and its first record says so. The store
        must refuse appends of a smaller token; that is the store's part of the bargain.

The report leaves recovery of topic managers to future work. No agreement protocol of our own is
involved: whoever owns the log is the manager, and a crash is only a delay.

Every LOG_RECORDS_MAX records, and every LOG_RECORD_BYTES_MAX bytes of them, a snapshot goes into
the log; all before the last one (`is_snapshot`) may be deleted by whoever keeps the log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from inorder.core.effect import Effect, Note, Persist
from inorder.core.errors import BadMessage
from inorder.core.limits import LOG_RECORD_BYTES_MAX, LOG_RECORDS_MAX
from inorder.core.pack import pack, unpacker
from inorder.protocols.total.directory import Directory
from inorder.protocols.total.link import Links
from inorder.protocols.total.messages import Ack, Body, Frame
from inorder.protocols.total.options import Options


class Took(Struct, frozen=True, gc=False, tag="took"):
    """A message was taken from a link, at this time of the owner's clock."""

    source: str
    frame: Frame
    now: float


class Told(Struct, frozen=True, gc=False, tag="told"):
    """Our own process asked for something."""

    body: Body
    now: float


class Fired(Struct, frozen=True, gc=False, tag="fired"):
    """A timer ran out that changes what others see."""

    timer: str
    now: float


class Owned(Struct, frozen=True, gc=False, tag="owned"):
    """A new owner begins here."""

    token: int


class Image(Struct, frozen=True, gc=False, tag="image"):
    """The whole state, instead of everything before it."""

    state: bytes


_unpack = unpacker(Took | Told | Fired | Owned | Image)


def is_snapshot(record: bytes) -> bool:
    """Whether a record makes all earlier ones superfluous."""
    return isinstance(_unpack(record), Image)


class Service(ABC):
    """What stages and the ranking have in common: links, log, recovery."""

    def __init__(self, name: str, directory: Directory, options: Options) -> None:
        self.name = name
        self.directory = directory
        self.options = options
        self.links = Links(options.resend, options.links == "trusted", patient=False)
        # Records since the last snapshot, their bytes, and its own.
        self._logged = 0
        self._logged_bytes = 0
        self._image_bytes = 0
        # Filled in by the roles: what to do with a message, by its type.
        self._bodies: dict[type, Callable[[str, Any, float], list[Effect]]] = {}
        self._casuals: dict[type, Callable[[str, Any, float], list[Effect]]] = {}

    # Inputs.

    def receive(self, source: str, message: Any, now: float) -> list[Effect]:
        kind = type(message)
        if kind is Frame:
            return self._receive_frame(source, message, now)
        if kind is Ack:
            if refusal := self.links.refusal(source, message):
                return [Note(refusal, source)]
            return self.links.acknowledged(source, message, message.number)
        if casual := self._casuals.get(kind):
            return casual(source, message, now)
        if self.options.links == "trusted" and kind in self._bodies:
            return self._apply_trusted(source, message, now)
        raise BadMessage(source, f"{kind.__name__} is nothing for {self.name}")

    def _receive_frame(self, source: str, frame: Frame, now: float) -> list[Effect]:
        links = self.links
        body = frame.body
        if type(body) not in self._bodies:
            raise BadMessage(source, f"{type(body).__name__} is nothing for {self.name}")
        if refusal := links.refusal(source, frame):
            return [Note(refusal, source)]
        is_next = links.is_next(source, frame)
        if is_next:
            self._check(source, frame.session, body)  # may raise: nothing has changed yet
        effects = links.acknowledged(source, frame, frame.ack)
        if not is_next:
            if source in links.peers:
                links.owe(source)
            return [*effects, *links.flush()]
        if self._full(body):
            return [*effects, Note("stage_full", self.name)]
        record = self._log(Took(source, frame, now))
        links.take(source, frame)
        return [*record, *effects, *self._bodies[type(body)](source, body, now), *links.flush()]

    def _apply_trusted(self, source: str, body: Body, now: float) -> list[Effect]:
        self._check(source, 0, body)
        return [*self._bodies[type(body)](source, body, now), *self.links.flush()]

    def _tell(self, body: Body, now: float) -> list[Effect]:
        """An operator's wish, as durable as a message."""
        record = self._log(Told(body, now))
        return [*record, *self._bodies[type(body)](self.name, body, now), *self.links.flush()]

    def fire(self, timer: str, now: float) -> list[Effect]:
        kind, _, rest = timer.partition("/")
        if kind == "resend":
            return self.links.fire(rest)
        return self._fire(timer, now)

    # For the roles to fill in.

    @abstractmethod
    def _check(self, source: str, session: int, body: Body) -> None:
        """Raise `BadMessage` if nobody honest would have sent this."""

    def _full(self, body: Body) -> bool:
        """Whether to leave a message with its sender, who will try again."""
        return False

    @abstractmethod
    def _fire(self, timer: str, now: float) -> list[Effect]:
        """A timer of the role ran out."""

    def _on_fired(self, timer: str, now: float) -> list[Effect]:
        """Do what a timer that is in the log does; most roles log none."""
        raise AssertionError(f"{self.name} logs no timers, but {timer!r} is in its log")

    def _resume(self, now: float) -> list[Effect]:
        """Set the role's own timers anew."""
        return []

    @abstractmethod
    def snapshot(self) -> bytes:
        """The whole state."""

    @abstractmethod
    def _load(self, snapshot: bytes) -> None:
        """Become the machine that gave this snapshot."""

    # The log.

    def _log(self, record: Struct) -> list[Effect]:
        if self.options.links == "trusted":
            return []
        data = pack(record)
        bytes_max = max(LOG_RECORD_BYTES_MAX, 2 * self._image_bytes)
        if self._logged < LOG_RECORDS_MAX and self._logged_bytes + len(data) <= bytes_max:
            self._count(data)
            return [Persist(data)]
        image = pack(Image(self.snapshot()))
        self._begin_count(image)
        self._count(data)
        return [Persist(image), Persist(data)]

    def _count(self, record: bytes) -> None:
        self._logged += 1
        self._logged_bytes += len(record)

    def _begin_count(self, image: bytes) -> None:
        self._logged = self._logged_bytes = 0
        self._image_bytes = len(image)

    def replay(self, record: bytes) -> None:
        entry = _unpack(record)
        self._count(record)
        if isinstance(entry, Took):
            self.links.acknowledged(entry.source, entry.frame, entry.frame.ack)
            self.links.take(entry.source, entry.frame)
            self._bodies[type(entry.frame.body)](entry.source, entry.frame.body, entry.now)
        elif isinstance(entry, Told):
            self._bodies[type(entry.body)](self.name, entry.body, entry.now)
        elif isinstance(entry, Fired):
            self._on_fired(entry.timer, entry.now)
        elif isinstance(entry, Owned):
            self.links.token = entry.token
        else:
            self._load(entry.state)
            self._begin_count(record)
        self.links.discard()

    def resume(self, now: float) -> list[Effect]:
        """A new owner: say so in the log, then send again what may have been lost."""
        self.links.token += 1
        return [*self._log(Owned(self.links.token)), *self.links.resume(), *self._resume(now)]
