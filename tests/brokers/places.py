"""Where the contract is held: a line for each broker."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from inorder.brokers import broker_at
from tests.brokers.contract import Place
from tests.brokers.double import Double, Server

_numbers = itertools.count()


def _at(url: str) -> Place:
    return Place(lambda: broker_at(url, 10.0))


def _double(first: int, partitions: int) -> Place:
    server = Server(f"double{next(_numbers)}", partitions, first, seed=first + partitions)
    place = Place(lambda: Double(server))
    place.coordinates = False
    return place


PLACES: dict[str, Callable[[Path], Place]] = {
    "memory": lambda folder: _at(f"memory://contract{next(_numbers)}"),
    "file": lambda folder: _at(f"sqlite:///{folder}/log.db"),
    "file, durable=no": lambda folder: _at(f"sqlite:///{folder}/log.db?durable=no"),
    "double from 0": lambda folder: _double(0, 1),
    "double from 1": lambda folder: _double(1, 3),
    "double from 2^40": lambda folder: _double(2**40, 2),
}
