"""How many topics a broker may have: every stamp on a log names all of them.

An event of the largest size must always find room beside its stamp in one frame. Otherwise the
manager that numbers it could not say so, and neither could whoever takes over from it.
"""

from __future__ import annotations

from inorder.core.errors import TooLarge
from inorder.core.limits import TOPIC_NAMES_BYTES_MAX, TOPICS_PER_BROKER_MAX


def check_room(known: int, size: int, topic: str) -> None:
    """Raise if there is no room for one more topic beside so many, with names of so many bytes."""
    if known >= TOPICS_PER_BROKER_MAX:
        raise TooLarge("number of topics", known + 1, TOPICS_PER_BROKER_MAX)
    if (size := size + len(topic.encode())) > TOPIC_NAMES_BYTES_MAX:
        raise TooLarge("names of all topics, in bytes,", size, TOPIC_NAMES_BYTES_MAX)
