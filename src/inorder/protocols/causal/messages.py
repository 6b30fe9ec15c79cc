"""What travels from a publisher to the members of its topic."""

from __future__ import annotations

from msgspec import Struct

from inorder.core.event import Event
from inorder.core.place import Places

# What comes before an event in other topics: topics, growing, each with its places.
Others = tuple[tuple[str, Places], ...]


class Published(Struct, frozen=True, gc=False, array_like=True, tag="causal"):
    """An event, and what comes before it. Its own origin is left out: all earlier numbers of its
    publisher come before it anyhow."""

    event: Event
    # On the event's own topic. A network may read them, to send together what must come together.
    places: Places = ()
    others: Others = ()
