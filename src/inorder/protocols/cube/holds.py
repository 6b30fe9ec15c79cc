"""Publications that are held back for a child, because what they rest on will go there, too.

Peer 4 gets peer 0's message, which rests on peer 2's, and that has not come. Peer 4 passes both on
to 5. It holds peer 0's for 5: peer 5 could do nothing with it yet. When peer 2's comes, both leave
together. Peer 6 gets peer 2's from elsewhere, so peer 0's goes to 6 at once.

Rule 1: a publication is held for a child while some place that it rests on (a) is expected here and
        will go to that child from here, or (b) is itself held for that child. The number before it
        of its own publisher is one of these places.
Rule 2: all that an input brings is absorbed before anything is looked at (erratum A2).
Rule 3: what becomes free for a child at once is put into an order that extends causality.
Rule 4: a hold waits for one thing at a time, and looks for the next when that has come. The index
        of who waits for what is no part of the state, hence no order depends on it.
Rule 5: when a view changes or a topic is left, everything that is held is looked at again.

Nothing here has a bound of its own: what is held is not acknowledged, so the windows of its sources
bound it.

Theory. The thesis (peer.py), chapter 4. Why it delays nobody: what lies below the edge to a child
does not depend on the root (topology.py). So every peer below gets all of it through this edge, and
none could hand the one over before the other. With fixed delays on links and no queues every event
is handed over at the same instant as without holding. Where views disagree that is not so, but a
hold ends at the latest when its peer has received what it waits for, and it only waits for what is
on its way there.

Why stamps that say only what is new (clock.py) need no more: the full stamp is the stamp's own
places and those of the publisher's event before it. If that one is held for the child, (b) holds
this one; if it is not, none of its places blocks any more. To read an absent place as "rests on
nothing" without (b) sends too early (erratum A5). With direct causes (barrier.py) a chain whose
middle does not go through this peer to this child is not seen; the thesis says that only direct
causes could be used at all, which (b) refutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inorder.core.place import Origin, Place, Places
from inorder.core.waiting import Waiting
from inorder.protocols.cube.messages import Pub
from inorder.protocols.cube.outlook import Outlook

# A child, and a publication that may be held for it.
Hold = tuple[int, Place]


class Holds:
    """All children of one peer, in all trees."""

    def __init__(self, outlook: Outlook) -> None:
        self._outlook = outlook
        self._held: dict[Hold, Pub[Any]] = {}
        # How many are held for each child, and on each topic.
        self._for_child: dict[int, int] = {}
        self._on_topic: dict[str, int] = {}
        # Of the input in progress: what has been put, and whose publications have come.
        self._new: dict[Hold, None] = {}
        self._came: dict[Origin, None] = {}
        # Who waits for which origin, and for which other hold.
        self._coming: Waiting[Origin, Hold] = Waiting()
        self._behind: Waiting[Hold, Hold] = Waiting()
        # The views of those topics when everything was looked at last.
        self._views: dict[str, int | None] = {}
        # How many have been held beyond their input: only to report it.
        self.counted = 0

    def holds_for(self, child: int) -> bool:
        return child in self._for_child

    @property
    def idle(self) -> bool:
        return not self._held

    # Inputs.

    def put(self, child: int, pub: Pub[Any]) -> bool:
        """Take a publication for a child; False if it is held for it already."""
        hold = (child, ((pub.topic, pub.source), pub.number))
        if hold in self._held:
            return False
        self._held[hold] = pub
        self._for_child[child] = self._for_child.get(child, 0) + 1
        self._on_topic[pub.topic] = self._on_topic.get(pub.topic, 0) + 1
        self._new[hold] = None
        return True

    def came(self, topic: str, source: int) -> None:
        """A publication of this source has come."""
        if self._coming:
            self._came[(topic, source)] = None

    def look_again(self) -> None:
        """Something that holds depend on has changed: at the end of the input, look at them all."""
        self._coming, self._behind = Waiting(), Waiting()
        self._views = dict.fromkeys(self._on_topic, -1)

    def drop(self, child: int) -> None:
        """Nothing goes to this child any more."""
        for hold in [hold for hold in self._held if hold[0] == child]:
            self._take_out(hold)

    def _take_out(self, hold: Hold) -> Pub[Any]:
        pub = self._held.pop(hold)
        _count_down(self._for_child, hold[0])
        _count_down(self._on_topic, pub.topic)
        self._new.pop(hold, None)
        return pub

    # The end of an input.

    def settle(self) -> list[tuple[int, list[Pub[Any]], bool]]:
        """For each child what is free now, in an order that extends causality, and whether any of
        it was held before this input. The child with the longest way behind it comes first."""
        if not self._held:
            return []
        new = {*self._new}
        freed: dict[int, dict[Place, Pub[Any]]] = {}
        released: dict[int, None] = {}
        missing: dict[Place, Places] = {}
        candidates = self._candidates()
        for hold in candidates:  # grows while it is walked
            if hold not in self._held or not self._is_free(hold, missing):
                continue
            child, place = hold
            if hold not in new:
                released[child] = None
            freed.setdefault(child, {})[place] = self._take_out(hold)
            candidates += self._behind.release(hold)
        self.counted += len(self._new)
        self._new.clear()
        self._views = {topic: self._outlook.view(topic) for topic in self._on_topic}
        children = self._outlook.far_first(freed)
        return [(child, in_order(freed[child]), child in released) for child in children]

    def _candidates(self) -> list[Hold]:
        """What may be free now."""
        came, self._came = self._came, {}
        if self._view_has_changed():
            self.look_again()
            return list(self._held)
        candidates = list(self._new)
        for origin in came:
            candidates += self._coming.release(origin)
        return candidates

    def _view_has_changed(self) -> bool:
        return any(self._outlook.view(topic) != view for topic, view in self._views.items())

    def _is_free(self, hold: Hold, missing: dict[Place, Places]) -> bool:
        """Whether nothing holds it; else it waits for the first thing that does."""
        child, place = hold
        pub = self._held[hold]
        topic = pub.topic
        expected = missing.get(place)
        if expected is None:
            expected = missing[place] = self._outlook.missing(pub)
        for source, _ in expected:
            if self._outlook.passes_on(topic, source, child):
                self._coming.wait(hold, (topic, source))
                return False
        behind = self._rests_on_held(hold, pub) if self._for_child[child] > 1 else None
        if behind is not None:
            self._behind.wait(hold, behind)
        return behind is None

    def _rests_on_held(self, hold: Hold, pub: Pub[Any]) -> Hold | None:
        """The first thing that it rests on directly and that is held for the same child."""
        child, place = hold
        causes = ((child, cause) for cause in rests_on(place, pub))
        return next((cause for cause in causes if cause in self._held), None)

    # Snapshots.

    def packed(self) -> list[tuple[int, Pub[Any]]]:
        return [(hold[0], self._held[hold]) for hold in sorted(self._held)]

    def become(self, held: Iterable[tuple[int, Pub[Any]]]) -> None:
        """Take over a state: nothing of it is free yet, and who waits for what is looked up at the
        end of the next input."""
        for child, pub in held:
            self.put(child, pub)
        self._new.clear()
        self.look_again()


def rests_on(place: Place, pub: Pub[Any]) -> list[Place]:
    """The places that this one rests on directly, the one before it of its publisher first."""
    (topic, source), number = place
    before = [((topic, source), number - 1)]
    return before + [((topic, peer), last) for peer, last in getattr(pub.body, "places", ())]


def in_order(freed: Mapping[Place, Pub[Any]]) -> list[Pub[Any]]:
    """These, each behind all that it rests on; otherwise by their places."""
    if len(freed) == 1:
        return list(freed.values())
    order: list[Pub[Any]] = []
    # The next one last; a second time when all that it rests on has been taken.
    waiting = [(place, False) for place in sorted(freed, reverse=True)]
    seen: dict[Place, None] = {}
    while waiting:
        place, behind_causes = waiting.pop()
        pub = freed[place]
        if behind_causes:
            order.append(pub)
        elif place not in seen:
            seen[place] = None
            waiting.append((place, True))
            causes = [each for each in rests_on(place, pub) if each in freed and each not in seen]
            waiting += [(cause, False) for cause in reversed(causes)]
    return order


def _count_down(counts: dict[Any, int], key: Any) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
