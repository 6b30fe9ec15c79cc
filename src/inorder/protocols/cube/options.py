"""`[network.cube]`: what can be chosen about a network of peers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The peers' own settings, the same at all of them."""

    # Publications of a peer on one topic that not everybody has acknowledged. 1 is the thesis's
    # stop and wait.
    window: int = 16
    # sessions: the links may lose, double and reorder. trusted: they lose and double nothing.
    links: Literal["sessions", "trusted"] = "sessions"
    # What is not acknowledged is sent again after so many seconds, and then ever more patiently.
    resend: float = 0.5
