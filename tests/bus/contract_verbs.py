"""What every broker must do, verb by verb (live/broker.py). Used through contract.py."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from inorder.bus.store import broker_at
from inorder.bus.store.broker import Broker
from inorder.bus.store.rows import Append, Mail, Record, Turn
from inorder.core.errors import Replaced
from tests.bus.judge import run, until


class BrokerContract:
    """A subclass gives `url`, from a folder of its own."""

    def url(self, folder: Path) -> str:
        raise NotImplementedError

    def between_two(self, folder: Path, job: Any) -> None:
        """Run a job with two connections to one place."""

        async def main() -> None:
            url = self.url(folder)
            brokers = [broker_at(url, 2.0), broker_at(url, 2.0)]
            rings = [0, 0]

            def ringing(number: int) -> Any:
                def ring() -> None:
                    rings[number] += 1

                return ring

            for number, broker in enumerate(brokers):
                await broker.open(f"holder{number}", ringing(number))
            try:
                await job(*brokers, rings)
            finally:
                for broker in brokers:
                    await broker.close()

        run(main)

    def test_the_first_use_of_a_topic_decides_its_guarantee(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            assert await one.declare("t", "total") == "total"
            assert await two.declare("t", "none") == "total"
            (row,) = await two.topics()
            assert (row.topic, row.guarantee, row.first, row.next) == ("t", "total", 0, 0)

        self.between_two(tmp_path, job)

    def test_rows_have_offsets_without_holes_and_ids_in_the_order_of_writing(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            for topic in "ab":
                await one.declare(topic, "none")
            appends = [Append("b", b"1", 2), Append("a", b"2", 1), Append("b", b"3", 3)]
            last = await one.write(Turn(appends=appends))
            later = await two.write(Turn(appends=[Append("a", b"4", 1)]))
            assert last < later
            rows, reached = await two.log(["a", "b"], 0, later)
            assert reached == later
            assert [row.message for row in rows] == [b"1", b"2", b"3", b"4"]
            assert [row.offset for row in rows if row.topic == "b"] == [0, 2]
            assert [row.offset for row in rows if row.topic == "a"] == [0, 1]
            assert {row.topic: row.next for row in await one.topics()} == {"a": 2, "b": 5}
            only, _ = await one.log(["a"], last, later)
            assert [row.message for row in only] == [b"4"]
            ids = {row.offset: row.id for row in rows if row.topic == "b"}
            assert [await one.id_of("b", n) for n in range(6)] == [
                ids[0], ids[0], ids[2], ids[2], ids[2], None,
            ]  # fmt: skip
            assert await one.id_of("nobody", 0) is None
            assert await one.write(Turn(taken=[17])) == 0

        self.between_two(tmp_path, job)

    def test_mail_waits_until_the_turn_that_takes_it(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            await one.write(Turn(mails=[Mail("m", "s", b"1"), Mail("n", "s", b"2")]))
            await one.write(Turn(mails=[Mail("m", "s", b"3")]))
            found, _ = await two.news(["m", "other"])
            assert [(mail.source, mail.message) for mail in found] == [("s", b"1"), ("s", b"3")]
            again, _ = await two.news(["m"])
            assert again == found
            await two.write(Turn(taken=[mail.id for mail in found]))
            assert (await one.news(["m"]))[0] == []
            assert [mail.message for mail in (await one.news(["n"]))[0]] == [b"2"]

        self.between_two(tmp_path, job)

    def test_mail_for_nobody_is_dropped_and_mail_for_the_living_is_not(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            assert await one.claim("alive")
            names = ["alive", "dead", "service"]
            await one.write(Turn(mails=[Mail(name, "s", b"x") for name in names]))
            await two.drop_mail(["service"])
            found, _ = await two.news(names)
            assert [mail.target for mail in found] == ["alive", "service"]

        self.between_two(tmp_path, job)

    def test_records_add_up_until_a_whole_one(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            token = await one.claim("m") or 0
            for record, whole in ((b"1", False), (b"2", False), (b"3", True), (b"4", False)):
                made = Record("m", token, record, whole)
                await one.write(Turn(records=[made], owned={"m": token}))
            assert await two.records("m") == [b"3", b"4"]
            assert await two.records("n") == []

        self.between_two(tmp_path, job)

    def test_a_machine_has_one_owner_and_a_former_one_writes_nothing(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            await one.declare("t", "none")
            first = await one.claim("m")
            assert first is not None
            assert await two.claim("m") is None
            assert await two.owner_lives("m")
            # To oneself one is nobody else.
            assert not await one.owner_lives("m")
            await one.release({"m": first})
            assert not await two.owner_lives("m")
            second = await two.claim("m")
            assert second is not None
            assert second > first
            append = Append("t", b"x", 1)
            stale = Turn([append], [Mail("n", "m", b"x")], [Record("m", first, b"x")])
            stale.owned = {"m": first}
            with pytest.raises(Replaced) as caught:
                await one.write(stale)
            assert (caught.value.node, caught.value.token) == ("m", first)
            assert (await two.log(["t"], 0, 10))[0] == []
            assert (await two.news(["n"]))[0] == []
            assert await two.records("m") == []
            assert await one.renew({"m": first}) == ["m"]
            assert await two.renew({"m": second}) == []
            # A release by the former owner changes nothing.
            await one.release({"m": first})
            assert await one.owner_lives("m")

        self.between_two(tmp_path, job)

    def test_the_same_connection_may_claim_again_and_gets_a_larger_token(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            first = await one.claim("m")
            second = await one.claim("m")
            assert first is not None
            assert second is not None
            assert second > first

        self.between_two(tmp_path, job)

    def test_a_write_rings_at_the_others(self, tmp_path):
        async def job(one: Broker, two: Broker, rings: list[int]) -> None:
            await asyncio.sleep(0.05)
            before = rings[1]
            await one.write(Turn(mails=[Mail("m", "s", b"1")]))
            await until(lambda: rings[1] > before, 2.0)

        self.between_two(tmp_path, job)
