"""A driver that dies between the sink's write and Spark's commit. Run as a script.

killed.py SOURCE SINK CHECKPOINT BATCH: the batch at whose commit everything is killed; -1 for none.
"""

from __future__ import annotations

import os
import signal
import sys

from inorder.pipeline.session import session
from inorder.pipeline.sink import StreamWriter
from inorder.pipeline.source import DefaultSource
from tests.cluster.cluster import CONF


def main(source: str, target: str, checkpoint: str, fatal: int) -> None:
    spark = session("local[2]", CONF)
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    victims = [jvm, os.getpid()]

    class Writer(StreamWriter):
        def commit(self, messages, batchId):
            if batchId == fatal:
                for victim in victims:
                    os.kill(victim, signal.SIGKILL)
            super().commit(messages, batchId)

    class Mortal(DefaultSource):
        @classmethod
        def name(cls):
            return "mortal"

        def streamWriter(self, schema, overwrite):
            return Writer(super().streamWriter(schema, overwrite)._plan)

    spark.dataSource.register(Mortal)
    events = (
        spark.readStream.format("inorder").option("url", f"sqlite:///{source}")
        .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 40)
        .option("minPartitions", 2).load()
    )  # fmt: skip
    query = (
        events.writeStream.format("mortal").option("url", f"sqlite:///{target}")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
