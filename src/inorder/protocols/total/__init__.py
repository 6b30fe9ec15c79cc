"""Total order across topics: subscribers agree on the order of any two events they both deliver.

Who does what: publisher.py asks, manager.py numbers, stage.py carries stamps up the topic order,
subscriber.py and engine.py deliver, ranking.py keeps busy topics high (epoch.py is a stage's part
in it), ../session and service.py make all of it survive losses and crashes. The rules are those of
"Total notification order" (technical report MIDLAB 9/2011) and its supplement, with their errors
mended; files name the erratum (R1, S8, ...) where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from inorder.core.errors import TooLarge
from inorder.core.limits import STAMP_ENTRIES_MAX
from inorder.core.machine import Builder
from inorder.protocols.total.client import Client
from inorder.protocols.total.directory import RANKING, Directory, directory_of
from inorder.protocols.total.options import Options, promises
from inorder.protocols.total.ranking import Ranking
from inorder.protocols.total.stage import Stage

__all__ = [
    "Client",
    "Directory",
    "Options",
    "Ranking",
    "Stage",
    "promises",
    "services",
]


def services(topics: Sequence[str], options: Options) -> dict[str, Builder]:
    """The machines that must run besides the clients: stages, and the ranking if order moves.

    A stage lives where its first topic does, on networks that care.
    """
    if len(topics) > STAMP_ENTRIES_MAX:
        raise TooLarge("topics of one order", len(topics), STAMP_ENTRIES_MAX)
    directory = directory_of(tuple(topics), options.topics_per_stage)
    machines = {
        name: Builder(partial(Stage, name, directory, options), next(iter(homes), name), homes)
        for name, homes in ((name, directory.topics_at(name)) for name in directory.stages)
    }
    if options.ranked:
        machines[RANKING] = Builder(partial(Ranking, directory, options), RANKING)
    return machines
