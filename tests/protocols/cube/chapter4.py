"""The causal aggregation of the thesis's chapter 4, twice: as it should be, and as it is printed.

Slow twins with whole vectors and static members. `Corrected` keeps an outbox for every child and
absorbs a packet before it looks at it; `Published` is Algorithm 2, message by message. Nothing of
them is imported by the product.

A network of them is a list of packets in flight; whoever uses it chooses which arrives next.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tests.protocols.cube.twins import slow_down, slow_index, slow_tree


class Message(NamedTuple):
    s: int
    n: int
    # What its source had delivered of everybody, its own number included.
    vc: tuple[int, ...]
    # The same, 0 for what has not changed since the source's message before.
    delta: tuple[int, ...]


class Node:
    """What both have in common: delivery, and what is known of trees."""

    def __init__(self, i, count, sparse=False):
        self.i, self.count, self.d = i, count, (count - 1).bit_length()
        # Whether stamps are read as they travel: what they leave out is 0 (erratum A5).
        self.sparse = sparse
        self.vc = [0] * count
        self.vmax = [0] * count
        self.before = [0] * count
        self.pending = []
        self.delivered = []
        everybody = range(count)
        trees = [slow_tree(root, everybody, self.d) for root in everybody]
        self.passed = [{child for parent, child in tree if parent == i} for tree in trees]

    def stamp(self, m):
        return m.delta if self.sparse else m.vc

    def broadcast(self):
        """The message, and whom it goes to."""
        self.vc[self.i] += 1
        self.vmax[self.i] = self.vc[self.i]
        changed = zip(self.vc, self.before, strict=True)
        m = Message(self.i, self.vc[self.i], tuple(self.vc), tuple(n * (n > o) for n, o in changed))
        self.before = list(self.vc)
        self.delivered.append((m.s, m.n))
        return m, slow_down(self.i, self.d, range(self.count))

    def kids(self, j):
        return slow_down(self.i, slow_index(j, self.i, self.d) - 1, range(self.count))

    def advance(self):
        moved = True
        while moved:
            moved = [m for m in self.pending if m.n == self.vmax[m.s] + 1]
            for m in moved:
                self.vmax[m.s] = m.n

    def waits(self, m, k):
        """Whether something that m rests on will go to k from here, and has not come."""
        stamp = self.stamp(m)
        return any(stamp[x] > self.vmax[x] and k in self.passed[x] for x in range(self.count))

    def deliver(self):
        moved = True
        while moved:
            moved = [m for m in self.pending if self.deliverable(m)]
            for m in moved[:1]:
                self.pending.remove(m)
                self.vc[m.s] = m.n
                self.delivered.append((m.s, m.n))

    def deliverable(self, m):
        rest = (x for x in range(self.count) if x != m.s)
        return m.n == self.vc[m.s] + 1 and all(m.vc[x] <= self.vc[x] for x in rest)


class Corrected(Node):
    def __init__(self, i, count, sparse=False):
        super().__init__(i, count, sparse)
        self.out = {}

    def receive(self, packet, j):
        """What is sent: the child, and the messages of a packet."""
        kids = self.kids(j)
        for m in packet:
            if m.n <= self.vmax[m.s] or m in self.pending:
                continue
            self.pending.append(m)
            for k in kids:
                self.out.setdefault(k, []).append(m)
        self.advance()
        sent = []
        for k in kids:
            ready = [m for m in self.out.get(k, []) if not self.waits(m, k)]
            if ready:
                self.out[k] = [m for m in self.out[k] if m not in ready]
                sent.append((k, ready))
        self.deliver()
        return sent


class Published(Node):
    """Algorithm 2. `delivered` has a message twice if it is."""

    def receive(self, packet, j):
        sent = []
        for m in packet:
            self.pending.append(m)
            self.advance()
            for k in self.kids(j):
                ready = [
                    other for other in self.pending
                    if k in self.passed[other.s]
                    and self.stamp(other)[m.s] >= self.stamp(m)[m.s]
                    and not self.waits(other, k)
                ]  # fmt: skip
                if ready:
                    sent.append((k, ready))
        self.deliver()
        return sent


def play(kind, count, events, rng, *, sparse=False, double=0, reverse=False):
    """A random schedule of so many broadcasts; the nodes, and the packets sent as sets."""
    nodes = [kind(i, count, sparse) for i in range(count)]
    flight = [(None, None, None)] * events
    packets = []

    def send(source, sent):
        for target, messages in sent:
            listed = sorted(messages, key=lambda m: sum(m.vc), reverse=reverse)
            packets.append((source, target, {(m.s, m.n) for m in messages}))
            flight.append((source, target, listed))

    while flight:
        source, target, messages = flight.pop(rng.randrange(len(flight)))
        if messages is None:
            node = nodes[rng.randrange(count)]
            m, kids = node.broadcast()
            send(node.i, [(k, [m]) for k in kids])
            continue
        if double and rng.random() < 0.05:
            double -= 1
            flight.append((source, target, messages))
        send(target, nodes[target].receive(messages, source))
    return nodes, packets


def causal(nodes, rng=None):
    """Whether every node has delivered everything once, each publisher's in its order."""
    everything = sorted(nodes[0].delivered)
    return all(sorted(node.delivered) == everything for node in nodes) and len(
        set(everything)
    ) == len(everything)


def seeded(seed):
    return Random(f"chapter 4/{seed}")
