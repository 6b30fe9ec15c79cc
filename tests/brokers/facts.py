"""The contract of a coordinator: every sentence of logs/coordinator.py, as a check."""

from __future__ import annotations

import asyncio

import pytest

from inorder.core.errors import Misuse, Refused, Replaced
from tests.brokers.contract import Check, Place

CHECKS: dict[str, Check] = {}


def check(made: Check) -> Check:
    CHECKS[made.__name__] = made
    return made


@check
async def the_value_that_stands_is_the_answer(place: Place) -> None:
    """Rules 1 and 2."""
    async with place.connect() as one, place.connect() as other:
        assert await one.final("epoch/p") == 0
        assert await one.read_from("epoch/p", 1) == []
        assert await one.append_if("epoch/p", 1, b"mine") == b"mine"
        assert await other.append_if("epoch/p", 1, b"yours") == b"mine"
        assert await one.append_if("epoch/p", 1, b"mine") == b"mine"
        for wrong in (3, 0, -1):
            with pytest.raises(Refused):
                await one.append_if("epoch/p", wrong, b"hole")
        assert await other.append_if("epoch/p", 2, b"") == b""
        assert await one.final("epoch/p") == await other.final("epoch/p") == 2
        assert await one.read_from("epoch/p", 0) == [(1, b"mine"), (2, b"")]
        assert await one.read_from("epoch/p", 2) == [(2, b"")]
        assert await one.read_from("epoch/p", 3) == []
        assert await one.append_if("epoch/q", 1, b"another") == b"another"


@check
async def one_of_many_wins(place: Place) -> None:
    async with place.connect() as one, place.connect() as other:
        for number in range(1, 11):
            mine = [b"%d" % n for n in range(6)]
            heard = await asyncio.gather(
                *(
                    (one, other)[n % 2].append_if("race", number, value)
                    for n, value in enumerate(mine)
                )
            )
            assert len({*heard}) == 1
            assert await one.read_from("race", number) == [(number, heard[0])]


@check
async def what_is_forgotten_is_not_given_again(place: Place) -> None:
    async with place.connect() as one, place.connect() as other:
        for number in range(1, 6):
            await one.append_if("s", number, b"%d" % number)
        await one.forget("s", 3)
        assert await other.read_from("s", 1) == [(3, b"3"), (4, b"4"), (5, b"5")]
        assert await other.final("s") == 5
        with pytest.raises(Refused, match="forgotten"):
            await other.append_if("s", 2, b"again")
        await one.forget("s", 3)
        await one.forget("s", 100)
        assert await other.read_from("s", 1) == []
        assert await other.final("s") == 5
        assert await other.keys("") == ["s"]
        for forgotten in (3, 5):
            with pytest.raises(Refused, match="forgotten"):
                await other.append_if("s", forgotten, b"again")
        assert await other.append_if("s", 6, b"6") == b"6"
        assert await other.read_from("s", 1) == [(6, b"6")]
        await one.forget("nothing", 5)
        assert await one.final("nothing") == 0


@check
async def a_value_is_overwritten_by_its_epoch(place: Place) -> None:
    """Rule 3."""
    async with place.connect() as one, place.connect() as other:
        assert await one.get("position/d") is None
        await one.put("position/d", b"a", 1)
        assert await other.get("position/d") == (b"a", 1)
        await other.put("position/d", b"b", 1)
        await other.put("position/d", b"c", 3, durable=False)
        assert await one.get("position/d") == (b"c", 3)
        with pytest.raises(Replaced):
            await one.put("position/d", b"old", 2)
        assert await one.get("position/d") == (b"c", 3)


@check
async def keys_and_drop(place: Place) -> None:
    async with place.connect() as one, place.connect() as other:
        for key in ("position/b", "position/a", "posit"):
            await one.put(key, b"", 1)
        await one.append_if("position/c", 1, b"x")
        assert await other.keys("position/") == ["position/a", "position/b", "position/c"]
        assert (await other.keys(""))[0] == "posit"
        assert await other.keys("none") == []
        for key in ("position/a", "position/c", "nothing"):
            await other.drop(key)
        assert await one.keys("position/") == ["position/b"]
        assert await one.get("position/a") is None
        assert await one.final("position/c") == 0


@check
async def facts_outlive_connections(place: Place) -> None:
    async with place.connect() as broker:
        shares = broker.traits.shares
        await broker.append_if("s", 1, b"1")
        await broker.put("v", b"v", 7)
    async with place.connect() as broker:
        assert await broker.read_from("s", 1) == ([(1, b"1")] if shares else [])
        assert await broker.get("v") == ((b"v", 7) if shares else None)
    with pytest.raises(Refused):
        await broker.get("v")
    with pytest.raises((Refused, Misuse)):
        await broker.put("v", b"w", 8)
