"""Causal order: no subscriber is handed an answer before its question.

Who does what: client.py publishes with stamps and holds topics; order.py decides when an event may
be handed over, session.py is what it knows of one topic. barrier.py, clock.py and whole.py are the
three kinds of stamps, stamp.py is what they have in common and what a stamp may look like. The
network around gives every event a place (core/place.py) and says where origins begin.

The rules are those of "A communication-efficient causal broadcast publish/subscribe system" (João
Paulo de Araujo, thesis, Sorbonne Université, 2019), with their errors mended; files name the
erratum (P1, P10, A5, ...) where they differ.
"""

from __future__ import annotations

from inorder.protocols.causal.client import Client
from inorder.protocols.causal.messages import Published
from inorder.protocols.causal.options import Options

__all__ = ["Client", "Options", "Published"]
