"""What the living agree on about a dead peer's publications: pure functions of what they say.

Peer 4 is dead. Peer 0 has its numbers 1 to 3, peer 1 has 1, 2 and 4, peer 2 has 1 to 3. Somebody
alive has each of 1 to 4: these remain, and peer 1 sends 4 to the others, peer 0 sends 3 to peer 1.
Had peer 1 died, too, 4 would be lost.

Rule 1: what somebody alive has remains; all else is lost.
Rule 2: where somebody has settled numbers already, that word holds: what it says is lost is lost,
        even if somebody has it by now who has it from nobody's list.
Rule 3: a number is sent to those that lack it by the lowest of those that have it, so by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inorder.protocols.cube.messages import Row, Runs
from inorder.protocols.cube.runs import holds, union, within, without

# By peer, its row about one dead peer on one topic.
Rows = Mapping[int, Row]


def remaining(rows: Rows) -> Runs:
    """The numbers that somebody alive has, as far as that is not settled otherwise."""
    lost: list[tuple[int, int]] = []
    for row in rows.values():
        if row.start and row.settled >= row.start:
            settled = ((row.start, row.settled),)
            lost += without(settled, row.runs)
    return without(union(run for row in rows.values() for run in row.runs), union(lost))


def lacking(row: Row, remains: Runs) -> Runs:
    """What a peer is to get: addressed to it, neither there nor settled."""
    if not row.start:
        return ()
    due = within(remains, max(row.start, row.settled + 1), remains[-1][1] if remains else 0)
    return without(due, row.runs)


def to_send(me: int, kept: Iterable[int], rows: Rows, remains: Runs) -> list[tuple[int, int]]:
    """Of the numbers that this peer has kept those that it is to send, rising, each with the peers
    that lack it as a mask."""
    lack = [(1 << peer, lacking(row, remains)) for peer, row in rows.items()]
    before = [row.runs for peer, row in rows.items() if peer < me]
    due: list[tuple[int, int]] = []
    # What has come since the flush began, others send.
    for number in sorted(number for number in kept if holds(rows[me].runs, number)):
        peers = sum(bit for bit, runs in lack if holds(runs, number))
        if peers and not any(holds(runs, number) for runs in before):
            due.append((number, peers))
    return due


def settled_by_all(rows: Rows) -> int:
    """Up to which number nobody who is addressed waits any more."""
    return min((row.settled for row in rows.values() if row.start), default=0)
