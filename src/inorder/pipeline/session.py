"""A Spark session without surprises: Java checked, our own interpreter, a quiet terminal."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from inorder.core.errors import MissingPart, Misuse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSIONS = (17, 21)

LOCAL = "local[*]"
LOOPBACK = ("spark://127.", "spark://localhost:", "spark://[::1]")

_LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

DEFAULTS = {
    "spark.driver.memory": "2g",
    # Batches are streamed on to Python as they come, so the JVM never holds the whole result.
    "spark.driver.maxResultSize": "0",
    # Results of this size go straight to the driver: through the block manager they get lost when
    # the heap is nearly full ("TaskResultLost", seen at 140 MB a task).
    "spark.task.maxDirectResultSize": "1g",
    "spark.rpc.message.maxSize": "1024",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    master: str | None = None, conf: Mapping[str, str] | None = None, quiet: bool = True
) -> SparkSession:
    """The running session, or a new one; `conf` overrides our settings.

    Without a master Spark runs here, on all cores; under spark-submit, where that says.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingPart("pyspark", "spark") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    check_java()
    submitted = _submitted()
    master = master or submitted.get("spark.master") or LOCAL
    settings = _settings(master, {**submitted, **(conf or {})})
    _choose_interpreter(master, settings)
    builder = SparkSession.builder.appName("inorder").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _stderr_aside(quiet) as said:
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            raise Misuse(f"Spark did not start on {master!r}: {_reason(said, error)}") from None
    if quiet:
        _silence(spark)
    return spark


def check_java() -> int:
    """The version of the Java that Spark will use; a clear sentence when it will not do."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    wanted = " or ".join(map(str, JAVA_VERSIONS))
    if not java or not Path(java).exists():
        where = f"JAVA_HOME={home} holds none" if home else "none is on the PATH"
        raise Misuse(f"Spark needs Java {wanted}, and {where}")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
        found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    except (OSError, subprocess.TimeoutExpired):
        found = None
    if not found:
        raise Misuse(f"Spark needs Java {wanted}, and {java} does not say its version")
    version = int(found[1])
    if version not in JAVA_VERSIONS:
        raise Misuse(f"Spark needs Java {wanted}, and {java} is Java {version}: set JAVA_HOME")
    return version


def cores(spark: SparkSession) -> int:
    """Tasks that may run at once."""
    return max(1, spark.sparkContext.defaultParallelism)


def _settings(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    settings = dict(DEFAULTS)
    if master.startswith("local"):
        # One machine: many small partitions only cost.
        settings["spark.sql.shuffle.partitions"] = "4"
    if master.startswith(("local", *LOOPBACK)):
        # The name of this machine may not resolve, and nobody else has to reach it.
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings.update(conf)
    options = settings.get("spark.driver.extraJavaOptions", "")
    if "log4j2.configurationFile" not in options:
        ours = f"-Dlog4j2.configurationFile=file:{_LOG_CONFIGURATION}"
        settings["spark.driver.extraJavaOptions"] = f"{options} {ours}".strip()
    return settings


def _submitted() -> dict[str, str]:
    """The settings spark-submit started us with; nothing if it did not."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _choose_interpreter(master: str, settings: Mapping[str, str]) -> None:
    """Workers must import what we import: they run our interpreter, or the one somebody chose for
    another machine."""
    chosen = settings.get("spark.pyspark.python")
    if not master.startswith("local"):
        chosen = chosen or os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = chosen or sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _silence(spark: SparkSession) -> None:
    spark.sparkContext.setLogLevel("FATAL")
    # PySpark logs the Java stack trace of every failed query as a line of JSON.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)


@contextmanager
def _stderr_aside(quiet: bool) -> Iterator[IO[bytes] | None]:
    """Give a JVM started inside a file as its standard error: it greets with several warnings."""
    if not quiet:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def _reason(said: IO[bytes] | None, error: Exception) -> str:
    """The last thing the JVM said, else the first line of the error."""
    lines: list[str] = []
    if said is not None:
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not line.startswith(("\t", "WARNING"))]
    return (told or str(error).splitlines() or [type(error).__name__])[-1].strip()
