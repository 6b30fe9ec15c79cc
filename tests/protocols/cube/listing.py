"""Algorithms 3 and 4 of the thesis (VCube-PS) as they are printed, for one topic.

Node 0 publishes; whoever gets a copy sends it on to the nodes below that *its own* view of the
topic names, waits for their acknowledgements, and acknowledges. The numbers of lines are those of
Algorithm 4 where nothing else is said.

Repaired are slips that would hide the defects behind them: names and the order of fields (P18),
`m.data` for `m'.data` in line 54 (P8, `erases` puts it back), and the record of an acknowledgement
is made before anything is sent (P17). `text` is the rule of section 5.4.2 for a publisher that has
not been heard, where line 97 says another one; `forgets` is the text's rule for views (5.5.5): only
subscribers are kept; `keeps` leaves line 80 out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from inorder.protocols.cube.topology import children_down, cluster, dimensions

# The record of an acknowledgement at the source has no parent.
ROOT = -1

# A message: who, and its number.
Id = tuple[int, int]

# A view: who, what it did last, and the number of that.
View = dict[int, tuple[str, int]]


class Message(Struct):
    type: str
    s: int
    c: int
    data: str = ""
    cb: tuple[Id, ...] = ()
    # The type of what an ACK is for, to tell ACKs on a link apart; and the members it gathers.
    of: str = ""
    members: tuple[tuple[int, str, int], ...] = ()


class Node:
    """One node; `sent` and `delivered` are what it has done."""

    def __init__(
        self, me: int, count: int, *,
        text: bool = False, erases: bool = False, forgets: bool = False, keeps: bool = False,
    ) -> None:  # fmt: skip
        self.me, self.d = me, dimensions(count)
        self.text, self.erases, self.forgets, self.keeps = text, erases, forgets, keeps
        self.counter = 1
        self.view: View = {}
        self.queue: deque[Message] = deque()
        # The tasks of this topic: what each waits for.
        self.tasks: list[Message | None] = []
        self.acks: dict[tuple[int, int], tuple[int, int, tuple[tuple[int, str, int], ...]]] = {}
        self.first_rec: dict[int, int] = {}
        self.last_delvs: set[Id] = set()
        self.not_delvs: list[tuple[int, int, set[Id]]] = []
        self.msgs: dict[Id, Message] = {}
        self.barrier: set[Id] = set()
        self.sent: list[tuple[int, Message]] = []
        self.delivered: list[str] = []

    def is_preset(self, members: Iterable[int]) -> None:
        """As if these had joined before, one after the other."""
        self.view = dict.fromkeys(members, ("SUB", 0))
        if self.subscribed:
            self.tasks.append(None)

    @property
    def subscribed(self) -> bool:
        return self.view.get(self.me, ("", 0))[0] == "SUB"

    @property
    def members(self) -> list[int]:
        return sorted(node for node, (op, _) in self.view.items() if op == "SUB")

    # Algorithm 3.

    def subscribe(self) -> None:
        self.view = {self.me: ("SUB", self.counter)}
        self._co_broadcast("SUB")

    def unsubscribe(self) -> None:
        del self.view[self.me]
        self._co_broadcast("UNS")

    def publish(self, data: str) -> None:
        assert self.subscribed
        self._co_broadcast("PUB", data)

    def _co_broadcast(self, kind: str, data: str = "") -> None:  # lines 5 to 15
        message = Message(kind, self.me, self.counter, data)
        self.counter += 1
        if kind == "SUB":
            self.tasks.append(None)
        self.queue.append(message)
        self._serve()

    # START_MSG_PROPAGATION.

    def _serve(self) -> None:
        """Each task goes on as soon as what it waits for is there."""
        while any(self._moves(place) for place in range(len(self.tasks))):
            pass

    def _moves(self, place: int) -> bool:
        m = self.tasks[place]
        if m is None:
            if not self.queue:
                return False
            self.tasks[place] = self.queue.popleft()
            self._start(self.tasks[place])
            return True
        if (m.s, m.c) in self.acks:
            return False
        self.tasks[place] = None
        if m.type == "UNS":  # lines 35 to 39
            self.msgs, self.not_delvs, self.first_rec = {}, [], {}
            if not self.queue:
                del self.tasks[place]
        return True

    def _start(self, m: Message) -> None:  # lines 19 to 33
        if m.type == "PUB":
            self.first_rec.setdefault(self.me, m.c)
            self.delivered.append(m.data)
            self.last_delvs = {each for each in self.last_delvs if each[0] != self.me}
            self.last_delvs.add((self.me, m.c))
            m.cb = tuple(sorted(self.barrier))
            self.barrier = {(self.me, m.c)}
        children = self._children(m, self.d)
        if children:
            self.acks[m.s, m.c] = (ROOT, len(children), ())
        for child in children:
            self._send(child, m)

    def _children(self, m: Message, h: int) -> tuple[int, ...]:
        """Lines 27, 29, 45 and 47."""
        if m.type == "SUB":
            return children_down(self.me, h, None)
        return children_down(self.me, h, sum(1 << node for node in self.members))

    def _send(self, target: int, m: Message) -> None:
        self.sent.append((target, Message(m.type, m.s, m.c, m.data, m.cb, m.of, m.members)))

    # HANDLE_RECEIVED_MSG.

    def receive(self, j: int, m: Message) -> None:
        if m.type == "ACK":
            self._count_ack(m)
        else:
            children = self._children(m, cluster(j, self.me) - 1)
            if children:
                self.acks[m.s, m.c] = (j, len(children), ())
                for child in children:
                    self._send(child, m)
            else:
                self._send_acks(j, Message("ACK", m.s, m.c, of=m.type))
                if self.erases:
                    m.data = ""  # line 54, to the letter
        if self.subscribed:
            self._take_in(m)
        if m.type == "ACK":
            self._serve()

    def _count_ack(self, m: Message) -> None:  # lines 61 to 67
        record = self.acks.pop((m.s, m.c), None)
        if record is None:
            return
        parent, open_acks, members = record
        m.members = (*m.members, *members)
        if open_acks > 1:
            self.acks[m.s, m.c] = (parent, open_acks - 1, m.members)
        elif parent != ROOT:
            self._send_acks(parent, m)

    def _send_acks(self, j: int, m: Message) -> None:  # lines 99 to 102
        if self.subscribed and m.s not in self.first_rec:
            m.members = (*m.members, (self.me, *self.view[self.me]))
        self._send(j, m)

    def _take_in(self, m: Message) -> None:  # lines 68 to 80
        if m.type == "PUB":
            self.first_rec.setdefault(m.s, m.c)
            self.not_delvs.append((m.s, m.c, {*m.cb}))
            self.msgs[m.s, m.c] = m
            self._check_delivery()
        elif m.type == "ACK":
            self._update(m.members)
        else:
            self._update(((m.s, m.type, m.c),))
            if m.type == "UNS" and not self.keeps:
                self.first_rec.pop(m.s, None)

    def _update(self, news: Iterable[tuple[int, str, int]]) -> None:  # lines 81 to 87
        for node, op, rc in news:
            if node not in self.view or rc > self.view[node][1]:
                self.view[node] = (op, rc)
        if self.forgets:
            self.view = {node: last for node, last in self.view.items() if last[0] == "SUB"}

    def _check_delivery(self) -> None:  # lines 88 to 94
        found = True
        while found:
            found = False
            for waiting in self.not_delvs:
                s, c, cb = waiting
                if self._check_cb(cb):
                    self.not_delvs.remove(waiting)
                    self.delivered.append(self.msgs.pop((s, c)).data)
                    self.last_delvs.discard((s, c))
                    self.last_delvs.add((s, c))
                    self.barrier = self.barrier - cb | {(s, c)}
                    found = True
                    break

    def _check_cb(self, cb: set[Id]) -> bool:  # lines 95 to 98
        for s, c in sorted(cb):
            delivered = any(s == other and number >= c for other, number in self.last_delvs)
            never = self.first_rec.get(s, 0) > c
            unheard = self.text and s not in self.first_rec
            if delivered or never or unheard:
                cb.discard((s, c))
        return not cb


class World:
    """Nodes, and what is in flight; schedules are written by hand."""

    def __init__(self, count: int, members: Iterable[int], **how: bool) -> None:
        self.nodes = [Node(me, count, **how) for me in range(count)]
        self.flying: list[tuple[int, int, Message]] = []
        members = [*members]
        for me in members:
            self.nodes[me].is_preset(members)

    def call(self, me: int, *verbs: str) -> None:
        """`subscribe`, `unsubscribe`, or what to publish."""
        node = self.nodes[me]
        for verb in verbs:
            if verb in ("subscribe", "unsubscribe"):
                getattr(node, verb)()
            else:
                node.publish(verb)
            self._take(me)

    def _take(self, me: int) -> None:
        node = self.nodes[me]
        self.flying += [(me, target, message) for target, message in node.sent]
        node.sent = []

    def arrive(self, source: int, target: int, kind: str = "", which: int = 1) -> None:
        """The first (or second ...) message of that type on that link; of an ACK its own type."""
        places = [
            place
            for place, (a, b, m) in enumerate(self.flying)
            if (a, b) == (source, target) and kind in ("", m.type, m.of)
        ]
        _, _, message = self.flying.pop(places[which - 1])
        self.nodes[target].receive(source, message)
        self._take(target)

    def settle(self, *held: tuple[int, int]) -> None:
        """Everything arrives, except on these links."""
        while free := [(a, b) for a, b, _ in self.flying if (a, b) not in held]:
            self.arrive(*free[0])

    def got(self, me: int) -> list[str]:
        return self.nodes[me].delivered
