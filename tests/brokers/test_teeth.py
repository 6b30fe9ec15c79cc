"""The contract finds out every adapter of broken.py, and every check finds out one."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.brokers import contract, contract_ends, facts
from tests.brokers.broken import BROKEN
from tests.brokers.contract import Place
from tests.brokers.hands import run

assert contract_ends.__doc__  # it adds its checks to those of contract.py
CHECKS = {**contract.CHECKS, **facts.CHECKS}
_numbers = itertools.count()


def job(made, check):
    name = f"broken{next(_numbers)}"
    return CHECKS[check](Place(lambda: made(name, {}, 10.0)))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_adapter_is_found_out(name):
    made, check = BROKEN[name]

    async def tried() -> bool:
        # One that waits for ever is found out by its silence.
        task = asyncio.ensure_future(job(made, check))
        done, _ = await asyncio.wait([task], timeout=2)
        if not done:
            task.cancel()
            return True
        return task.exception() is not None

    assert run(tried)


def test_every_check_finds_one_out():
    assert {check for _, check in BROKEN.values()} == {*CHECKS}
