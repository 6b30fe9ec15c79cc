"""Who waits for which: an index that answers without looking at all that waits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inorder.core.pack import pack, unpacker
from inorder.core.waiting import Waiting

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 9), st.integers(0, 4)),
        st.tuples(st.just("release"), st.just(0), st.integers(0, 4)),
    ),
    max_size=60,
)


@given(STEPS)
def test_items_come_back_once_in_the_order_in_which_they_began_to_wait(steps):
    waiting: Waiting[tuple[str, int], int] = Waiting()
    plain: list[tuple[int, int]] = []
    for step, item, number in steps:
        if step == "wait":
            waiting.wait(item, ("t", number))
            plain.append((item, number))
        else:
            assert waiting.release(("t", number)) == [each for each, key in plain if key == number]
            plain = [pair for pair in plain if pair[1] != number]
        assert len(waiting) == len({key for _, key in plain})
        assert bool(waiting) == bool(plain)


@given(STEPS)
def test_an_index_comes_back_from_its_bytes(steps):
    waiting: Waiting[tuple[str, int], int] = Waiting()
    for step, item, number in steps:
        if step == "wait":
            waiting.wait(item, ("t", number))
        else:
            waiting.release(("t", number))
    packed = pack(waiting.packed())
    rows = unpacker(list[tuple[tuple[str, int], list[int]]])(packed)
    again: Waiting[tuple[str, int], int] = Waiting.unpacked(rows)
    assert pack(again.packed()) == packed
    again.wait(1, ("t", 0))
    assert pack(waiting.packed()) == packed
    copy: Waiting[tuple[str, int], int] = Waiting.unpacked(waiting.packed())
    for number in range(5):
        copy.wait(1, ("t", number))
    assert pack(waiting.packed()) == packed
    for number in range(5):
        assert again.release(("t", number))[: 0 if number else None] == (
            [] if number else [*waiting.release(("t", 0)), 1]
        )


def test_equal_indexes_have_equal_bytes_whatever_came_first():
    one: Waiting[int, str] = Waiting()
    other: Waiting[int, str] = Waiting()
    for key in (1, 2, 3):
        one.wait("x", key)
        other.wait("x", 4 - key)
    assert pack(one.packed()) == pack(other.packed())


class Counted:
    """A key that counts how often it is looked at."""

    looks = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        Counted.looks += 1
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return isinstance(other, Counted) and self.number == other.number


def test_a_release_looks_at_one_key_however_many_wait():
    looks = []
    for size in (10, 10_000):
        waiting: Waiting[Counted, int] = Waiting()
        for number in range(size):
            waiting.wait(number, Counted(number))
        Counted.looks = 0
        assert waiting.release(Counted(7)) == [7]
        looks.append(Counted.looks)
    assert looks[0] == looks[1] <= 3
