"""Box sets in their partial order: who covers whom, kept while sets come, change and go.

Rule 1: an edge runs from a node to each node it covers immediately, with no node between; the roots
        are the maximal nodes. Equivalent sets share one node with all their owners (E-C10).
Rule 2: an edge is only drawn where covering was shown, so a search that stops at a node which does
        not hold an event misses nothing, even when a covering was not found within the budget.
Rule 3: a set without a box matches nothing and stands nowhere.

Theory (paper, Sec. 4.2, corrected by E-C12): covering is partial, so this is no heap. INSERT looks
from the roots for the least nodes that cover the new set, then below them for the greatest nodes it
covers: n comparisons each way when nothing covers anything. DELETE joins children and parents, and
compares nothing. UPDATE is both, and uses that what covers a wider set covered the old one, and
what a narrower set covers the old one did. It does not do to look at the old neighbours alone: a
narrower set may come under a node it had nothing to do with, and a wider one may equal a parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from inorder.content.box import Box
from inorder.content.covering import Boxes, covering, inside


class Node(Struct, eq=False):
    """A box set; `owners` are whose it is, oldest first."""

    number: int
    boxes: Boxes
    owners: dict[Any, None]
    parents: dict[int, Node]
    children: dict[int, Node]


Nodes = dict[int, Node]


class Order:
    """Owners are anything hashable; each has one box set.

    `comparisons` counts covering tests, `cut` those the budget ended, and `evaluations` the nodes
    tried on events. `changed` gathers the numbers of nodes that became or ceased to be roots, or
    changed their boxes or owners as such; whoever reads it empties it.
    """

    def __init__(self) -> None:
        self.nodes: Nodes = {}
        self.roots: Nodes = {}
        self.changed: dict[int, None] = {}
        self.comparisons = 0
        self.cut = 0
        self.evaluations = 0
        self._of: dict[Any, Node] = {}
        self._spelt: dict[frozenset[Box], Node] = {}
        self._next = 1

    def put(self, owner: Any, boxes: Boxes) -> None:
        """Give an owner this box set instead of the one it may have."""
        boxes = tuple(dict.fromkeys(boxes))
        node = self._of.get(owner)
        if node is not None:
            if frozenset(boxes) == frozenset(node.boxes):
                return
            if boxes and len(node.owners) == 1 and frozenset(boxes) not in self._spelt:
                self._update(node, boxes)
                return
            self.drop(owner)
        if not boxes:
            return
        same = self._spelt.get(frozenset(boxes))
        if same is not None:
            self._join(owner, same)
            return
        parents = self._coverers(boxes)
        if (twin := self._twin(boxes, parents)) is not None:
            self._join(owner, twin)
            return
        node = Node(self._next, boxes, {}, {}, {})
        self._next += 1
        self._attach(node, parents, self._covered(boxes, parents, {}))
        self._join(owner, node)

    def drop(self, owner: Any) -> None:
        node = self._of.pop(owner, None)
        if node is None:
            return
        del node.owners[owner]
        if node.owners:
            self.changed[node.number] = None
        else:
            self._detach(node)

    def matching(self, attributes: Mapping[str, Any]) -> list[Node]:
        """All nodes that hold an event."""
        found: list[Node] = []
        waiting = list(self.roots.values())
        seen: dict[int, None] = dict.fromkeys(self.roots)
        while waiting:
            node = waiting.pop()
            self.evaluations += 1
            if any(box.contains(attributes) for box in node.boxes):
                found.append(node)
                for child in node.children.values():
                    if child.number not in seen:
                        seen[child.number] = None
                        waiting.append(child)
        return found

    # The three operations.

    def _join(self, owner: Any, node: Node) -> None:
        node.owners[owner] = None
        self._of[owner] = node
        self.changed[node.number] = None

    def _update(self, node: Node, boxes: Boxes) -> None:
        """Another set for a node with one owner; its number stays unless it meets its equal."""
        old, parents, children = node.boxes, node.parents, node.children
        wider, narrower = self._covers(boxes, old), self._covers(old, boxes)
        self._detach(node)
        if not (wider and all(self._covers(one.boxes, boxes) for one in parents.values())):
            parents = self._coverers(boxes)
        if (twin := self._twin(boxes, parents)) is not None:
            (owner,) = node.owners
            self._join(owner, twin)
            return
        if not (narrower and all(self._covers(boxes, one.boxes) for one in children.values())):
            children = self._covered(boxes, parents, children if wider else {})
        node.boxes = boxes
        self._attach(node, parents, children)

    def _attach(self, node: Node, parents: Nodes, children: Nodes) -> None:
        if self.cut:  # only a covering that was not found can make a circle
            above = _all_above(parents)
            children = {n: child for n, child in children.items() if n not in above}
        node.parents, node.children = dict(parents), dict(children)
        for number, child in children.items():
            for parent in parents.values():
                if parent.children.pop(number, None):
                    del child.parents[parent.number]
            child.parents[node.number] = node
            if self.roots.pop(number, None):
                self.changed[number] = None
        for parent in parents.values():
            parent.children[node.number] = node
        if not parents:
            self.roots[node.number] = node
        self.nodes[node.number] = node
        self._spelt[frozenset(node.boxes)] = node
        self.changed[node.number] = None

    def _detach(self, node: Node) -> None:
        for parent in node.parents.values():
            del parent.children[node.number]
        for number, child in node.children.items():
            del child.parents[node.number]
            above = _all_above(child.parents) if node.parents and child.parents else {}
            for parent in node.parents.values():
                if parent.number not in above:
                    parent.children[number] = child
                    child.parents[parent.number] = parent
            if not child.parents:
                self.roots[number] = child
                self.changed[number] = None
        self.roots.pop(node.number, None)
        del self.nodes[node.number]
        del self._spelt[frozenset(node.boxes)]
        self.changed[node.number] = None

    # Searching.

    def _covers(self, a: Boxes, b: Boxes) -> bool:
        self.comparisons += 1
        if len(a) == 1 and len(b) == 1:  # nearly always
            return inside(b[0], a[0])
        verdict = covering(a, b)
        self.cut += verdict.cut
        return verdict.covers

    def _twin(self, boxes: Boxes, parents: Nodes) -> Node | None:
        """The equivalent node, if there is one: then nothing else covers the boxes immediately."""
        if len(parents) != 1:
            return None
        (parent,) = parents.values()
        return parent if self._covers(boxes, parent.boxes) else None

    def _coverers(self, boxes: Boxes) -> Nodes:
        """The least nodes that cover these boxes."""
        known: dict[int, bool] = {}

        def covering_of(nodes: Nodes) -> list[Node]:
            for number, node in nodes.items():
                if number not in known:
                    known[number] = self._covers(node.boxes, boxes)
            return [node for number, node in nodes.items() if known[number]]

        found: Nodes = {}
        waiting = covering_of(self.roots)
        seen: dict[int, None] = {}
        while waiting:
            node = waiting.pop()
            if node.number in seen:
                continue
            seen[node.number] = None
            closer = covering_of(node.children)
            if closer:
                waiting += closer
            else:
                found[node.number] = node
        return found

    def _covered(self, boxes: Boxes, parents: Nodes, known: Nodes) -> Nodes:
        """The greatest nodes these boxes cover; they cover the `known` ones, that is known."""
        start = self.roots
        if parents:
            start = min((one.children for one in parents.values()), key=len)
        found: Nodes = {}
        waiting = list(start.values())
        seen: dict[int, None] = dict.fromkeys(start)
        while waiting:
            node = waiting.pop()
            if node.number in known or self._covers(boxes, node.boxes):
                found[node.number] = node
                continue
            for child in node.children.values():
                if child.number not in seen:
                    seen[child.number] = None
                    waiting.append(child)
        if len(found) < 2:
            return found
        return {
            n: node
            for n, node in found.items()
            if not any(one in found for one in _all_above(node.parents))
        }


def _all_above(parents: Nodes) -> Nodes:
    """These nodes and everything above them."""
    found = dict(parents)
    waiting = list(parents.values())
    while waiting:
        for number, node in waiting.pop().parents.items():
            if number not in found:
                found[number] = node
                waiting.append(node)
    return found
