"""sqlite:/// keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

import inorder
from inorder.bus.store.sqlite.file import File
from inorder.core.errors import Misuse, TooLarge
from tests.bus.contract import BrokerContract, BusContract
from tests.bus.contract_ends import EndsContract


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


def test_a_file_has_room_for_so_many_topics(tmp_path, monkeypatch):
    monkeypatch.setattr("inorder.bus.store.room.TOPICS_PER_BROKER_MAX", 2)
    file = File(tmp_path / "f.db")
    for topic in ("a", "b", "a"):
        assert file.declare(topic, "none") == "none"
    with pytest.raises(TooLarge):
        file.declare("c", "none")
    file.close()
