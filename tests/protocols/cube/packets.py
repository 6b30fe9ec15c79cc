"""What peers send each other, judged as trees: who gets a copy, of whom, and what it costs.

| property | what is said                                                                       |
|----------|------------------------------------------------------------------------------------|
| S4       | nobody is sent a tree message twice                                                |
| S5       | the source is the root; height and degree are at most ceil(log2 N)                 |
| S6       | a publication goes to everybody who is IN, and to nobody else but those whose      |
|          | leaving its source cannot know of yet; never to a pure source                      |
| S7       | a stamp names events of the past of its event, each origin once                    |
| cost     | a join reaches everybody; each copy is acknowledged once                           |

A packet that the network doubles may be passed on twice: then S4 and the cost are not judged.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from inorder.protocols.cube.messages import KINDS, SOURCE, Ack, Act, Pub, Sub, Uns
from tests.protocols.cube.judge import Broken, Judge

Key = tuple[str, str, str, int]


class Tree(Struct):
    """One wave: who was sent a copy by whom, and who may and who must be."""

    copies: dict[str, str]
    acks: Counter[tuple[str, str]]
    # Copies whose acknowledgement has not come to their senders.
    open: set[str]
    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()


class Known(Struct):
    """What a node has said of itself on a topic last, and who has heard that it has left."""

    change: int = 0
    role: int = 0
    gone: bool = False
    heard: set[str] = set()


class Packets:
    def __init__(self, names: list[str], judge: Judge, doubled: bool, direct: bool = True) -> None:
        self.names = names
        self.direct = direct
        self.judge = judge
        self.doubled = doubled
        self.height = (len(names) - 1).bit_length()
        self.trees: dict[Key, Tree] = {}
        self.known: dict[tuple[str, str], Known] = {}
        # All events of a node on a topic, in the order of their launches.
        self.launched: dict[tuple[str, str], list[str]] = {}
        # Which publications have come to whom.
        self.come: set[tuple[str, str]] = set()
        self.counts: Counter[str] = Counter()
        self.entries = 0
        # Copies for peers that were not IN, or had left.
        self.relays = 0

    def launch(self, node: str, topic: str, event: str) -> None:
        self.launched.setdefault((node, topic), []).append(event)

    def sent(self, source: str, target: str, message: Any) -> None:
        kind = type(message).__name__
        self.counts[kind] += 1
        if isinstance(message, Ack):
            self.trees[self._key(message)].acks[(source, target)] += 1
            return
        key = self._key(message)
        root = key[2]
        tree = self.trees.get(key)
        if tree is None:
            if source != root:
                raise Broken("S5", f"{source} sends {key}, which nobody has launched")
            tree = self.trees[key] = self._tree(root, message)
        if not self.doubled and (target == root or target in tree.copies):
            raise Broken("S4", f"{source} sends {key} to {target}, which has been sent it")
        tree.copies[target] = source
        tree.open.add(target)

    def _tree(self, root: str, message: Any) -> Tree:
        tree = Tree({}, Counter(), set())
        topic = message.topic
        if isinstance(message, Pub):
            tree.must = frozenset(self.judge.members(topic) - {root})
            tree.may = frozenset(name for name in self.names if self._may_be(topic, root, name))
            self._check_stamp(root, message)
        elif isinstance(message, Sub):
            before = self.known.get((topic, root))
            self.known[(topic, root)] = Known(message.change, message.role)
            if before is not None and not before.gone:
                return tree  # a source that becomes a member keeps its view
            for (of, _), known in self.known.items():
                if of == topic and known.gone:
                    known.heard = known.heard | {root}
        elif isinstance(message, Uns):
            self.known[(topic, root)] = Known(message.change, 0, True)
        return tree

    def _key(self, message: Any) -> Key:
        root = self.names[message.source]
        if isinstance(message, Ack):
            return (KINDS[message.kind].__name__, message.topic, root, message.number)
        number = message.number if isinstance(message, Pub) else message.change
        return (type(message).__name__, message.topic, root, number)

    def under_way(self, message: Any) -> bool:
        """Whether the wave of this message is not over at its source."""
        return bool(self.trees[self._key(message)].open)

    def preset(self, node: str, topic: str) -> None:
        self.known[(topic, node)] = Known(1, 1)

    def _may_be(self, topic: str, source: str, name: str) -> bool:
        """Whether this source may believe that this node is a member."""
        known = self.known.get((topic, name))
        if known is None or name == source or known.role == SOURCE:
            return False
        return not (known.gone and source in known.heard)

    def received(self, node: str, source: str, message: Any) -> None:
        if isinstance(message, Pub):
            self.come.add((node, message.body.event.id))
        elif isinstance(message, Uns):
            known = self.known.get((message.topic, self.names[message.source]))
            if known is not None and known.change == message.change:
                known.heard = known.heard | {node}
        elif isinstance(message, Ack):
            self.trees[self._key(message)].open.discard(source)

    def _check_stamp(self, root: str, pub: Pub[Any]) -> None:
        """S7: a stamp names what has been launched, each origin once; a barrier, only what has come
        to its publisher, handed over or not."""
        event = pub.body.event
        last = -1
        for origin, number in getattr(pub.body, "places", ()):
            self.entries += 1
            launched = self.launched.get((self.names[origin], pub.topic), [])
            if origin <= last or not 1 <= number <= len(launched):
                raise Broken("S7", f"{event.id} names {number} of {origin}: {launched}")
            if self.direct and (root, launched[number - 1]) not in self.come:
                raise Broken("S7", f"{event.id} names {launched[number - 1]}, which has not come")
            last = origin

    def finish(self) -> None:
        for key, tree in self.trees.items():
            self._check_shape(key, tree)
            kind, reached = key[0], {*tree.copies}
            if kind == Sub.__name__ and reached != {*self.names} - {key[2]}:
                raise Broken("cost", f"{key} goes to {sorted(reached)} only")
            if kind == Pub.__name__ and not tree.must <= reached:
                raise Broken("S6", f"{key} misses {sorted(tree.must - reached)}")
            if kind == Pub.__name__ and not reached <= tree.may:
                raise Broken("S6", f"{key} goes to {sorted(reached - tree.may)} as well")
            if kind == Pub.__name__:
                self.relays += len(reached - tree.must)
            if kind == Act.__name__ and not reached:
                raise Broken("cost", f"{key} goes to nobody")
            for target, source in tree.copies.items():
                count = tree.acks[(target, source)]
                if count != 1 and not (self.doubled and count > 1):
                    raise Broken("cost", f"{target} acknowledges {key} {count} times to {source}")
            if sum(tree.acks.values()) != len(tree.copies) and not self.doubled:
                raise Broken("cost", f"{key}: {tree.acks} for {tree.copies}")

    def _check_shape(self, key: Key, tree: Tree) -> None:
        root = key[2]
        degrees = Counter(tree.copies.values())
        if max(degrees.values(), default=0) > self.height:
            raise Broken("S5", f"{key} has a degree of {max(degrees.values())}")
        for target in tree.copies:
            steps, node = 0, target
            while node != root and steps <= self.height:
                node = tree.copies.get(node, root)
                steps += 1
            if steps > self.height:
                raise Broken("S5", f"{key} is higher than {self.height} at {target}")
