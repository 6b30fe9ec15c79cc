"""Broken brokers and clients: each defect must be found by the random trees, or they prove nothing.

The mutants are those of the specification, and a few of our own. Each is switched on from outside;
a defect may show as a broken property or as a message that the next machine refuses.
"""

from __future__ import annotations

from typing import Any

import pytest

from inorder.content.broker import Broker
from inorder.content.client import Client
from inorder.content.links import Filter
from inorder.content.messages import Flt
from inorder.content.summary import Delta, Everything
from inorder.content.topic import Topic
from inorder.core.errors import BadMessage
from tests.content.judge import KINDS, _some, judged_tree

# Trees without summaries, with and without batches: the judge sees most there.
PLAIN = [seed for seed in range(480) if seed % len(KINDS) == 0]
ANY = range(120)


def first_kill(seeds: Any) -> str:
    for seed in seeds:
        try:
            judged_tree(seed)
        except AssertionError as error:
            return str(error)
        except BadMessage as error:
            return f"refused: {error}"
    return "alive"


def no_exclusion(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Topic, "concerned", lambda self, link: sorted(self.filters))


def withdraw_then_send(patch: pytest.MonkeyPatch) -> None:
    """What changes is taken back first and said anew in a second message."""

    def messages(self: Filter, delta: Delta, reset: bool) -> list[Flt]:
        moved = [(rid, self.s.told[rid]) for rid, _ in delta.moved]
        gone = (*delta.deleted, *(rid for rid, _ in moved))
        if reset or not moved:
            return [self._message(delta, reset)]
        return [
            self._message(Delta(deleted=gone), False),
            self._message(Delta(added=(*delta.added, *moved)), False),
        ]

    patch.setattr(Filter, "_messages", messages)


def per_predicate(patch: pytest.MonkeyPatch) -> None:
    def wanting(self: Topic, attributes: Any) -> list[str]:
        if attributes is None:
            return sorted(self.s.entries)
        return sorted(self._owners[key] for key in self.engine.match(attributes))

    patch.setattr(Topic, "wanting", wanting)


def no_reply_to_adv(patch: pytest.MonkeyPatch) -> None:
    """An advertiser is told of later changes only, as if it knew the rest."""

    def begin(self: Filter, now: float) -> list[Flt]:
        self.s.begun, self._touched = True, False
        self.s.told = {self._new_rid(rid): form for rid, form in self._summary.everything()}
        return list(self._messages(Delta(), reset=True))

    patch.setattr(Filter, "_begin", begin)


def stale_sessions(patch: pytest.MonkeyPatch) -> None:
    """Late filters of a closed session are taken in, as far as they can be."""

    def receive(self: Broker, source: str, message: Any, now: float) -> Any:
        topic = self.topics.get(message.topic) if isinstance(message, Flt) else None
        if topic and source in self.neighbours and not topic.is_current(source, message.session):
            known = topic.s.entries.get(source, {})
            for rid in message.delta.deleted:
                if rid in known:
                    topic.remove(source, rid)
            for rid, form in message.delta.added:
                topic.put(source, rid, (form,), 1)
            self.touch(message.topic)
            return self._settle(now)
        return original(self, source, message, now)

    original = Broker.receive
    patch.setattr(Broker, "receive", receive)


def no_client_filter(patch: pytest.MonkeyPatch) -> None:
    def matching(self: Client, pub: Any) -> tuple[int, ...]:
        known = self._subscriptions.items()
        return tuple(sorted(sid for sid, one in known if one.s.topic == pub.topic))

    patch.setattr(Client, "_matching", matching)


def partial_update(patch: pytest.MonkeyPatch) -> None:
    """Each value that changes goes in a message of its own (E-C7b)."""

    def messages(self: Filter, delta: Delta, reset: bool) -> list[Flt]:
        moves = [Delta(moved=(one,)) for one in delta.moved]
        rest = Delta(delta.deleted, delta.added)
        if reset or rest or not moves:
            return [self._message(delta, reset)]
        return [self._message(one, False) for one in moves]

    patch.setattr(Filter, "_messages", messages)


def small_summary(patch: pytest.MonkeyPatch) -> None:
    """The summary forgets what another interest nearly covers: all but the first of its kind."""

    def put(self: Everything, key: tuple[str, int], forms: Any) -> None:
        original(self, key, forms[:1])

    original = Everything.put
    patch.setattr(Everything, "put", put)


def only_substituted(patch: pytest.MonkeyPatch) -> None:
    """A change is not worth a message when what matches stays the same (E-C9b)."""
    grid = [{"mark": "event", "price": p, "size": s, "firm": f}
            for p in range(0, 10, 3) for s in range(0, 10, 3) for f in "ab"]  # fmt: skip

    def change(self: Filter, now: float) -> Delta:
        before = list(self.s.told.values())
        delta = original(self, now)
        after = list(self.s.told.values())
        same = all(_some(before, event) == _some(after, event) for event in grid)
        return Delta() if same else delta

    original = Filter._change
    patch.setattr(Filter, "_change", change)


def early_confirmation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Topic, "_open_need", lambda self, need: False)


def own_news_only(patch: pytest.MonkeyPatch) -> None:
    """A change that caused no filter of its own is confirmed at once."""

    def owe(self: Topic, link: str, number: int, version: int, missing: Any = ()) -> None:
        seen = {n: one.needed for n, one in self.filters.items()}
        before = getattr(self, "_last", {})
        original(self, link, number, version, missing)
        duty = self.s.duties[link].pop()
        needs = tuple(need for need in duty.needs if before.get(need[0]) != need[2])
        self.s.duties[link].append(type(duty)(number, version, needs))
        self._last = seen

    original = Topic.owe
    patch.setattr(Topic, "owe", owe)


MUTANTS = [
    (no_exclusion, PLAIN),
    (withdraw_then_send, PLAIN),
    (per_predicate, PLAIN),
    (no_reply_to_adv, PLAIN),
    (stale_sessions, PLAIN),
    (no_client_filter, ANY),
    (partial_update, PLAIN),
    (small_summary, PLAIN),
    (only_substituted, PLAIN),
    (early_confirmation, PLAIN),
    (own_news_only, PLAIN),
]


@pytest.mark.parametrize(("mutate", "seeds"), MUTANTS, ids=lambda one: getattr(one, "__name__", ""))
def test_every_mutant_is_killed(mutate, seeds, monkeypatch):
    mutate(monkeypatch)
    assert first_kill(seeds) != "alive"
