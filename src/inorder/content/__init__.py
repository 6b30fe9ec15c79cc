"""Content-based publish/subscribe with parameters: subscribe to what events hold, not to a topic.

`predicate.py` is the face of the language; the tree, its meaning and its boxes are behind it. The
machines are `broker.py` and `client.py`: clients hang on edge brokers, brokers form a tree, and a
change of a parameter travels as one small message. Engines (`engine.py`, `index/`) find who wants
an event, summaries (`summary.py`, `policies.py`) say what a neighbour needs to know.

The rules are those of "Parametric Subscriptions for Content-Based Publish/Subscribe Networks"
(Middleware 2010), with their errors mended; files name the erratum (E-C13, ...) where they differ.
"""

from __future__ import annotations

from inorder.content.box import Box
from inorder.content.broker import Broker
from inorder.content.client import Client, Handed
from inorder.content.predicate import Predicate
from inorder.content.smoothing import Smoothing

__all__ = ["Box", "Broker", "Client", "Handed", "Predicate", "Smoothing"]
