"""What a job of the pipeline may say, and what of it goes together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Literal

from msgspec import Struct, field

from inorder.cli.job.summary import CompareTable, DetectTable
from inorder.content.predicate import Predicate
from inorder.core.errors import BadScenario, Misuse, PredicateError
from inorder.core.limits import ORDER_LANES_MAX
from inorder.core.settings import convert
from inorder.guarantee.registry import Guarantee, guarantee
from inorder.sim.drawn import Drawn
from inorder.sim.scenario import Attribute, attribute_law
from inorder.sim.topics import Picker

_INTERVAL = re.compile(r"[1-9]\d* (millisecond|second|minute|hour)s?")


class SourceTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[source]`: where events come from; the names are those of Spark's Kafka source."""

    url: str
    subscribe: tuple[str, ...] = ()
    subscribePattern: str | None = None
    startingOffsets: str = "earliest"
    maxOffsetsPerTrigger: int | None = None
    failOnDataLoss: bool = True

    def options(self) -> dict[str, str]:
        chosen = {
            "url": self.url,
            "startingOffsets": self.startingOffsets,
            "failOnDataLoss": str(self.failOnDataLoss).lower(),
        }
        if self.subscribe:
            chosen["subscribe"] = ",".join(self.subscribe)
        if self.subscribePattern is not None:
            chosen["subscribePattern"] = self.subscribePattern
        if self.maxOffsetsPerTrigger is not None:
            chosen["maxOffsetsPerTrigger"] = str(self.maxOffsetsPerTrigger)
        return chosen


class PublishersTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[publishers]`: real processes that publish on the source while the job begins."""

    count: int = 1
    rate: float = 10.0
    duration: float = 10.0
    topics: Literal["own", "all"] = "own"
    attributes: dict[str, dict[str, Any]] = {}

    @property
    def laws(self) -> dict[str, Attribute]:
        return laws_of(self.attributes)


class GroupTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[subscribers]]` (real processes) and `[[subscriptions]]` (matched by Spark)."""

    name: str
    count: int = 1
    topics: Literal["all", "uniform"] | tuple[str, ...] = "all"
    per: int = 1
    where: str | None = None
    # A value, or a law like an attribute's that every member draws for itself.
    parameters: dict[str, Any] = {}


class SinkTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[sink]`: where deliveries go; by default a Parquet table in the job's folder."""

    format: str = "parquet"
    path: str | None = None
    options: dict[str, str] = {}


class RunTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    seed: int = 1
    out: str = "out/run"
    report: str | None = None
    # "available-now": what is there, then stop; else an interval: "5 seconds".
    trigger: str = "available-now"
    lanes: int = 4


class PipelineTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: SourceTable
    title: str = ""
    publishers: PublishersTable | None = None
    subscribers: tuple[GroupTable, ...] = ()
    subscriptions: tuple[GroupTable, ...] = ()
    order: dict[str, Any] = field(default_factory=lambda: {"guarantee": "total"})
    simulate: dict[str, Any] | None = None
    compare: tuple[CompareTable, ...] = ()
    sink: SinkTable = SinkTable()
    detect: DetectTable | None = None
    run: RunTable = RunTable()


def laws_of(attributes: dict[str, dict[str, Any]]) -> dict[str, Attribute]:
    """The laws of published attributes; a wrong one is named."""
    return {
        name: attribute_law(f"publishers.attributes.{name}", law)
        for name, law in attributes.items()
    }


def check_publishers(table: PublishersTable) -> None:
    """Refuse publishers that could not publish."""
    table.laws  # noqa: B018 (validates)
    if table.count < 1:
        raise BadScenario("publishers.count", f"{table.count} is not at least 1")
    for key, value in (("rate", table.rate), ("duration", table.duration)):
        if not 0.0 < value < 1e9:
            raise BadScenario(f"publishers.{key}", f"{value:g} is not above 0")


def check_run(table: RunTable) -> None:
    if not 1 <= table.lanes <= ORDER_LANES_MAX:
        raise BadScenario("run.lanes", f"{table.lanes} is not between 1 and {ORDER_LANES_MAX}")
    if table.trigger != "available-now" and not _INTERVAL.fullmatch(table.trigger):
        raise BadScenario("run.trigger", f'{table.trigger!r} is not "available-now" or "5 seconds"')


def check_sink(table: SinkTable) -> None:
    """A sink is a table in a folder, or a topic of ours."""
    if table.format == "inorder":
        if table.path is not None or "url" not in table.options:
            raise BadScenario("sink.options", 'format = "inorder" needs url there, and no path')
    elif table.path is None and (table.format != "parquet" or table.options):
        raise BadScenario("sink.path", f"say where {table.format} goes")


@contextmanager
def named(key: str) -> Iterator[None]:
    """Errors inside are about this table of the file."""
    try:
        yield
    except BadScenario:
        raise
    except Misuse as error:
        raise BadScenario(key, str(error)) from None


class Member(Struct, frozen=True):
    """One subscriber of a group."""

    name: str
    topics: list[str]
    where: str | None
    parameters: dict[str, Any]


def members(
    groups: Sequence[GroupTable], topics: Sequence[str], seed: str, key: str
) -> list[Member]:
    """Everybody the groups describe, with the topics and values they drew."""
    found: dict[str, Member] = {}
    for number, group in enumerate(groups, 1):
        if group.count < 1:
            raise BadScenario(f"{key}[{number}].count", f"{group.count} is not at least 1")
        rng = Random(f"{seed}/{group.name}")
        for index in range(1, group.count + 1):
            name = group.name if group.count == 1 else f"{group.name}{index}"
            if name in found:
                raise BadScenario(f"{key}[{number}].name", f"{name!r} occurs twice")
            chosen = _topics(group, topics, rng, f"{key}[{number}]")
            values = _values(group.parameters, rng, f"{key}[{number}].parameters")
            _check(group.where, values, f"{key}[{number}]")
            found[name] = Member(name, chosen, group.where, values)
    return list(found.values())


def _topics(group: GroupTable, topics: Sequence[str], rng: Random, key: str) -> list[str]:
    if isinstance(group.topics, tuple):
        if unknown := [topic for topic in group.topics if topics and topic not in topics]:
            raise BadScenario(f"{key}.topics", f"{unknown[0]!r} is not among source.subscribe")
        return sorted({*group.topics})
    if not topics:
        raise BadScenario(f"{key}.topics", "name the topics, here or in source.subscribe")
    if group.topics == "all":
        return sorted(topics)
    if not 1 <= group.per <= len(topics):
        raise BadScenario(f"{key}.per", f"{group.per} of {len(topics)} topics")
    return sorted(Picker(topics, [1.0] * len(topics)).pick_several(rng, group.per))


def _values(parameters: dict[str, Any], rng: Random, key: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, dict):
            value = Drawn({name: attribute_law(f"{key}.{name}", value)}).draw(rng)[name]
        values[name] = value
    return values


def _check(where: str | None, values: dict[str, Any], key: str) -> None:
    if where is None:
        if values:
            raise BadScenario(f"{key}.parameters", "are nothing without a where")
        return
    try:
        Predicate.parse(where).check(values)
    except PredicateError as error:
        raise BadScenario(f"{key}.where", str(error)) from None


def order_of(table: dict[str, Any], key: str) -> tuple[Guarantee, dict[str, Any]]:
    """The guarantee an order table names, and its options, checked."""
    options = {name: value for name, value in table.items() if name != "guarantee"}
    chosen = guarantee(str(table.get("guarantee", "none")))
    try:
        convert(options, chosen.options, "order")
    except BadScenario as error:
        raise BadScenario(f"{key}.{error.key.removeprefix('order.')}", error.problem) from None
    return chosen, options
