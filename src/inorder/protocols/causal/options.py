"""The choices of `guarantee = "causal"`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[order]` of a scenario with `guarantee = "causal"`."""

    # barrier: the direct causes within the topic, a handful. clock: what the publisher has taken in
    # since its last event, as the thesis has it. whole: everything in the past, over all
    # topics; the only kind that keeps causal order across topics.
    stamps: Literal["barrier", "clock", "whole"] = "barrier"
