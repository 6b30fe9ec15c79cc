"""What holds logs, a room each. The seam is logs/broker.py; nothing above these files knows their
names.

A new broker is one more line in `SCHEMES` and one fixture of the contract (tests/brokers/).
"""

from __future__ import annotations

from collections.abc import Callable

from inorder.core.errors import Misuse
from inorder.logs.broker import Broker


def _memory(place: str, options: dict[str, str], wait_s: float) -> Broker:
    from inorder.brokers.memory import MemoryBroker

    return MemoryBroker(place, options, wait_s)


def _sqlite(place: str, options: dict[str, str], wait_s: float) -> Broker:
    from inorder.brokers.sqlite.broker import SqliteBroker

    return SqliteBroker(place, options, wait_s)


# What a scheme leads to; it is loaded when a URL asks for it.
SCHEMES: dict[str, Callable[[str, dict[str, str], float], Broker]] = {
    "memory": _memory,
    "sqlite": _sqlite,
}


def broker_at(url: str, wait_s: float) -> Broker:
    """The broker a URL names; no answer of it takes longer than about `wait_s`."""
    scheme, colon, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not colon or scheme not in SCHEMES:
        known = " or ".join(f"{name}://" for name in SCHEMES)
        raise Misuse(f"{url!r} leads to no broker: a URL begins with {known}")
    place, _, query = rest.partition("?")
    options = dict(_option(url, word) for word in query.split("&") if word)
    return SCHEMES[scheme](place, options, wait_s)


def _option(url: str, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not (name and equals and value):
        raise Misuse(f"{url!r}: an option is written name=value, not {word!r}")
    return name, value


def chosen(url: str, options: dict[str, str], known: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The options of a URL, the first of their values where none is given.

    >>> chosen("sqlite:///a.db", {}, {"durable": ("yes", "no")})
    {'durable': 'yes'}
    """
    for name, value in options.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise Misuse(f"{url}: there is no option {name!r}; known: {names}")
        if value not in known[name]:
            raise Misuse(f"{url}: {name} is {' or '.join(known[name])}, not {value!r}")
    return {name: options.get(name, values[0]) for name, values in known.items()}
