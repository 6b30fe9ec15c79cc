"""Parameters as fields: one assignment, one update; several in a block, still one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from inorder.bus.parameters import Parameters
from inorder.core.errors import Misuse, PredicateError


class StockMonitor(Parameters, topics=("quotes",), where="firm = :firm AND price < :limit"):
    firm: str
    limit: float = 10.0


class Watch(Parameters, where="price BETWEEN :lo AND :hi AND firm IN :firms"):
    lo: int = 0
    hi: int = 10
    firms: list[str] = ["IBM"]


def watched() -> tuple[Watch, list[dict[str, Any]]]:
    watch, sent = Watch(), []
    watch.attach(sent.append)
    return watch, sent


def test_an_assignment_is_an_update():
    watch, sent = watched()
    watch.hi = 20
    assert sent == [{"hi": 20}]
    assert watch.hi == 20
    assert watch.values == {"lo": 0, "hi": 20, "firms": ("IBM",)}


def test_several_in_a_block_are_one_update():
    watch, sent = watched()
    with watch.together():
        watch.lo, watch.hi = 20, 30
        assert watch.lo == 20
        with watch.together():
            watch.firms = ["Sun", "IBM"]
    assert sent == [{"lo": 20, "hi": 30, "firms": ("IBM", "Sun")}]


def test_what_does_not_change_is_not_sent():
    watch, sent = watched()
    watch.hi = 10
    with watch.together():
        watch.hi = 11
        watch.hi = 10
    assert sent == []


def test_a_wrong_value_changes_nothing():
    watch, sent = watched()
    with pytest.raises(PredicateError, match=":hi"):
        watch.hi = "ten"

    def wrong_in_a_block() -> None:
        with watch.together():
            watch.lo = 5
            watch.hi = float("nan")

    with pytest.raises(PredicateError, match=":hi"):
        wrong_in_a_block()
    assert (watch.lo, watch.hi, sent) == (0, 10, [])


def test_a_block_that_fails_changes_nothing():
    watch, sent = watched()

    def fail_in_a_block() -> None:
        with watch.together():
            watch.lo = 5
            watch.hi = 1 // 0

    with pytest.raises(ZeroDivisionError):
        fail_in_a_block()
    assert (watch.lo, watch.values["lo"], sent) == (0, 0, [])
    watch.lo = 6
    assert sent == [{"lo": 6}]


def test_if_sending_fails_the_fields_keep_their_values():
    watch = Watch()

    def refuse(values: dict[str, Any]) -> None:
        raise OSError("gone")

    watch.attach(refuse)
    with pytest.raises(OSError, match="gone"):
        watch.hi = 11
    with pytest.raises(OSError, match="gone"), watch.together():
        watch.hi = 12
    assert (watch.hi, watch.values["hi"]) == (10, 10)


def test_a_name_that_is_no_parameter_is_refused():
    monitor = StockMonitor(firm="IBM")
    with pytest.raises(PredicateError, match="limt"):
        monitor.limt = 12.5
    with pytest.raises(PredicateError, match="colour"):
        StockMonitor(firm="IBM", colour="red")
    with pytest.raises(PredicateError, match=":firm"):
        StockMonitor()


def test_fields_and_parameters_must_agree():
    with pytest.raises(Misuse, match="no field for :limit"):

        class Forgetful(Parameters, where="price < :limit"):
            pass

    with pytest.raises(Misuse, match=r"Idle\.size: no such parameter"):

        class Idle(Parameters, where="price < :limit"):
            limit: float
            size: int = 1


def test_threads_do_not_mix_their_updates():
    """Two fields that always move together are never seen apart."""
    watch, sent = watched()

    def move(start: int) -> None:
        for turn in range(start, start + 200):
            with watch.together():
                watch.lo = turn
                watch.hi = turn + 1000

    threads = [threading.Thread(target=move, args=(start,)) for start in (1000, 2000, 3000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sent) == 600
    assert all(update["hi"] == update["lo"] + 1000 for update in sent)
