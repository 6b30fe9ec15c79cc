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
    # Whether peers may crash: then they watch each other, repair what a dead one has left undone,
    # and agree on what it has said. cube: everybody is watched, by somebody. neighbours: peers
    # watch and talk to those only whose number differs in one bit.
    detection: bool = False
    watch: Literal["cube", "neighbours"] = "cube"
    # Whether those who survive go on only if they are a majority of those who lived before
    # (quorum.py). Without that all but one peer may die, and parts that do not hear of each other
    # all go on: then what one has accepted is lost to the others.
    majority: bool = True
    # Seconds from one round of tests to the next, until an answer is late, and until a peer that
    # has not answered is declared dead.
    round: float = 1.0
    test_timeout: float = 0.5
    declare_after: float = 10.0

    @property
    def round_s(self) -> float:
        return self.round

    @property
    def test_timeout_s(self) -> float:
        return self.test_timeout

    @property
    def declare_after_s(self) -> float:
        return self.declare_after
