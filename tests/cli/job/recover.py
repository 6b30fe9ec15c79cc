"""A program for the recovery tests: the job's stream over a file, and a way to die in the middle.

python recover.py FOLDER [BATCH]: reads FOLDER/shop.db, writes FOLDER/NAME; with a batch it kills
itself with SIGKILL after that batch was written and before Spark has noted it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from inorder.cli.job.stages import Stream, wait_for
from inorder.cli.job.tables import Member, RunTable, SinkTable
from inorder.guarantee.registry import guarantee
from inorder.pipeline.session import session
from tests.cluster.cluster import CONF

TOPICS = ["bonds", "metals", "rates"]
MEMBERS = [
    Member("all", TOPICS, None, {}),
    *(
        Member(f"over{floor}", TOPICS[:2], "amount > :floor", {"floor": floor})
        for floor in range(0, 100, 10)
    ),
]


def stream(folder: Path, out: Path, batch_rows: int) -> Stream:
    options = {
        "url": f"sqlite:///{folder}/shop.db",
        "subscribe": ",".join(TOPICS),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(batch_rows),
    }
    run = RunTable(lanes=2)
    return Stream(options, MEMBERS, guarantee("total"), {}, SinkTable(), run, out)


class Dying(Stream):
    """Writes a batch, and is gone."""

    last: int

    def _save(self):
        save = super()._save()

        def save_and_die(frame, batch):
            save(frame, batch)
            if batch == self.last:
                os.kill(os.getpid(), signal.SIGKILL)

        return save_and_die


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    job = stream(folder, out, 200)
    if len(sys.argv) > 3:
        job.__class__ = Dying
        job.last = int(sys.argv[3])
    # Under spark-submit the master is given already.
    submitted = "SPARK_SUBMIT_OPTS" in os.environ
    spark = session(None) if submitted else session("local[2]", CONF)
    wait_for(job.start(spark), 0, lambda share: None)


if __name__ == "__main__":
    main()
