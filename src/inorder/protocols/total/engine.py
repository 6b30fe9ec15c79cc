"""Delivery: the one engine behind tag, buffer and hold.

Rule 1: `clock` and `last` never go back and never forget, not even a topic that was left (R3, R4).
Rule 2: a tagged delivery changes no clock.
Rule 3: entries of topics never held are ignored while waiting, and remembered when delivering.
Rule 4: a pending topic (its walk is under way) blocks whatever carries it, and the timers of its
        events do not run: until the walk is done nobody knows where the subscription starts.
Rule 5: an event leaves `held` in exactly one place, `_leave`.

Theory. `last[t]` is the number last delivered in order on t: what was really delivered. `clock[t]`
is the highest number of t that any delivered stamp names: what must not come later any more.

- In order (replaces the report's Definition 3, which lets an older event pass: R1): own number
  above `clock`, all other entries not below `last`. If a delivers e then f, f[e's topic] >= e; if
  b delivers f then e, e > f[e's topic]. Both at once is impossible. No link needs to be FIFO.
- Ready (replaces the supplement's isNext): own number is the next one, and every other entry of a
  held topic is at most `clock`. "At most", not "equal": an entry may be stale after somebody left
  (S6), which is only a weaker bound.

| mode        | too early         | too late  |
|-------------|-------------------|-----------|
| tag         | deliver, in order | deliver, tagged |
| tag, buffer | wait; at the end of its time, or of the room: force | deliver, tagged |
| hold        | wait              | cannot be |

To *force* an event is to give up on what is missing before it: what waits and precedes it is
delivered first, then the event, each judged as it leaves. Clocks only move forward, so whatever
was passed over is tagged when it comes.

Back-pressure: when `room` events wait in hold mode, one that is not ready is not taken in; it
stays missing and is asked for again (subscriber.py). The event that everybody waits for is
ready when it arrives, so it is always taken, and the room empties.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from msgspec import Struct

from inorder.core.effect import CancelTimer, Deliver, Effect, Note, SetTimer
from inorder.core.event import Event, Stamp
from inorder.core.limits import HELD_EVENTS_MAX
from inorder.protocols.total.holding import Held, Holding, Key
from inorder.protocols.total.options import Options
from inorder.protocols.total.stamp import precedes, raise_to


class EngineState(Struct):
    active: set[str] = set()
    pending: set[str] = set()
    # The number at which the present subscription to a topic starts.
    start: dict[str, int] = {}
    clock: dict[str, int] = {}
    last: dict[str, int] = {}
    last_epoch: int = 0
    # Counts arrivals in the buffer of tag mode: which event is the oldest.
    places: int = 0
    # What waits, as of the last `store`.
    held: list[tuple[str, int, Held]] = []


class Engine:
    """Judges events of topics held; `out` collects the effects of the input in progress."""

    def __init__(self, state: EngineState, options: Options) -> None:
        self.s = state
        self.out: list[Effect] = []
        self._options = options
        self._compact = options.stamp == "compact"
        self._hold_mode = options.mode == "hold"
        self._buffered = options.buffered
        self._room = options.room
        self._patience = options.patience
        self.held = Holding(state.held)
        # When events began to wait: only to report it, hence no part of the state.
        self._since: dict[Key, float] = {}
        # Topics whose clock moved since the index was last asked.
        self._moved: list[str] = []
        for key in self.held.all_keys():
            held = self.held.get(key)
            assert held is not None
            if key[0] in state.active and self._buffered:
                self._park(key, held.stamp)
                self._watch(key, held)

    def store(self) -> None:
        """Put what waits into the state, for a snapshot."""
        self.s.held = self.held.rows()

    # Inputs.

    def arrive(self, key: Key, epoch: int, stamp: Stamp, event: Event, now: float) -> bool:
        """A new event of a topic held; False if there is no room for it."""
        s = self.s
        topic, number = key
        if topic in s.pending:
            if self.held.size >= HELD_EVENTS_MAX:
                return False
            self._hold(key, Held(epoch, stamp, event), now)
            return True
        assert topic in s.active
        assert number > s.start[topic]
        if not self._buffered:
            self._judge(key, epoch, stamp, event, now)
            return True
        if self._may_leave(key, epoch, stamp):
            self._judge(key, epoch, stamp, event, now)
            self._release([], now)
            return True
        if self._hold_mode:
            if self.held.size >= self._room:
                self.out.append(Note("held_full"))
                return False
            self._hold(key, Held(epoch, stamp, event), now)
            return True
        s.places += 1
        self._hold(key, Held(epoch, stamp, event, s.places), now)
        self._make_room(now)
        return True

    def passes(self, topic: str, first: int, epoch: int, stamp: Stamp) -> bool:
        """Whether a whole batch that starts with `first` may be delivered as it stands.

        If its first event may, so may the others: they share all other entries, and nothing can
        stand between them.
        """
        if not self._buffered:
            return self._fresh((topic, first), epoch, stamp)
        return self._hold_mode and self._ready((topic, first), stamp)

    def deliver_batch(
        self,
        topic: str,
        first: int,
        epoch: int,
        stamp: Stamp,
        events: tuple[Event, ...],
        now: float,
    ) -> None:
        """Deliver a batch that passes, moving the clocks once."""
        self.out += [Deliver(event) for event in events[:-1]]
        self._pass((topic, first + len(events) - 1), epoch, stamp, events[-1], 0.0)
        if self._buffered:
            self._release([], now)

    def expire(self, key: Key, now: float) -> None:
        """An event has waited for its whole time."""
        if key in self.held and key[0] in self.s.active:
            self.out.append(Note("ttl"))
            self._force(key, now)

    def suspend(self, topics: list[str]) -> None:
        """A subscription to these topics begins (again): nothing of them is judged until done."""
        s = self.s
        s.active.difference_update(topics)
        s.pending.update(topics)

    def resume(self, topics: list[str]) -> None:
        """The subscription to these topics was never interrupted: it goes on where it stood."""
        self.s.pending.difference_update(topics)
        self.s.active.update(topics)

    def activate(self, topics: list[str], stamp: Stamp, now: float) -> None:
        """The walk is done: the subscription to these topics starts behind `stamp`."""
        s = self.s
        starts = dict(stamp)
        for topic in topics:
            s.pending.discard(topic)
            s.active.add(topic)
            s.start[topic] = starts[topic]
            raise_to(s.clock, [(topic, starts[topic])])
            for key in self.held.keys(topic):
                if key[1] <= starts[topic]:
                    self._leave(key)
        if self._compact and topics:
            # A compact stamp of a higher topic says nothing about lower ones, so what is in
            # flight on old topics cannot be told from what comes before the new ones.
            raise_to(s.clock, [(topic, n) for topic, n in stamp if topic in s.active])

    def awaken(self, topics: list[str], now: float) -> None:
        """Judge what came while the topics were pending, and what waited for them."""
        if not self._buffered:
            for key in self._in_stamp_order([key for t in topics for key in self.held.keys(t)]):
                held = self.held.get(key)
                assert held is not None
                waited_s = self._leave(key, now)
                self._judge(key, held.epoch, held.stamp, held.event, now, waited_s)
            return
        keys = [key for topic in topics for key in self.held.freed(topic)]
        for topic in topics:
            for key in self.held.keys(topic):
                held = self.held.get(key)
                assert held is not None
                keys.append(key)
                self._watch(key, held)
                self._start_timer(key)
        self._release(keys, now)
        if not self._hold_mode:
            self._make_room(now)

    def drop(self, topics: list[str], now: float) -> None:
        """The topics are held no longer; whoever waited for them may go."""
        s = self.s
        for topic in topics:
            s.active.discard(topic)
            s.pending.discard(topic)
            for key in self.held.keys(topic):
                self._leave(key)
        if self._buffered:
            freed = [key for topic in topics for key in self.held.freed(topic)]
            self._release(freed, now)

    # Judging.

    def _fresh(self, key: Key, epoch: int, stamp: Stamp) -> bool:
        """Whether delivering it now would keep the order (5.1 of the specification)."""
        s = self.s
        topic, number = key
        if number <= s.clock.get(topic, -1):
            return False
        if self._compact and epoch < s.last_epoch:
            return False
        last = s.last
        return all(entry >= last.get(other, -1) for other, entry in stamp)

    def _ready(self, key: Key, stamp: Stamp) -> bool:
        """Whether nothing that must come first is missing (5.3)."""
        s = self.s
        topic, number = key
        clock = s.clock
        if number != clock[topic] + 1:
            return False
        active = s.active
        for other, entry in stamp:
            if other in active:
                if entry > clock[other]:
                    return False
            elif other in s.pending:
                return False
        return True

    def _judge(
        self, key: Key, epoch: int, stamp: Stamp, event: Event, now: float, waited_s: float = 0.0
    ) -> None:
        # What is ready is in order (the tests check it); in hold mode nothing else gets here.
        if self._hold_mode or self._fresh(key, epoch, stamp):
            self._pass(key, epoch, stamp, event, waited_s)
        else:
            self.out.append(Deliver(event, False, waited_s))

    def _may_leave(self, key: Key, epoch: int, stamp: Stamp) -> bool:
        """Whether waiting is over: nothing is missing, or (tag) its place has gone by already."""
        if self._ready(key, stamp):
            return True
        return not self._hold_mode and not self._fresh(key, epoch, stamp)

    def _pass(self, key: Key, epoch: int, stamp: Stamp, event: Event, waited_s: float) -> None:
        s = self.s
        s.last[key[0]] = key[1]
        s.clock[key[0]] = key[1]
        raise_to(s.clock, stamp)
        if epoch > s.last_epoch:
            s.last_epoch = epoch
        self.out.append(Deliver(event, True, waited_s))
        if self._buffered:
            self._moved.append(key[0])
            self._moved.extend([other for other, _ in stamp])

    # Waiting.

    def _hold(self, key: Key, held: Held, now: float) -> None:
        self.held.put(key, held)
        self._since[key] = now
        if key[0] in self.s.active:
            self._park(key, held.stamp)
            self._watch(key, held)
            self._start_timer(key)

    def _watch(self, key: Key, held: Held) -> None:
        if not self._hold_mode:  # nothing is ever late or forced in hold mode
            self.held.watch(key, held)

    def _start_timer(self, key: Key) -> None:
        if self._patience is not None:
            self.out.append(SetTimer(f"ttl/{key[0]}/{key[1]}", self._patience))

    def _park(self, key: Key, stamp: Stamp) -> None:
        """Wait for the first thing that is missing."""
        s = self.s
        topic, number = key
        if s.clock[topic] < number - 1:
            self.held.wait_for_clock(key, topic, number - 1)
            return
        for other, entry in stamp:
            if other in s.active and entry > s.clock[other]:
                self.held.wait_for_clock(key, other, entry)
                return
            if other in s.pending:
                self.held.wait_for_walk(key, other)
                return
        # Ready: will be seen by the caller's release.

    def _leave(self, key: Key, now: float = 0.0) -> float:
        """Take an event out; returns how long it waited."""
        self.held.pop(key)
        if self._patience is not None:
            self.out.append(CancelTimer(f"ttl/{key[0]}/{key[1]}"))
        return max(0.0, now - self._since.pop(key, now))

    def _release(self, keys: list[Key], now: float) -> None:
        """Look again at `keys` and at whoever waited for a clock that moved, until all wait.

        Of several that are ready the smallest key goes first: the order must depend on the state
        alone, not on how the index grew.
        """
        ready = [key for key in keys if key in self.held and self._awake(key)]
        heapify(ready)
        while True:
            for topic in self._take_moved():
                for key in self._stirred(topic):
                    if key in self.held and self._awake(key):
                        heappush(ready, key)
            if not ready:
                return
            key = heappop(ready)
            held = self.held.get(key)
            if held is None or not self._awake(key):
                continue
            waited_s = self._leave(key, now)
            self._judge(key, held.epoch, held.stamp, held.event, now, waited_s)

    def _stirred(self, topic: str) -> list[Key]:
        """Who must be looked at again because the clock of a topic moved."""
        clock = self.s.clock[topic]
        found = self.held.reached(topic, clock)
        if not self._hold_mode:
            found += self.held.overtaken(topic, clock, self.s.last.get(topic, -1))
        return found

    def _awake(self, key: Key) -> bool:
        """Whether a waiting event may leave now; if not, it waits for the next thing missing."""
        held = self.held.get(key)
        if held is None or key[0] not in self.s.active:
            return False
        if self._may_leave(key, held.epoch, held.stamp):
            return True
        self._park(key, held.stamp)
        return False

    def _take_moved(self) -> list[str]:
        moved, self._moved = self._moved, []
        return sorted({*moved})

    def _make_room(self, now: float) -> None:
        """More than `room` wait: the oldest must go. Pending topics' events do not count."""
        s = self.s
        while True:
            unjudged = sum(len(self.held.topics.get(topic, ())) for topic in sorted(s.pending))
            if self.held.size - unjudged <= self._room:
                return
            self.out.append(Note("buffer_full"))
            self._force(self.held.oldest(s.active), now)

    def _force(self, key: Key, now: float) -> None:
        """Give up on what is missing before an event: deliver what waits before it, then it."""
        target = self.held.get(key)
        assert target is not None
        first = self.held.preceding(key[0], key[1] - 1)
        for topic, entry in target.stamp:
            if topic in self.s.active:
                first += self.held.preceding(topic, entry)
        for each in [*self._in_stamp_order(first), key]:
            held = self.held.get(each)
            if held is None:
                continue
            waited_s = self._leave(each, now)
            self._judge(each, held.epoch, held.stamp, held.event, now, waited_s)
        # Clocks have jumped: whoever is too late now waits for nothing any more.
        self._release([], now)

    def force_all(self, now: float) -> None:
        """The input has ended: nobody waits any longer."""
        for key in self._in_stamp_order(self.held.all_keys()):
            if key in self.held:
                self._force(key, now)

    def give_up(self, topic: str, number: int, now: float) -> None:
        """Nothing of a topic up to this number will ever come: stop waiting for it."""
        if self._buffered and not self._hold_mode:
            raise_to(self.s.clock, [(topic, number)])
            self._moved.append(topic)
            self._release([], now)

    def _in_stamp_order(self, keys: list[Key]) -> list[Key]:
        """Waiting events such that none precedes an earlier one.

        Topic by topic the numbers rise, so only the first of each topic need be compared: start
        anywhere and go to whoever precedes, until nobody does.
        """
        queues: dict[str, list[int]] = {}
        for topic, number in sorted(keys, reverse=True):
            queues.setdefault(topic, []).append(number)
        found: list[Key] = []
        while queues:
            topic = min(queues)
            steps = len(queues)
            while steps and (before := self._before(topic, queues)) is not None:
                topic = before
                steps -= 1
            found.append((topic, queues[topic].pop()))
            if not queues[topic]:
                del queues[topic]
        return found

    def _before(self, topic: str, queues: dict[str, list[int]]) -> str | None:
        number = queues[topic][-1]
        mine = self.held.get((topic, number))
        assert mine is not None
        for other in sorted(queues):
            if other == topic:
                continue
            head = queues[other][-1]
            held = self.held.get((other, head))
            assert held is not None
            if precedes(other, head, held.stamp, topic, number, mine.stamp):
                return other
        return None
