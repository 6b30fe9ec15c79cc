"""What `spark.read.format("inorder")` may be told, with the names of Spark's Kafka source.

| option               | meaning                                                                 |
|----------------------|-------------------------------------------------------------------------|
| url                  | sqlite:///relative.db, sqlite:////absolute.db, trace:////absolute/folder |
| path                 | a trace folder, instead of a url                                        |
| table                | of a trace: events (the default), deliveries, subscriptions, messages   |
| subscribe            | topics and patterns, separated by commas: orders.*,payments             |
| subscribePattern     | a regular expression that whole names of topics match                   |
| startingOffsets      | earliest, latest, or what is done: a position, an event's cursor        |
| startingTimestamp    | milliseconds since 1970: from the first event stored then or later      |
| endingOffsets        | latest, or the last position; of batch queries only                     |
| maxOffsetsPerTrigger | rows of one micro-batch at most                                         |
| minPartitions        | tasks to cut a read into, if there are so many offsets                  |
| failOnDataLoss       | whether events that are gone stop the query (true by default)           |
| quarantine           | whether damaged rows come with a reason instead of stopping the query   |

As with Kafka, a batch starts at the earliest event by default and a stream at the latest. A
position says "done up to and with this one", as everywhere: the query reads what is above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from inorder.check.trace import TABLES
from inorder.core.errors import Misuse, UnknownName
from inorder.logs.cursor import Cursor, parse
from inorder.logs.topics import EVERYTHING, Topics

EARLIEST, LATEST = "earliest", "latest"
READS_ON = "(option failOnDataLoss = false reads on)"

NAMES = (
    "url", "path", "table", "subscribe", "subscribePattern", "startingOffsets",
    "startingTimestamp", "endingOffsets", "maxOffsetsPerTrigger", "minPartitions",
    "failOnDataLoss", "quarantine",
)  # fmt: skip

# A word, a position or a cursor.
Place = str | int | Cursor


class Settings(Struct, frozen=True):
    """The options, read and checked; None is what was not said. `url` is absolute, `place` the
    file or folder in it."""

    scheme: str
    place: str
    url: str = ""
    table: str = "events"
    subscribe: tuple[str, ...] = ()
    pattern: str = ""
    starting: Place | None = None
    since: float | None = None
    ending: Place | None = None
    rows_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_loss: bool = True
    quarantine: bool = False


def read_options(options: Mapping[str, str]) -> Settings:
    """The settings; `Misuse` names the first option that is wrong."""
    given = {key.lower(): value for key, value in options.items()}
    known = {name.lower(): name for name in NAMES}
    for key in sorted(given):
        if key not in known:
            raise UnknownName("option", key, list(NAMES))
    scheme, place, url = place_of(given)
    table = given.get("table", "events")
    if table not in TABLES:
        raise UnknownName("table", table, list(TABLES))
    if scheme != "trace" and table != "events":
        raise Misuse(f"option table: {table!r} is a table of traces, {scheme} has events only")
    topics = tuple(name.strip() for name in given.get("subscribe", "").split(",") if name.strip())
    pattern = given.get("subscribepattern", "")
    if "subscribe" in given and not topics:
        raise Misuse("option subscribe names no topic")
    if topics and pattern:
        raise Misuse("options subscribe and subscribePattern: give one of them, not both")
    Topics(topics)  # raises for what is neither a name nor a pattern
    _check_pattern(pattern)
    starting, since = _place(given, "startingOffsets"), _number(given, "startingTimestamp", 0)
    if starting is not None and since is not None:
        raise Misuse("options startingOffsets and startingTimestamp: give one of them, not both")
    ending = _place(given, "endingOffsets")
    if ending == EARLIEST:
        raise Misuse("option endingOffsets: nothing ends at the earliest event")
    return Settings(
        scheme, place, url, table, tuple(sorted(set(topics))), pattern,
        starting, None if since is None else since / 1000, ending,
        _number(given, "maxOffsetsPerTrigger"), _number(given, "minPartitions"),
        flag(given, "failOnDataLoss", True), flag(given, "quarantine", False),
    )  # fmt: skip


def wanted(settings: Settings) -> tuple[Topics, Callable[[str], bool]]:
    """The topics to ask a broker for, and which of what it gives are wanted."""
    if settings.pattern:
        matches = re.compile(settings.pattern, re.DOTALL).fullmatch
        return EVERYTHING, lambda topic: matches(topic) is not None
    topics = Topics(settings.subscribe) if settings.subscribe else EVERYTHING
    return topics, topics.matches


def place_of(given: Mapping[str, str]) -> tuple[str, str, str]:
    """Scheme, path and absolute URL of what is read or written.

    >>> place_of({"url": "sqlite:////data/broker.db?durable=no"})
    ('sqlite', '/data/broker.db', 'sqlite:////data/broker.db?durable=no')
    """
    url, path = given.get("url"), given.get("path")
    if url and path:
        raise Misuse("options url and path: give one of them, not both")
    if path:
        folder = str(Path(path).absolute())
        return "trace", folder, f"trace:///{folder}"
    if not url:
        raise Misuse('option url is missing: say for instance "sqlite:////absolute/broker.db"')
    scheme, _, rest = url.partition("://")
    rest, question, query = rest.partition("?")
    if not rest.startswith("/") or len(rest) < 2:
        raise Misuse(f"option url: {url!r} is not scheme:///relative or scheme:////absolute")
    place = str(Path(rest[1:]).absolute())
    return scheme, place, f"{scheme}:///{place}{question}{query}"


def flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise Misuse(f"option {name}: {text!r} is neither true nor false")
    return text == "true"


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise Misuse(f"option subscribePattern: {pattern!r} is no pattern ({error})") from None


def _number(given: Mapping[str, str], name: str, least: int = 1) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise Misuse(f"option {name}: {text!r} is not a whole number from {least} on")
    return int(text)


def _place(given: Mapping[str, str], name: str) -> Place | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    if text == "-1" or (text.isascii() and text.isdigit()):
        return int(text)
    try:
        return parse(text)
    except Misuse:
        told = f"{text[:80]!r} is none of earliest, latest, a position and a cursor"
        raise Misuse(f"option {name}: {told}") from None
