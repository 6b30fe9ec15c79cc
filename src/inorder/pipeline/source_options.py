"""What `spark.read.format("inorder")` may be told, with the names of Spark's Kafka source.

| option               | meaning                                                                 |
|----------------------|-------------------------------------------------------------------------|
| url                  | sqlite:///relative.db, sqlite:////absolute.db, trace:////absolute/folder |
| path                 | a trace folder, instead of a url                                        |
| table                | of a trace: events (the default), deliveries, subscriptions, messages   |
| subscribe            | topics, separated by commas; all topics if neither this nor a pattern   |
| subscribePattern     | a regular expression that whole names of topics match                   |
| startingOffsets      | earliest, latest or {"orders": 5}; -2 is earliest, -1 is latest         |
| endingOffsets        | the same; of batch queries only                                         |
| maxOffsetsPerTrigger | events of one micro-batch at most                                       |
| minPartitions        | tasks to cut a read into, if there are so many events                   |
| failOnDataLoss       | whether events that are gone stop the query (true by default)           |
| quarantine           | whether damaged rows come with a reason instead of stopping the query   |

As with Kafka, a batch starts at the earliest event by default and a stream at the latest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from inorder.check.trace import TABLES
from inorder.core.errors import Misuse, UnknownName

EARLIEST, LATEST = -2, -1
_WORDS = {"earliest": EARLIEST, "latest": LATEST}

NAMES = (
    "url", "path", "table", "subscribe", "subscribePattern", "startingOffsets", "endingOffsets",
    "maxOffsetsPerTrigger", "minPartitions", "failOnDataLoss", "quarantine",
)  # fmt: skip

# Where each topic begins or ends; "" is for the topics that are not named.
Offsets = dict[str, int]


class Settings(Struct, frozen=True):
    """The options, read and checked; None is what was not said."""

    scheme: str
    place: str
    table: str = "events"
    subscribe: tuple[str, ...] = ()
    pattern: str = ""
    starting: Offsets | None = None
    ending: Offsets | None = None
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
    scheme, place = place_of(given)
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
    _check_pattern(pattern)
    return Settings(
        scheme, place, table, tuple(sorted(set(topics))), pattern,
        _offsets(given, "startingOffsets"), _offsets(given, "endingOffsets"),
        _number(given, "maxOffsetsPerTrigger"), _number(given, "minPartitions"),
        flag(given, "failOnDataLoss", True), flag(given, "quarantine", False),
    )  # fmt: skip


def place_of(given: Mapping[str, str]) -> tuple[str, str]:
    """Scheme and path of what is read or written.

    >>> place_of({"url": "sqlite:////data/broker.db"})
    ('sqlite', '/data/broker.db')
    """
    url, path = given.get("url"), given.get("path")
    if url and path:
        raise Misuse("options url and path: give one of them, not both")
    if path:
        return "trace", str(Path(path).absolute())
    if not url:
        raise Misuse('option url is missing: say for instance "sqlite:////absolute/broker.db"')
    scheme, _, rest = url.partition("://")
    if not rest.startswith("/") or len(rest) < 2:
        raise Misuse(f"option url: {url!r} is not scheme:///relative or scheme:////absolute")
    return scheme, str(Path(rest[1:]).absolute())


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


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise Misuse(f"option {name}: {text!r} is not a whole number from 1 on")
    return int(text)


def _offsets(given: Mapping[str, str], name: str) -> Offsets | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if text.lower() in _WORDS:
        return {"": _WORDS[text.lower()]}
    try:
        found = msgspec.json.decode(text, type=dict[str, int])
    except (msgspec.DecodeError, UnicodeError):
        told = f'{text!r} is none of earliest, latest and {{"topic": number}}'
        raise Misuse(f"option {name}: {told}") from None
    for topic, offset in found.items():
        if not topic or offset < EARLIEST:
            raise Misuse(f"option {name}: {topic!r} cannot be at {offset}")
    return found
