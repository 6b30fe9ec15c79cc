"""Summaries of events, and whether an event with such a summary can concern a subscriber.

Rule 1: no false negatives. An event that a subscriber would deliver is never called irrelevant; an
        irrelevant one may be called relevant, which costs one wait and nothing else.

Topic mode: the summary is a four-byte hash of the topic. Content mode: a Bloom filter of the
attribute names, the `name = value` pairs and the topic ("Probabilistic FIFO Ordering in
Publish/Subscribe Networks", section III, enhanced mode, which leaves the hashing open). Equal
values must give equal elements, so 1 and 1.0 are spelt alike, and Unicode is left as it is.

False positives of one absent equality in 16 bytes and 4 hash functions: 0.24 % with 8 elements,
2.4 % with 16, 7.8 % with 24, 26 % with 40. Take 6 functions up to 16 elements, 4 up to 24; beyond
that, more bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct

from inorder.core.event import Scalar

# The hash of a topic: short, and a clash costs only a wait.
TOPIC_SUMMARY_BYTES = 4

# What an event must show to match: each requirement is a choice of elements, one of which has to be
# there. An empty conjunction is met by everything.
Requirement = tuple[str, ...]
Conjunction = tuple[Requirement, ...]


@lru_cache(maxsize=65_536)
def topic_summary(topic: str) -> bytes:
    """The summary of any event of a topic.

    >>> topic_summary("orders").hex()
    'f85164bc'
    """
    return blake2b(topic.encode(), digest_size=TOPIC_SUMMARY_BYTES).digest()


def canonical(value: bool | int | float | str) -> str:
    """One spelling for equal values, different ones for different values.

    >>> canonical(1) == canonical(1.0), canonical(1) == canonical(True), canonical("1")
    (True, False, 's1')
    """
    # Members of enumerations are spelt as what they travel as.
    if isinstance(value, str):
        return "s" + str.__str__(value)
    if isinstance(value, bool):
        return "b1" if value else "b0"
    if isinstance(value, int) or value.is_integer():
        return f"n{int(value)}"
    return f"n{float(value)!r}"


def has(attribute: str) -> str:
    """The element that says: the attribute is there."""
    return f"?{attribute}"


def equals(attribute: str, value: bool | int | float | str) -> str:
    """The element that says: the attribute has this value."""
    return f"={len(attribute)}:{attribute}{canonical(value)}"


def on_topic(topic: str) -> str:
    """The element that says: the event is of this topic."""
    return f"@{topic}"


def elements(topic: str, value: Mapping[str, Scalar]) -> list[str]:
    """Everything an event shows; null and NaN are absent, and absent is nothing."""
    shown = [on_topic(topic)]
    for name, each in value.items():
        if isinstance(each, bool | int | float | str) and each == each:
            shown.append(has(name))
            shown.append(equals(name, each))
    return shown


@lru_cache(maxsize=65_536)
def mask(element: str, summary_bytes: int, hashes: int) -> int:
    """The bits of one element: double hashing of an eight-byte digest."""
    digest = blake2b(element.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    first = int.from_bytes(digest[:4], "little")
    step = int.from_bytes(digest[4:], "little") | 1
    bits = 0
    for turn in range(hashes):
        bits |= 1 << ((first + turn * step) % (8 * summary_bytes))
    return bits


def content_summary(shown: Iterable[str], summary_bytes: int, hashes: int) -> bytes:
    """The Bloom filter of these elements."""
    bits = 0
    for element in shown:
        bits |= mask(element, summary_bytes, hashes)
    return bits.to_bytes(summary_bytes, "little")


class Interest(Struct, frozen=True, gc=False):
    """What one version of a subscriber's subscriptions may deliver.

    `topics` are those it holds. `conjunctions` say more about the content, any of them will do;
    the default asks for nothing.

    >>> cheap = Interest(("quotes",), (((equals("firm", "IBM"),), (has("price"),)),))
    >>> event = elements("quotes", {"firm": "IBM", "price": 9.5})
    >>> cheap.concerns(content_summary(event, 16, 4), 4)
    True
    >>> cheap.concerns(content_summary(elements("quotes", {"firm": "Sun"}), 16, 4), 4)
    False
    """

    topics: tuple[str, ...]
    conjunctions: tuple[Conjunction, ...] = ((),)

    def concerns(self, summary: bytes, hashes: int) -> bool:
        """Whether an event whose content has this summary can be one of ours."""
        bits = int.from_bytes(summary, "little")
        size = len(summary)
        if not any(_shows(bits, (on_topic(topic),), size, hashes) for topic in self.topics):
            return False
        return any(
            all(_shows(bits, requirement, size, hashes) for requirement in conjunction)
            for conjunction in self.conjunctions
        )


def _shows(bits: int, requirement: Requirement, size: int, hashes: int) -> bool:
    return any(bits & (need := mask(each, size, hashes)) == need for each in requirement)
