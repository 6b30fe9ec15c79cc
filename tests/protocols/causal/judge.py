"""Causes from what was published and handed over, never from stamps: every past is a plain set.

`topic` takes each topic by itself, `across` all together. The order of a publisher's own events
across topics makes no causes, as in check/causal.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

# Whose past, and of which topic ("": of all).
Key = tuple[Hashable, str]


class Judge:
    """Told of everything an application does and gets, it says what was wrong."""

    def __init__(self) -> None:
        self.past: dict[tuple[str, str], frozenset[str]] = {}
        self.topics: dict[str, str] = {}
        # What a node has been handed, with all its causes; its own events, with theirs.
        self._handed: dict[Key, set[str]] = defaultdict(set)
        self._own: dict[Key, set[str]] = defaultdict(set)
        self._delivered: dict[Hashable, list[str]] = defaultdict(list)
        # Pasts of what a node has been handed: a cause among them would come too late.
        self._overtaken: dict[Key, set[str]] = defaultdict(set)
        self.late: dict[str, list[tuple[Hashable, str]]] = {"topic": [], "across": []}
        self.repeated: list[tuple[Hashable, str]] = []

    def published(self, node: Hashable, event: str, topic: str) -> None:
        self.topics[event] = topic
        own = self._own[node, topic]
        self.past[event, "topic"] = frozenset(self._handed[node, topic] | own)
        across = self._own[node, f"all {topic}"]
        self.past[event, "across"] = frozenset(self._handed[node, ""] | across)
        own |= {event, *self.past[event, "topic"]}
        across |= {event, *self.past[event, "across"]}

    def delivered(self, node: Hashable, event: str) -> None:
        topic = self.topics[event]
        if event in self._delivered[node]:
            self.repeated.append((node, event))
        self._delivered[node].append(event)
        for relation, part in (("topic", topic), ("across", "")):
            if event in self._overtaken[node, part]:
                self.late[relation].append((node, event))
            past = self.past[event, relation]
            self._overtaken[node, part] |= past
            self._handed[node, part] |= past | {event}

    def deliveries(self, node: Hashable) -> list[str]:
        return self._delivered[node]
