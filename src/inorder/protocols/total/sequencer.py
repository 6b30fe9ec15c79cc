"""A topic manager for events that nobody stamped: it numbers rows as they arrive, many at once.

Rule 1: it is the stage that a log has (one home to all topics, everything sequenced), asked by one
        publisher. Its state is the stage's.
Rule 2: rows cut into calls anywhere get the same stamps.

Theory. A stage that is home to all topics ends every round before it begins the next, so a stamp is
simply the counters of all topics known so far, the own one included. Between the rows of one call
nobody else can see these counters. So each topic asks once for all its rows, which moves the
counters to where they would be, and the stamps of the rows between are counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from inorder.core.effect import Diffuse
from inorder.core.event import Event
from inorder.core.limits import WAITING_PUBLICATIONS_MAX
from inorder.protocols.total.directory import OPEN_STAGE, Directory
from inorder.protocols.total.messages import Create, Events
from inorder.protocols.total.options import Options, on_log
from inorder.protocols.total.stage import Stage

if TYPE_CHECKING:
    import numpy as np

PUBLISHER = "sequencer"


class Sequencer:
    """The machine of all topics of a log."""

    def __init__(self) -> None:
        options = replace(on_log(Options()), links="trusted")
        self._stage = Stage(OPEN_STAGE, Directory((), options.topics_per_stage), options)

    def counts(self) -> dict[str, int]:
        """Events numbered so far, by topic, in the order in which topics came up."""
        return {topic: each.count for topic, each in self._stage.s.managers.items()}

    def sequence(
        self, names: Sequence[str], codes: np.ndarray[Any, Any]
    ) -> list[tuple[int, int, list[str], Any]]:
        """Stamp rows, given by the place of each row's topic among `names`.

        Runs of rows whose stamps name the same topics: first and last row (exclusive), the topics,
        and a table of entries with a line for each topic.
        """
        import numpy as np

        before = self.counts()
        appear: dict[str, int] = {}
        for code in np.unique(codes).tolist():
            appear[names[code]] = int(np.argmax(codes == code))
        new = sorted((topic for topic in appear if topic not in before), key=appear.__getitem__)
        lines = []
        for topic in (*before, *new):
            mine = codes == names.index(topic) if topic in appear else np.zeros(len(codes), bool)
            lines.append(before.get(topic, 0) + np.cumsum(mine))
        for topic in sorted(appear, key=appear.__getitem__):
            self._ask(topic, int((codes == names.index(topic)).sum()))
        edges = [appear[topic] for topic in new]
        runs = []
        known = [*before]
        for place, (low, high) in enumerate(
            zip([0, *edges], [*edges, len(codes)], strict=True), len(known)
        ):
            if low < high:
                runs.append(
                    (low, high, [*known], np.array([each[low:high] for each in lines[:place]]))
                )
            known = [*known, *new[place - len(before) : place - len(before) + 1]]
        return runs

    def _ask(self, topic: str, count: int) -> None:
        """Have the stage number so many events of a topic."""
        while count:
            some = min(count, WAITING_PUBLICATIONS_MAX)
            done = self.counts().get(topic, 0)
            events = tuple([Event(PUBLISHER, done + n, topic) for n in range(1, some + 1)])
            effects = self._stage.receive(PUBLISHER, Create(topic, events), 0.0)
            shown = [each.message for each in effects if isinstance(each, Diffuse)]
            assert len(shown) == 1, "a stage that is home to all topics ends every round at once"
            assert isinstance(shown[0], Events)
            assert shown[0].first == done + 1, "numbers have no holes"
            count -= some

    def snapshot(self) -> bytes:
        return self._stage.snapshot()

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        sequencer = cls()
        sequencer._stage = Stage.restore(snapshot)
        return sequencer
