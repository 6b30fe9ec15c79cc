"""Jobs: a described run from publications to a verdict, for `inorder run FILE.toml`.

A file with `[simulate]` runs on a simulated network (simulated.py). One with `[source]` reads a
broker with Spark: match, order, sink, audit, report (pipeline.py), and may bring real publisher and
subscriber processes along (live.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from inorder.cli.job.pipeline import PipelineJob
from inorder.cli.job.simulated import SimulatedJob
from inorder.core.errors import BadScenario

Job = SimulatedJob | PipelineJob


def job_of(table: dict[str, Any], seed: int | None = None, out: Path | None = None) -> Job:
    """The job a table describes."""
    if "source" in table:
        return PipelineJob(table, seed, out)
    if "simulate" in table:
        return SimulatedJob(table, seed, out)
    raise BadScenario("file", "has neither [source] nor [simulate]")


def load_job(path: Path, seed: int | None = None, out: Path | None = None) -> Job:
    """The job a file describes."""
    try:
        return job_of(msgspec.toml.decode(path.read_bytes()), seed, out)
    except OSError as error:
        raise BadScenario(str(path), f"cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadScenario(str(path), f"is not TOML: {error}") from None
