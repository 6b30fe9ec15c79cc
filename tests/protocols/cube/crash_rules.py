"""The rules for crashes taken away one at a time: the judge of crashes must find out. They are off
nowhere else.
"""

from __future__ import annotations

from typing import Any

import pytest

from inorder.protocols.cube import agreement, flush, surviving
from inorder.protocols.cube.detector import Detector
from inorder.protocols.cube.edges import Edges
from inorder.protocols.cube.flush import Flushing
from inorder.protocols.cube.joining import Joining
from inorder.protocols.cube.messages import MEMBER
from inorder.protocols.cube.peer import Peer
from inorder.protocols.cube.record import RECORD, life_in
from inorder.protocols.cube.remains import Remains
from inorder.protocols.cube.repair import Repairs
from inorder.protocols.cube.serving import Serving
from inorder.protocols.cube.surviving import Surviving
from inorder.protocols.cube.watching import Watching

Patch = pytest.MonkeyPatch


# Trees.


def nobody_takes_over(patch: Patch) -> None:
    """What was below a dead child is lost with it."""

    def replace(self: Any, peer: int, key: Any, task: int, wave: Any, now: float) -> None:
        wave.parts[peer] = b""

    patch.setattr(Repairs, "_replace", replace)


def waits_for_the_dead(patch: Patch) -> None:
    """A dead child is waited for."""

    def bury(self: Any, peer: int, now: float) -> list[Any]:
        self.suspect(peer, now)
        return []

    patch.setattr(Repairs, "bury", bury)


def new_trees_go_through_the_dead(patch: Patch) -> None:
    """Parts are given to whom the topology says, dead or not."""
    patch.setattr(Repairs, "avoid", lambda self, dead, suspected: None)


def one_task_a_message(patch: Patch) -> None:
    """A second copy of a message, from another parent, is taken for the first one come again."""
    patch.setattr(Repairs, "_next_task", lambda self, parent, key, again: -1)


# Agreement.


def asks_nobody(patch: Patch) -> None:
    """The flush is over at once, with what this peer has itself."""

    def end_flush(self: Any, now: float) -> None:
        words = {**self._words}
        if mine := words.get(self._me):
            empty = flush.Flush(mine.view, mine.last)
            everybody = range(len(self._names))
            self._words = {peer: mine if peer == self._me else empty for peer in everybody}
            _end_flush(self, now)
            self._words = words

    patch.setattr(Flushing, "_end_flush", end_flush)


def old_words_count(patch: Patch) -> None:
    """A larger set of the dead does not begin the flush again: words about a smaller one count."""

    def end_flush(self: Any, now: float) -> None:
        words = {**self._words}
        mine = words.get(self._me)
        if mine is not None:
            for peer, word in words.items():
                self._words[peer] = flush.Flush(mine.view, word.last, word.rows)
        _end_flush(self, now)
        self._words = words

    patch.setattr(Flushing, "_end_flush", end_flush)


_end_flush = Flushing._end_flush


def nothing_remains(patch: Patch) -> None:
    """What the dead have said is lost, whoever has it."""
    for room in (agreement, surviving):
        patch.setattr(room, "remaining", lambda rows: ())


def nobody_sends_the_rest(patch: Patch) -> None:
    """Nobody says again what a dead source has said."""
    patch.setattr(Surviving, "_send_rest", lambda self, name, source, rows: None)


def lost_before_the_rest_has_come(patch: Patch) -> None:
    """What this peer lacks is lost when the flush is over, although others send it."""
    patch.setattr(surviving, "lacking", lambda row, remains: ())


def the_rest_of_any_flush(patch: Patch) -> None:
    """What has been kept counts in whichever flush it comes."""
    on_kept = Surviving._on_kept

    def took(self: Any, parent: int, kept: Any, now: float) -> None:
        digest, self._digest = self._digest, kept.fence
        on_kept(self, parent, kept, now)
        self._digest = digest

    patch.setattr(Surviving, "_on_kept", took)


def launches_while_flushing(patch: Patch) -> None:
    """Calls are served during a flush."""
    serve = Serving._serve

    def served(self: Any, name: str, topic: Any, now: float) -> None:
        flushing, self._flushing = self._flushing, False
        serve(self, name, topic, now)
        self._flushing = flushing

    patch.setattr(Peer, "_serve", served)


def stable_at_the_launch(patch: Patch) -> None:
    """A source says that all have what it has just sent, so nobody keeps it."""
    patch.setattr(Remains, "stable", lambda self, following: following)


def keeps_nothing(patch: Patch) -> None:
    """Members do not keep each other's publications."""
    patch.setattr(Remains, "keep", lambda self, source, number, body, window: None)


def a_minority_goes_on(patch: Patch) -> None:
    """Everybody goes on with whoever is left."""
    patch.setattr(Flushing, "_is_minority", lambda self: False)


# Lives.


def listens_to_the_dead(patch: Patch) -> None:
    """A life that is over is listened to."""
    patch.setattr(Watching, "_is_fenced", lambda self, source, life, now: False)


def dead_is_dead(patch: Patch) -> None:
    """A peer that is declared dead and lives is told nothing."""
    patch.setattr(Flushing, "_is_heard", lambda self, peer, now: None)
    patch.setattr(Watching, "_knock", lambda self: None)


def does_not_join_again(patch: Patch) -> None:
    """Another life joins nothing of what its application holds."""

    def return_to(self: Any, topic: Any, held: bool) -> None:
        _return_to(self, topic, held)
        topic.calls.popleft() if topic.calls else None

    patch.setattr(Surviving, "_return_to", return_to)


_return_to = Surviving._return_to


def tells_no_gap(patch: Patch) -> None:
    """An application is not told that its peer was declared dead."""

    def return_to(self: Any, topic: Any, held: bool) -> None:
        _return_to(self, topic, held)
        topic.remains.gap = False

    patch.setattr(Surviving, "_return_to", return_to)


def forgets_its_life(patch: Patch) -> None:
    """A life is not on disk."""
    replay = Peer.replay

    def replayed(self: Any, record: bytes) -> None:
        if life_in(record) is None:
            replay(self, record)

    patch.setattr(Peer, "replay", replayed)


def forgets_its_numbers(patch: Patch) -> None:
    """Numbers of publications and changes begin again with a process."""
    replay = Peer.replay

    def replayed(self: Any, record: bytes) -> None:
        if life_in(record) is not None or not record.startswith(RECORD):
            replay(self, record)

    patch.setattr(Peer, "replay", replayed)


def forgets_to_change(patch: Patch) -> None:
    """A peer joins again under the number of its former membership."""
    enter = Joining._enter

    def entered(self: Any, name: str, topic: Any, role: int, now: float) -> None:
        topic.change = 0
        enter(self, name, topic, role, now)

    patch.setattr(Joining, "_enter", entered)


def joins_on(patch: Patch) -> None:
    """A peer that is joining goes on when somebody dies."""
    patch.setattr(Surviving, "_join_again", lambda self, name, topic: None)


def answers_at_once(patch: Patch) -> None:
    """A member answers a second question while others lack what it has published before."""
    patch.setattr(Joining, "_owes_others", lambda self, topic, upto: False)


def stays_in_views(patch: Patch) -> None:
    """The dead stay members."""
    gone = Surviving._is_gone

    def is_gone(self: Any, peer: int) -> None:
        masks = {name: (each.members, each.sources) for name, each in self._topics.items()}
        gone(self, peer)
        for name, (members, sources) in masks.items():
            topic = self._topics[name]
            if topic.phase == "in" and topic.role == MEMBER:
                topic.members, topic.sources = members, sources

    patch.setattr(Surviving, "_is_gone", is_gone)


def accepts_what_died_half_way(patch: Patch) -> None:
    """A publication of an ended life is answered as if all had it."""

    def answer(self: Any, reports: Any) -> None:
        self._out += [answer for _, answer in self._unsure]
        self._unsure = []

    patch.setattr(Surviving, "_answer_unsure", answer)


def refuses_what_died_half_way(patch: Patch) -> None:
    """A publication of an ended life is refused, whoever has it."""
    patch.setattr(surviving, "holds", lambda runs, number: False)


def past_of_a_former_life(patch: Patch) -> None:
    """What a life has read orders what the next one publishes."""
    patch.setattr(Peer, "_forget_past", lambda self, now: None)


# Suspicions.


def suspicions_stay(patch: Patch) -> None:
    """A late answer withdraws nothing."""
    turn = Detector._turn

    def turned(self: Any, peer: int, counter: int, now: float) -> list[Any]:
        if peer in self._since and not counter & 1:
            return []
        return turn(self, peer, counter, now)

    patch.setattr(Detector, "_turn", turned)


# Edges.


def comes_back_to_nobody(patch: Patch) -> None:
    """A source refuses to be on the way of its own publications."""
    patch.setattr(Edges, "returns", False)


def unmarked(patch: Patch) -> None:
    """A copy that goes around does not say around whom."""
    marked = Edges._marked
    patch.setattr(
        Edges, "_marked", lambda self, child, to, avoided: marked(self, child, to, 1 << self._me)
    )
