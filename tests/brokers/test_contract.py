"""Every broker keeps the contract: a line each in places.py."""

from __future__ import annotations

import pytest

from tests.brokers import contract, contract_ends, facts
from tests.brokers.hands import run
from tests.brokers.places import PLACES

assert contract_ends.__doc__  # it adds its checks to those of contract.py


@pytest.mark.parametrize("check", contract.CHECKS)
@pytest.mark.parametrize("place", PLACES)
def test_broker(place, check, tmp_path):
    run(lambda: contract.CHECKS[check](PLACES[place](tmp_path)))


@pytest.mark.parametrize("check", facts.CHECKS)
@pytest.mark.parametrize("place", [name for name in PLACES if "double" not in name])
def test_coordinator(place, check, tmp_path):
    run(lambda: facts.CHECKS[check](PLACES[place](tmp_path)))
