"""One Spark session for all tests of the pipeline: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from inorder.pipeline.session import session

    running = session("local[2]", {"spark.driver.memory": "1g"})
    yield running
    running.stop()
