"""A role that survives crashes: a deterministic machine over its input log.

Rule 1: an input is persisted before anything it causes is visible. So nothing ever seen by
        others is forgotten, and no number is given twice (F4).
Rule 2: answers are a function of the log. Replaying it counts the same answers under the same
        numbers of its sessions; receivers drop those they have.
Rule 3: what is not in the log must not matter to the order: acknowledgements, reports and
        heartbeats only free memory or repeat what is durable, and are not persisted.
Rule 4: a new owner speaks with a larger token (../session/book.py), and its first record says so.
        The store must refuse appends of a smaller token; that is the store's part of the bargain.

The report leaves recovery of topic managers to future work. No agreement protocol of our own is
involved: whoever owns the log is the manager, and a crash is only a delay.

Every LOG_RECORDS_MAX records, and every LOG_RECORD_BYTES_MAX bytes of them, a snapshot goes into
the log; all before the last one (`Image`) may be deleted by whoever keeps the log.
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
from inorder.protocols.session.book import RESEND, durable
from inorder.protocols.session.links import Links
from inorder.protocols.session.messages import Ack, Bye, Frame, Unknown
from inorder.protocols.total.directory import Directory
from inorder.protocols.total.messages import Body
from inorder.protocols.total.options import Options


class Took(Struct, frozen=True, gc=False, tag="took"):
    """Messages were taken from a session, in this order, at this time of the owner's clock."""

    source: str
    frames: tuple[Frame[Body], ...]
    now: float


class Began(Struct, frozen=True, gc=False, tag="began"):
    """A peer has begun another session, of which nothing has been taken yet; so many messages of
    the old one go on in it."""

    source: str
    session: int
    carried: int


class Over(Struct, frozen=True, gc=False, tag="over"):
    """The session with a peer has ended, perhaps with messages on their way."""

    peer: str
    cut: bool


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


_unpack = unpacker(Took | Began | Over | Told | Fired | Owned | Image)


class Service(ABC):
    """What stages and the ranking have in common: links, log, recovery."""

    def __init__(self, name: str, directory: Directory, options: Options) -> None:
        self.name = name
        self.directory = directory
        self.options = options
        self.links: Links[Body] = Links(options.resend, trusted=options.links == "trusted")
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
            return self._receive_ack(source, message, now)
        if kind is Bye:
            return self._receive_bye(source, message, now)
        if kind is Unknown:
            # Said of a session that this machine's log holds: nobody honest says it.
            raise BadMessage(source, f"does not know its session with {self.name}")
        if casual := self._casuals.get(kind):
            return casual(source, message, now)
        if self.options.links == "trusted" and kind in self._bodies:
            return self._apply_trusted(source, message, now)
        raise BadMessage(source, f"{kind.__name__} is nothing for {self.name}")

    def _receive_frame(self, source: str, frame: Frame[Body], now: float) -> list[Effect]:
        links = self.links
        body = frame.body
        if type(body) not in self._bodies:
            raise BadMessage(source, f"{type(body).__name__} is nothing for {self.name}")
        if refusal := links.refuse(source, frame):
            return refusal
        place = links.place(source, frame)
        if place == "next":
            self._check(source, frame.session, body)  # may raise: nothing has changed yet
            if not self._full(source, body):
                begun = self._begin_session(source, frame) if links.knows(source) else []
                return [*begun, *self._take(source, frame, now)]
        record = self._begin_session(source, frame) if place == "early" else []
        links.acknowledged(source, frame, now)
        if place == "next":
            return [*links.flush(now), Note("stage_full", self.name)]
        if place == "early":
            links.keep(source, frame)
        else:
            links.owe(source)
        return [*record, *links.flush(now)]

    def _take(self, source: str, frame: Frame[Body], now: float) -> list[Effect]:
        """Take a frame that is next, with all that has waited for it: one record, one step."""
        frames = (frame, *self.links.followers(source, frame))
        record = self._log(Took(source, frames, now))
        self.links.acknowledged(source, frame, now)
        effects = self._apply(source, frames, now)
        for peer in self.links.overfull():
            # It will miss something, so it must begin another session.
            record += self._log(Over(peer, cut=True))
            self.links.end(peer, cut=True)
        return [*record, *effects, *self.links.flush(now)]

    def _apply(self, source: str, frames: tuple[Frame[Body], ...], now: float) -> list[Effect]:
        """The first frame was checked on arrival. One that has waited is checked now: a bad one
        counts as taken and does nothing, or its session would stand still for ever."""
        effects: list[Effect] = []
        for place, frame in enumerate(frames):
            self.links.take(source, frame)
            if place:
                try:
                    self._check(source, frame.session, frame.body)
                except BadMessage:
                    effects.append(Note("bad_frame", source))
                    continue
            effects += self._bodies[type(frame.body)](source, frame.body, now)
        return effects

    def _begin_session(self, source: str, message: Frame[Body] | Ack) -> list[Effect]:
        """A session begins with something else than its first frame: that must not be forgotten,
        because answers are numbered in it from now on."""
        if not self.links.begins(source, message):
            return []
        carried = self.links.carries(source)
        record = self._log(Began(source, message.session, carried))
        self.links.begin(source, message.session, carried)
        return record

    def _receive_ack(self, source: str, ack: Ack, now: float) -> list[Effect]:
        if refusal := self.links.refuse(source, ack):
            return refusal
        record = self._begin_session(source, ack)
        self.links.acknowledged(source, ack, now)
        return [*record, *self.links.flush(now)]

    def _receive_bye(self, source: str, bye: Bye, now: float) -> list[Effect]:
        """The peer needs this session no more: end it, unless something of it is under way."""
        if not self.links.honours(source, bye):
            return [Note("bye_too_soon", source)]
        record = self._log(Over(source, False))
        self.links.end(source)
        return [*record, Note("session_ended", source), *self.links.flush(now)]

    def _end_session(self, peer: str) -> list[Effect]:
        """Say so, unless messages are lost with it: then the peer must find out that it cannot go
        on where it ended."""
        cut = not self.links.may_end(peer)
        record = self._log(Over(peer, cut))
        farewell = [] if cut else [self.links.bye(peer)]
        self.links.end(peer, cut)
        return [*record, Note("session_ended", peer), *farewell]

    def _apply_trusted(self, source: str, body: Body, now: float) -> list[Effect]:
        self._check(source, 0, body)
        return [*self._bodies[type(body)](source, body, now), *self.links.flush(now)]

    def _tell(self, body: Body, now: float) -> list[Effect]:
        """An operator's wish, as durable as a message."""
        record = self._log(Told(body, now))
        return [*record, *self._bodies[type(body)](self.name, body, now), *self.links.flush(now)]

    def fire(self, timer: str, now: float) -> list[Effect]:
        kind, _, rest = timer.partition("/")
        if kind == RESEND:
            return [*self.links.fire(rest, now), *self.links.flush(now)]
        return self._fire(timer, now)

    def account(self) -> dict[str, float]:
        return self.links.account()

    # For the roles to fill in.

    @abstractmethod
    def _check(self, source: str, session: int, body: Body) -> None:
        """Raise `BadMessage` if nobody honest would have sent this."""

    def _full(self, source: str, body: Body) -> bool:
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

    def _image(self) -> bytes:
        """The state without what a new owner cannot rely on: windows, and measured times."""
        sessions = self.links.s
        self.links.s = durable(sessions)
        try:
            return self.snapshot()
        finally:
            self.links.s = sessions

    # The log.

    def _log(self, record: Struct) -> list[Effect]:
        if self.options.links == "trusted":
            return []
        data = pack(record)
        bytes_max = max(LOG_RECORD_BYTES_MAX, 2 * self._image_bytes)
        if self._logged < LOG_RECORDS_MAX and self._logged_bytes + len(data) <= bytes_max:
            self._count(data)
            return [Persist(data)]
        image = pack(Image(self._image()))
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
            self.links.replayed(entry.source, entry.frames[0])
            self._apply(entry.source, entry.frames, entry.now)
        elif isinstance(entry, Began):
            self.links.begin(entry.source, entry.session, entry.carried)
        elif isinstance(entry, Over):
            self.links.end(entry.peer, entry.cut)
        elif isinstance(entry, Told):
            self._bodies[type(entry.body)](self.name, entry.body, entry.now)
        elif isinstance(entry, Fired):
            self._on_fired(entry.timer, entry.now)
        elif isinstance(entry, Owned):
            self.links.s.token = entry.token
        else:
            self._load(entry.state)
            self._begin_count(record)
        self.links.discard()

    def resume(self, now: float) -> list[Effect]:
        """A new owner: say so in the log, then send again what may have been lost."""
        self.links.s.token += 1
        record = self._log(Owned(self.links.s.token))
        self.links.resume()
        own = self._resume(now)
        return [*record, *self.links.flush(now), *own]
