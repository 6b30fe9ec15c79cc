"""Causal barriers: a stamp names the direct causes only.

A publishes 1, B takes it in and publishes 2, C takes in both and publishes 3. The stamp of 3 names
2 and not 1: a receiver that has taken in 2 has taken in 1.

Rule 1: an event that is taken in takes the place of all that its stamp names.
Rule 2: an event of one's own takes the place of everything.

A chain breaks where a receiver is not addressed by its middle (erratum P14). That is why a network
says from which number on an origin's events count, and why the others set the order all the same.
Across topics nothing of this holds: see whole.py.
"""

from __future__ import annotations

from inorder.core.place import Origin
from inorder.protocols.causal.messages import Published
from inorder.protocols.causal.stamp import Stamps


class Barrier(Stamps):
    """The last events taken in that none of the others rests on."""

    def taken_in(self, origin: Origin, number: int, message: Published) -> None:
        last = self.table(origin[0])
        for peer, cause in message.places:
            if 0 < last[peer] <= cause:
                last[peer] = 0
        last[origin[1]] = number
