"""Total order across topics: subscribers agree on the order of any two events they both deliver.

Who does what: publisher.py asks, manager.py numbers, stage.py carries stamps up the topic order,
subscriber.py and engine.py deliver, ranking.py keeps busy topics high, link.py and service.py make
all of it survive losses and crashes. The rules are those of "Total notification order" (technical
report MIDLAB 9/2011) and its supplement, with their errors mended; files name the erratum (R1, S8,
...) where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from inorder.core.errors import TooLarge
from inorder.core.limits import STAMP_ENTRIES_MAX
from inorder.core.machine import Machine
from inorder.protocols.total.client import Client
from inorder.protocols.total.directory import RANKING, Directory
from inorder.protocols.total.options import Options, on_log, promises
from inorder.protocols.total.ranking import Ranking
from inorder.protocols.total.service import is_snapshot
from inorder.protocols.total.stage import Stage

__all__ = [
    "Client",
    "Directory",
    "Options",
    "Ranking",
    "Stage",
    "is_snapshot",
    "on_log",
    "promises",
    "services",
]


def services(topics: Sequence[str], options: Options) -> dict[str, Machine]:
    """The machines that must run besides the clients: stages, and the ranking if order moves."""
    if len(topics) > STAMP_ENTRIES_MAX:
        raise TooLarge("topics of one order", len(topics), STAMP_ENTRIES_MAX)
    directory = Directory(topics, options.topics_per_stage)
    machines: dict[str, Machine] = {
        name: Stage(name, directory, options) for name in directory.stages
    }
    if options.swaps == "on" or options.path == "forest":
        machines[RANKING] = Ranking(directory, options)
    return machines
