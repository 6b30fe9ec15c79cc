"""Who may go on after others have died: only one of several parts that do not hear of each other.

Of eight peers 6 and 7 are cut off. Six of the eight that lived together declare two dead, and go
on. The two declare six dead, and stop: whatever they accepted the others would never get. When the
two hear of the six again, they begin other lives. Of the six three more are cut off: three of six
may go on if the lowest of the six is among them.

Rule 1: counted are those who lived together when the last flush ended (`last`), in these lives.
        More than half of them have to live, or half with the lowest number of all. Who is in
        another life now is proved dead, and does not count.
Rule 2: one that was there decides for all who have come since, and nobody is in two parts.
Rule 3: if nobody has been there, after a crash of all, more than half of all peers are needed.

Theory. This is dynamic voting: parts that could both go on would have somebody in common. Who has
said that others are dead is in no part with them in that life, so an agreement that some know of
and others do not yet does no harm: a majority of the older view lies within the newer one.
"""

from __future__ import annotations

from collections.abc import Iterable

from inorder.protocols.cube.messages import View

FIRST = 1


def incarnations(view: View, count: int) -> list[int]:
    """By peer the life that it lives in, 0 if it is dead.

    >>> incarnations(View(((1, 1), (2, 1)), ((2, 2),)), 4)
    [1, 0, 2, 1]
    """
    lives = [FIRST] * count
    for peer, _ in view.over:
        lives[peer] = 0
    for peer, life in view.lives:
        lives[peer] = life
    return lives


def is_primary(last: View, now: View, count: int) -> bool:
    """Whether enough of those who lived together do so now.

    >>> is_primary(View(), View(((2, 1),)), 4), is_primary(View(), View(((0, 1), (2, 1))), 4)
    (True, False)
    """
    before, present = incarnations(last, count), incarnations(now, count)
    over = dict(now.over)
    there: list[bool] = []
    for peer, life in enumerate(before):
        proved_dead = max(over.get(peer, 0), present[peer]) > life
        if life and not proved_dead:
            there.append(present[peer] == life)
    half = 2 * sum(there)
    return half > len(there) or (half == len(there) and there[:1] == [True])


def may_go_on(lasts: Iterable[View | None], now: View, count: int) -> bool:
    """Whether those who say this may go on."""
    there = [last for last in lasts if last is not None]
    if there:
        return any(is_primary(last, now, count) for last in there)
    return 2 * sum(life > 0 for life in incarnations(now, count)) > count
