"""What a stage refuses: messages nobody honest would send.

Each check raises `BadMessage` before anything has changed. The link does not move on: a peer whose
messages are refused is stuck until it is mended, and harms nobody else.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from inorder.core.errors import BadMessage
from inorder.core.limits import TOPICS_PER_SUBSCRIBER_MAX, WAITING_PUBLICATIONS_MAX
from inorder.protocols.total.directory import RANKING
from inorder.protocols.total.messages import (
    Abort,
    Ask,
    Body,
    Complete,
    Create,
    Fill,
    Forget,
    Freeze,
    Install,
    Left,
    Walk,
)
from inorder.protocols.total.version import begun_by, life_of

if TYPE_CHECKING:
    from inorder.protocols.total.stage import Stage


def check_body(stage: Stage, source: str, session: int, body: Body) -> None:
    """Raise unless `source` may say this to the stage now."""
    _CHECKS[type(body)](stage, source, session, body)


def _create(stage: Stage, source: str, session: int, request: Create) -> None:
    _home(stage, source, request.topic)
    if not 0 < len(request.events) <= WAITING_PUBLICATIONS_MAX:
        raise BadMessage(source, f"asks for {len(request.events)} numbers at once")
    last = 0
    for event in request.events:
        if event.publisher != source:
            raise BadMessage(source, f"publishes as {event.publisher}")
        if event.topic != request.topic or event.seq <= last:
            raise BadMessage(source, f"{event.id} is out of place in its batch")
        last = event.seq


def _fill(stage: Stage, source: str, session: int, fill: Fill) -> None:
    _peer(stage, source, "fill")
    _home(stage, source, fill.at)
    _all_known(stage, source, (fill.topic, *fill.want, *(topic for topic, _ in fill.stamp)))
    _way(stage, source, fill.epoch, fill.at, fill.want)


def _complete(stage: Stage, source: str, session: int, complete: Complete) -> None:
    _peer(stage, source, "complete")
    _home(stage, source, complete.topic)
    _all_known(stage, source, tuple(topic for topic, _ in complete.stamp))
    if not stage.managers[complete.topic].is_under_way(complete.first):
        raise BadMessage(source, f"ends a round of {complete.topic} that is not under way")


def _walk(stage: Stage, source: str, session: int, walk: Walk) -> None:
    if not walk.visit or not {*walk.topics} <= {*walk.visit}:
        raise BadMessage(source, "walks past topics it wants to hold")
    if len(walk.visit) > 2 * TOPICS_PER_SUBSCRIBER_MAX:
        raise BadMessage(source, f"walks over {len(walk.visit)} topics")
    if len({*walk.visit}) < len(walk.visit) or len({*walk.topics}) < len(walk.topics):
        raise BadMessage(source, "names a topic twice")
    named = (*walk.visit, *walk.want, *(topic for topic, _ in walk.stamp))
    _all_known(stage, source, named)
    if walk.epoch >= 0:
        _peer(stage, source, "walk that has entered")
        _home(stage, source, walk.at)
        _way(stage, source, walk.epoch, walk.at, walk.want)
    elif not stage.directory.is_service(source):
        trusted = stage.options.links == "trusted"
        if walk.subscriber != source or not (trusted or begun_by(session, life_of(walk.version))):
            raise BadMessage(source, f"walks as {walk.subscriber}")
        if walk.seen or walk.want or walk.stamp or walk.forgotten:
            raise BadMessage(source, "says a walk has been somewhere already")


def _left(stage: Stage, source: str, session: int, left: Left) -> None:
    _peer(stage, source, "left")
    if not any(each[:2] == (left.subscriber, left.version) for each in stage.s.entered):
        raise BadMessage(source, f"ends a walk of {left.subscriber} that did not enter here")


def _forget(stage: Stage, source: str, session: int, forget: Forget) -> None:
    raise BadMessage(source, "decides whom a stage forgets")


def _ask(stage: Stage, source: str, session: int, ask: Ask | Abort) -> None:
    _owner(stage, source, ask.epoch)


def _freeze(stage: Stage, source: str, session: int, freeze: Freeze) -> None:
    _owner(stage, source, freeze.epoch)
    if any(topic not in stage.managers for topic in freeze.topics):
        raise BadMessage(source, f"freezes topics that {stage.name} is not home to")


def _install(stage: Stage, source: str, session: int, install: Install) -> None:
    _owner(stage, source, install.epoch - 1)
    s = stage.s
    if install.epoch == s.epoch + 1 and not (s.change.frozen and s.change.answered):
        raise BadMessage(source, f"installs epoch {install.epoch} over {s.epoch}, unasked")
    if sorted(install.order) != sorted(s.order):
        raise BadMessage(source, "installs an order that is not one of the topics")


def _owner(stage: Stage, source: str, epoch: int) -> None:
    """What is late comes to nothing (epoch.py). What is early nobody honest would say: an epoch
    begins with its `Install`, and the ranking's messages come in order."""
    if source != RANKING or epoch > stage.s.epoch:
        raise BadMessage(source, f"changes epoch {epoch}, this is {stage.s.epoch}")


def _home(stage: Stage, source: str, topic: str) -> None:
    if topic not in stage.managers:
        raise BadMessage(source, f"{stage.name} is not home to {topic}")


def _peer(stage: Stage, source: str, what: str) -> None:
    if source not in stage.directory.stages:
        raise BadMessage(source, f"is no stage but sends a {what}")


def _way(stage: Stage, source: str, epoch: int, at: str, want: tuple[str, ...]) -> None:
    """What is still wanted lies ahead, in order. An order to come cannot be checked yet; where an
    older one differs from ours, nothing of it is under way any more."""
    if epoch > stage.s.epoch:
        return
    rank = stage.path.rank
    ranks = [rank[at] + 1, *(rank[topic] for topic in want)]
    if not want or any(before <= after for before, after in pairwise(ranks)):
        raise BadMessage(source, f"a way from {at} over {want}")


def _all_known(stage: Stage, source: str, topics: tuple[str, ...]) -> None:
    for topic in topics:
        if topic not in stage.directory:
            raise BadMessage(source, f"unknown topic {topic}")


_CHECKS: dict[type, Any] = {
    Create: _create,
    Fill: _fill,
    Complete: _complete,
    Walk: _walk,
    Left: _left,
    Forget: _forget,
    Ask: _ask,
    Freeze: _freeze,
    Abort: _ask,
    Install: _install,
}
