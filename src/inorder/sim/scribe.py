"""SCRIBE: one multicast tree per topic, grown from the Pastry routes of its members.

Rule 1: a tree is the union of its members' routes to the topic's root, each cut off where it first
        meets the tree. Hosts on the way forward without being members.
Rule 2: whoever has neither members below nor is one himself leaves the tree, except the root.
Rule 3: a diffusion reaches every member over exactly one path.

Theory (Castro, Druschel, Kermarrec and Rowstron, JSAC 2002). The root of a topic is the host whose
id is closest to the topic's. A join travels towards it and stops at the first host that is in the
tree; that host becomes the parent. Routes from all over the ring meet early, one digit a hop, so a
tree is about as deep as a route is long and no host has many more than 16 children per digit.

Static hosts: nobody's parent dies, so the heartbeats and repairs of SCRIBE are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from inorder.sim.pastry import Pastry, id_of


class Tree:
    """The tree of one topic. Dictionaries keep the order of joining, so a run can be repeated."""

    __slots__ = ("children", "key", "members", "parent", "root")

    def __init__(self, key: int, root: str) -> None:
        self.key = key
        self.root = root
        self.members: dict[str, None] = {}
        self.parent: dict[str, str] = {}
        self.children: dict[str, dict[str, None]] = {}

    def __contains__(self, host: str) -> bool:
        return host == self.root or host in self.parent

    def below(self, host: str) -> Iterator[str]:
        """Members at or below a host: whom a message lost on the way to it does not reach."""
        todo = [host]
        while todo:
            here = todo.pop()
            if here in self.members:
                yield here
            todo.extend(self.children.get(here, ()))

    def _adopt(self, parent: str, child: str) -> None:
        self.parent[child] = parent
        self.children.setdefault(parent, {})[child] = None

    def _prune(self, host: str) -> None:
        while host != self.root and host not in self.members and host not in self.children:
            parent = self.parent.pop(host)
            siblings = self.children[parent]
            del siblings[host]
            if not siblings:
                del self.children[parent]
            host = parent


class Scribe:
    """The trees of all topics over one Pastry overlay.

    >>> scribe = Scribe(Pastry(f"host{number}" for number in range(1000)))
    >>> scribe.join("host1", "news")
    >>> scribe.parents("news")
    {'host1': 'host849', 'host849': 'host285', 'host285': 'host385'}
    >>> scribe.leave("host1", "news")
    >>> scribe.parents("news")
    {}
    """

    def __init__(self, pastry: Pastry) -> None:
        self.pastry = pastry
        self._trees: dict[str, Tree] = {}

    def tree(self, topic: str) -> Tree:
        tree = self._trees.get(topic)
        if tree is None:
            key = id_of(topic)
            tree = self._trees[topic] = Tree(key, self.pastry.root(key))
        return tree

    def root(self, topic: str) -> str:
        """The rendezvous host, where publications of the topic start their way down."""
        return self.tree(topic).root

    def join(self, host: str, topic: str) -> None:
        tree = self.tree(topic)
        tree.members[host] = None
        if host in tree:
            return
        for parent in self.pastry.hops(host, tree.key):
            met = parent in tree
            tree._adopt(parent, host)
            if met:
                return
            host = parent

    def leave(self, host: str, topic: str) -> None:
        tree = self.tree(topic)
        if host in tree.members:
            del tree.members[host]
            tree._prune(host)

    def members(self, topic: str) -> list[str]:
        return list(self.tree(topic).members)

    def parents(self, topic: str) -> dict[str, str]:
        """Every host of the tree but the root, with whom it hears from."""
        return dict(self.tree(topic).parent)

    def children(self, topic: str, host: str) -> list[str]:
        return list(self.tree(topic).children.get(host, ()))
