"""Which process numbers which topic: known to everybody from the start, never changed.

The *order* of topics may change (ranking.py), their homes do not. A stage is a process that is
home to several topics, contiguous in the first order, so that hops between them cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from inorder.core.errors import Misuse, UnknownName

RANKING = "ranking"


class Directory:
    """The homes of topics.

    >>> directory = Directory(["a", "b", "c"], topics_per_stage=2)
    >>> directory.home("c"), directory.topics_at("stage1")
    ('stage2', ('a', 'b'))
    """

    def __init__(self, topics: Sequence[str], topics_per_stage: int = 1) -> None:
        if len({*topics}) != len(topics):
            raise Misuse("a topic is named twice")
        self.topics = tuple(topics)
        self._at: dict[str, tuple[str, ...]] = {}
        for start in range(0, len(topics), topics_per_stage):
            name = f"stage{start // topics_per_stage + 1}"
            self._at[name] = self.topics[start : start + topics_per_stage]
        self._home = {topic: name for name, some in self._at.items() for topic in some}
        self._rank = {topic: rank for rank, topic in enumerate(self.topics)}

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(self._at)

    def __contains__(self, topic: str) -> bool:
        return topic in self._home

    def lowest(self, topics: Iterable[str]) -> str:
        """The one of lowest rank in the first order."""
        return max(topics, key=self._rank.__getitem__)

    def is_service(self, name: str) -> bool:
        return name in self._at or name == RANKING

    def home(self, topic: str) -> str:
        try:
            return self._home[topic]
        except KeyError:
            raise UnknownName("topic", topic, list(self.topics[:12])) from None

    def topics_at(self, stage: str) -> tuple[str, ...]:
        return self._at[stage]


@lru_cache(maxsize=16)
def directory_of(topics: tuple[str, ...], topics_per_stage: int) -> Directory:
    """One directory for all who would build an equal one: every machine of a world needs it."""
    return Directory(topics, topics_per_stage)
