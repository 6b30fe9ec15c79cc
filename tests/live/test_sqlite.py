"""sqlite:/// keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

import inorder
from inorder.errors import Misuse
from tests.live.contract import BrokerContract, BusContract
from tests.live.contract_ends import EndsContract


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/bus.db"


class TestBroker(BrokerContract):
    def url(self, folder: Path) -> str:
        return url(folder)


class TestBus(BusContract):
    def url(self, folder: Path) -> str:
        return url(folder)


class TestEnds(EndsContract):
    def url(self, folder: Path) -> str:
        return url(folder)


@pytest.mark.parametrize(
    "bad",
    ["sqlite://x.db", "sqlite:///", "sqlite:///x?fast=1", "file.db", "redis://x", "memory://a/b"],
)
def test_urls_that_lead_nowhere(bad):
    with pytest.raises(Misuse):
        inorder.connect(bad)


def test_a_path_is_relative_to_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with inorder.connect_sync("sqlite:///here.db?durable=no") as bus:
        bus.publish("t", {})
    assert (tmp_path / "here.db").exists()
