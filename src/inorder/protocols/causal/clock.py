"""Compressed vector clocks: a stamp names what its publisher has taken in since its event before.

A takes in B's 1 and C's 1 and publishes 1, which names both. A takes in B's 2 and publishes 2,
which names B's 2 and not C's 1: a receiver waits for A's 1 first, as the numbers demand, and so
has C's 1.

Rule 1: a subscriber that joins lacks the events before, and what their stamps named. That is older
        than all that counts for it (Theory), so nothing that it is handed rests on it.
Rule 2: what an event rests on is in its own stamp and in those of its publisher's earlier events.
        A network that holds events back to send them together must not take an entry that is
        absent for "rests on nothing" (erratum A5): see `Client.expanded`.

Theory. K. Birman, A. Schiper, P. Stephenson: Lightweight causal and atomic group multicast, ACM
Transactions on Computer Systems 9 (3), 1991; the thesis, chapter 4. An event waits for its
predecessor, hence for all that its predecessor's stamp named: delivery needs the differences only.
The full clock of an event that waits is what these differences come to, from the first of its
publisher's events that still waits; what stands before has been taken in.

A subscriber joins, and publications count from the instant T on (docs/causal.md, second argument).
Let m rest on d, both launched after T. If the publisher of m has taken d in, it has named d in m,
or in an earlier event behind d, hence behind T, which comes to the subscriber, too, and before m.
If d was not addressed to it, it has taken in an event that rests on d, and the same holds of that.
(The thesis has members that never change, and needs none of this.)
"""

from __future__ import annotations

from inorder.core.place import Origin
from inorder.protocols.causal.messages import Published
from inorder.protocols.causal.stamp import Stamps


class Clock(Stamps):
    """What has changed since one's last event."""

    chained = True

    def taken_in(self, origin: Origin, number: int, message: Published) -> None:
        self.table(origin[0])[origin[1]] = number
