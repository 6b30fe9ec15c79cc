"""Every test of the bus runs on every broker that needs no server."""

from __future__ import annotations

from pathlib import Path

import pytest

BROKERS = ("memory", "sqlite")


@pytest.fixture(params=BROKERS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of the test's own."""
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return f"sqlite:///{tmp_path}/bus.db"
