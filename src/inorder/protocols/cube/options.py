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
    # Whether messages for one peer share packets (bundler.py). none: each leaves alone. causal: a
    # publication waits for what it rests on and what will go there, too. timer: all wait for
    # company. hybrid: both.
    aggregate: Literal["none", "causal", "timer", "hybrid"] = "none"
    # Bytes of a packet, with all headers.
    mtu: int = 1500
    # timer, hybrid: how long a message waits for company at most, in seconds; whether each peer
    # finds out what is worth waiting for. hybrid: wait only while something is held anyhow.
    tau: float = 0.01
    adapt: bool = False
    piggyback: bool = False
    # source: every publisher is the root of a tree. single: publications go to peer 0 first, who is
    # the root of them all.
    trees: Literal["source", "single"] = "source"
