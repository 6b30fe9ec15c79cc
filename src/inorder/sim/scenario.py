"""Scenario files: what one simulated run is made of. Documented in docs/scenarios.md.

Every field has a default where a sane one exists. Unknown keys, wrong types and impossible values
raise `BadScenario` with the dotted key and what is allowed there.
"""

from __future__ import annotations

from math import pi
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from inorder.core.errors import BadScenario, PredicateError, UnknownName
from inorder.core.limits import (
    CUBE_WINDOW_MAX,
    SCENARIO_BROKERS_MAX,
    SCENARIO_EVENTS_MAX,
    SCENARIO_NODES_MAX,
    SCENARIO_TOPICS_MAX,
    SIM_CONVERGE_S_MAX,
)
from inorder.core.settings import convert
from inorder.guarantee.registry import Guarantee, guarantee
from inorder.protocols.cube.options import Options as CubeOptions
from inorder.sim import graphs, laws
from inorder.sim.faults import Faults, Partition


class BrokersTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[network.brokers]`: see sim/graphs.py for the shapes, sim/brokers.py for what they do."""

    count: int = 8
    shape: graphs.Shape = "random"
    # For shape long only; by default a third of the brokers.
    diameter: int | None = None
    link: laws.Law = laws.Constant(mean=0.01)
    processing: laws.Law = laws.Exponential(mean=0.01)
    # Messages a broker works on at once, the others queue; by default each has its own worker.
    workers: int | None = None
    # So many brokers, drawn from the seed, take so many times as long.
    slow: int = 0
    slow_factor: float = 10.0
    # Delay that all brokers add alike, up to `height` each.
    congestion: laws.Wave | None = None
    # topic: events go where their topic is held. content: brokers are machines that match events
    # (sim/content.py), with the choices below.
    match: Literal["topic", "content"] = "topic"
    engine: str = "index"
    summary: str = "grouped"
    # How a moved parameter travels: as one, or by subscribing anew in either order.
    update: Literal["parametric", "break", "make"] = "parametric"
    # Smoothing of fast parameters: narrow only after so many seconds, with so much head-room.
    hold: float = 0.0
    margin: float = 0.0
    min_interval: float = 0.0

    @property
    def names(self) -> list[str]:
        return [f"broker{number}" for number in range(1, self.count + 1)]


# What a packet network sends a second if the file does not say.
BANDWIDTH = 10_000_000.0


class CubeTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[network.cube]`: see protocols/cube/options.py for what peers are told."""

    # Publications of a peer on one topic that not everybody has acknowledged.
    window: int = 16
    # sessions: links may lose, double and reorder. trusted: they lose and double nothing.
    links: Literal["sessions", "trusted"] = "sessions"
    resend: float = 0.5
    # join: peers become members by joining. preset: those that subscribe at the beginning, and all
    # publishers, are members when the run begins.
    members: Literal["join", "preset"] = "join"

    @property
    def options(self) -> CubeOptions:
        return CubeOptions(window=self.window, links=self.links, resend=self.resend)


# Keys that mean something only if brokers match content.
CONTENT_KEYS = ("engine", "summary", "update", "hold", "margin", "min_interval")


class NetworkTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[network]`: see sim/models.py for what the models do."""

    model: Literal["ideal", "delay", "wan", "packet", "biased"] = "ideal"
    # direct: a link between any two hosts. scribe: Pastry routes and SCRIBE trees (sim/overlay.py),
    # each topic's manager on the host that is the root of its tree. brokers: a tree of brokers that
    # the roles hang on (sim/brokers.py). cube: every role is a peer of a hypercube (sim/cube.py).
    overlay: Literal["direct", "scribe", "brokers", "cube"] = "direct"
    brokers: BrokersTable = BrokersTable()
    cube: CubeTable = CubeTable()
    # wan: whether a pair of hosts is fast or slow for the whole run, or each message draws anew.
    classes: Literal["pair", "message"] = "pair"
    # Pastry prefers near hosts where it has a choice: fast pairs, if the model is wan and has any.
    near: bool = True
    fifo: bool = True
    # Hosts the roles are spread over; by default every role has its own.
    nodes: int | None = None
    delay: laws.Law = laws.Constant(mean=0.01)
    processing: float = 0.0001
    # packet: sending a copy takes size / bandwidth (bits per second), or the same for every copy.
    bandwidth: float | None = None
    transmission: float | None = None
    propagation: laws.Law = laws.Constant(mean=0.01)
    mean: float = 0.2
    join: float = 0.0
    sync: float = 0.0

    @property
    def bits_per_s(self) -> float:
        return BANDWIDTH if self.bandwidth is None else self.bandwidth


class Choice(Struct, frozen=True, forbid_unknown_fields=True):
    """An attribute drawn evenly from a list."""

    choice: tuple[bool | int | float | str, ...]


class Uniform(Struct, frozen=True, forbid_unknown_fields=True):
    """An attribute drawn evenly between two numbers."""

    uniform: tuple[float, float]


class Walk(Struct, frozen=True, forbid_unknown_fields=True):
    """An attribute that moves from its last value by a normal step: a price."""

    walk: tuple[float, float]


Attribute = Choice | Uniform | Walk

TopicChoice = Literal["own", "uniform", "power", "zipf", "last"]


class PublishersTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[publishers]`: how many, how fast, on which topics, with which attributes."""

    count: int = 1
    rate: float = 1.0
    arrivals: Literal["periodic", "poisson"] = "periodic"
    topics: TopicChoice = "uniform"
    # power: the share of topics that receives 80 % of the picks. zipf: the exponent.
    share: float = 0.2
    exponent: float = 1.0
    bytes: int = 0
    attributes: dict[str, dict[str, Any]] = {}


class SubscribersTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[subscribers]]`: a group of subscribers that choose their topics alike."""

    name: str = "s"
    count: int = 1
    topics: Literal["all", "uniform", "power", "zipf"] | tuple[str, ...] = "all"
    per: int = 1
    share: float = 0.2
    exponent: float = 1.0
    # The probability that a delivery is answered by a publication on the same topic.
    reply: float = 0.0
    # What is wanted of the topics, with its parameters: a value, or a law like an attribute's that
    # every update draws anew; and updates per second, each.
    where: str | None = None
    parameters: dict[str, Any] = {}
    updates: float = 0.0

    @property
    def laws(self) -> dict[str, Attribute]:
        """The parameters that move."""
        return {
            name: attribute_law(f"parameters.{name}", law)
            for name, law in self.parameters.items()
            if isinstance(law, dict)
        }

    @property
    def constants(self) -> dict[str, Any]:
        """The parameters that do not."""
        return {name: v for name, v in self.parameters.items() if not isinstance(v, dict)}


class ChurnTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[churn]`: subscription changes per second over all subscribers, between two times."""

    rate: float
    start: float = 0.0
    until: float | None = None


class Scenario(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole file. `order` holds `guarantee` and that guarantee's own options."""

    title: str = ""
    duration: float = 10.0
    settle: float = 10.0
    # The window of the judges (check/ending.py); by default as long as `settle`.
    within: float | None = None
    topics: int | tuple[str, ...] = 1
    order: dict[str, Any] = {}
    network: NetworkTable = NetworkTable()
    publishers: PublishersTable = PublishersTable()
    subscribers: tuple[SubscribersTable, ...] = (SubscribersTable(),)
    churn: ChurnTable | None = None
    faults: Faults = Faults()
    messages: bool = True

    @property
    def window(self) -> float:
        return self.settle if self.within is None else self.within

    @property
    def topic_names(self) -> tuple[str, ...]:
        if isinstance(self.topics, int):
            return tuple(f"t{number}" for number in range(1, self.topics + 1))
        return self.topics

    @property
    def guarantee(self) -> Guarantee:
        return guarantee(self.order.get("guarantee", "none"))

    @property
    def options(self) -> Struct:
        fields = {key: value for key, value in self.order.items() if key != "guarantee"}
        options: Struct = convert(fields, self.guarantee.options, "order")
        return options

    @property
    def attributes(self) -> dict[str, Attribute]:
        return {
            name: attribute_law(f"publishers.attributes.{name}", table)
            for name, table in self.publishers.attributes.items()
        }

    @property
    def filtered(self) -> bool:
        """Whether anybody subscribes to content."""
        return any(group.where is not None for group in self.subscribers)

    @property
    def matches_content(self) -> bool:
        """Whether the network matches events: content brokers."""
        return self.network.overlay == "brokers" and self.network.brokers.match == "content"

    @property
    def faults_until(self) -> float:
        return self.duration if self.faults.until is None else self.faults.until


def load(path: str | Path, order: dict[str, Any] | None = None) -> Scenario:
    """Read and validate a scenario file; `order` replaces single keys of its `[order]`."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise BadScenario(str(path), f"cannot be read: {error.strerror}") from None
    return parse(text, order, str(path))


def parse(text: str | bytes, order: dict[str, Any] | None = None, name: str = "file") -> Scenario:
    """Validate the text of a scenario.

    >>> parse('topics = 2').topic_names
    ('t1', 't2')
    >>> parse('[network]\\nmodel = "warp"')
    Traceback (most recent call last):
    ...
    inorder.core.errors.BadScenario: network.model: 'warp' is not one of ideal, delay, wan, ...
    """
    try:
        table = msgspec.toml.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadScenario(name, f"is not TOML: {error}") from None
    if order and isinstance(table.get("order", {}), dict):
        table["order"] = _replaced(table.get("order", {}), order)
    return from_table(table)


def _replaced(order: dict[str, Any], by: dict[str, Any]) -> dict[str, Any]:
    """`[order]` with single keys replaced; another guarantee has options of its own."""
    another = by.get("guarantee", order.get("guarantee")) != order.get("guarantee")
    return by if another else {**order, **by}


def from_table(table: dict[str, Any]) -> Scenario:
    """Validate a scenario that is a table already: part of a larger file, or built in code."""
    scenario: Scenario = convert(table, Scenario, "")
    _validate(scenario)
    return scenario


def _validate(s: Scenario) -> None:
    """What types alone cannot say."""
    try:
        s.options  # noqa: B018 (validates)
    except UnknownName as error:
        raise BadScenario("order.guarantee", str(error)) from None
    s.attributes  # noqa: B018 (validates)
    topics = s.topic_names
    bounds: list[tuple[str, float, float, float]] = [
        ("duration", s.duration, 0.0, 1e9),
        ("settle", s.settle, 0.0, SIM_CONVERGE_S_MAX),
        ("within", s.window, 0.0, SIM_CONVERGE_S_MAX),
        ("topics", s.topics if isinstance(s.topics, int) else len(topics), 1, SCENARIO_TOPICS_MAX),
        ("publishers.count", s.publishers.count, 0, SCENARIO_NODES_MAX),
        ("publishers.rate", s.publishers.rate, 0.0, 1e6),
        ("publishers.bytes", s.publishers.bytes, 0, 1_000_000),
        ("publishers.share", s.publishers.share, 1e-9, 1.0),
        ("network.nodes", s.network.nodes or 1, 1, SCENARIO_NODES_MAX),
        ("network.processing", s.network.processing, 0.0, 1e3),
        ("network.bandwidth", s.network.bits_per_s, 1.0, 1e15),
        ("network.transmission", s.network.transmission or 0.0, 0.0, 1e3),
        ("network.mean", s.network.mean, 1e-9, 1e3),
        ("network.join", s.network.join, 0.0, 1e3),
        ("network.sync", s.network.sync, 0.0, 1e3),
        ("faults.until", s.faults_until, 0.0, 1e9),
        ("faults.loss_max", s.faults.loss_max, 0.0, 1.0),
        ("faults.duplicate_max", s.faults.duplicate_max, 0.0, 1.0),
        ("faults.reorder_max", s.faults.reorder_max, 0.0, 1.0),
    ]
    for number, group in enumerate(s.subscribers, 1):
        key = f"subscribers[{number}]"
        bounds.append((f"{key}.count", group.count, 0, SCENARIO_NODES_MAX))
        bounds.append((f"{key}.per", group.per, 1, len(topics)))
        bounds.append((f"{key}.reply", group.reply, 0.0, 1.0))
        bounds.append((f"{key}.updates", group.updates, 0.0, 1e6))
        _validate_filter(key, group)
        if isinstance(group.topics, tuple):
            _known(f"{key}.topics", group.topics, topics)
    if s.churn:
        bounds.append(("churn.rate", s.churn.rate, 0.0, 1e6))
    for key, value, low, high in bounds:
        if not low <= value <= high:
            raise BadScenario(key, f"{value:g} is not between {low:g} and {high:g}")
    if len(set(topics)) != len(topics):
        raise BadScenario("topics", "a name occurs twice")
    if s.publishers.count * s.publishers.rate * s.duration > SCENARIO_EVENTS_MAX:
        raise BadScenario("publishers.rate", f"gives more than {SCENARIO_EVENTS_MAX} events")
    _validate_model(s.network)
    _validate_brokers(s.network)
    _validate_cube(s)
    _validate_faults(s)


def _validate_model(network: NetworkTable) -> None:
    for key, law in (("delay", network.delay), ("propagation", network.propagation)):
        if problem := laws.problem(law):
            raise BadScenario(f"network.{key}", problem)
    if network.classes == "message" and network.model != "wan":
        raise BadScenario("network.classes", 'has no meaning without model = "wan"')
    if network.transmission is None:
        return
    if network.model != "packet":
        raise BadScenario("network.transmission", 'has no meaning without model = "packet"')
    if network.bandwidth is not None:
        problem = "has no meaning beside network.bandwidth: a byte takes its time, or a copy does"
        raise BadScenario("network.transmission", problem)


def _validate_brokers(network: NetworkTable) -> None:
    table = network.brokers
    if network.overlay != "brokers":
        if table != BrokersTable():
            raise BadScenario("network.brokers", 'has no meaning without overlay = "brokers"')
        return
    if network.model != "ideal":
        raise BadScenario("network.model", "has no meaning with brokers: see network.brokers.link")
    if network.nodes is not None:
        raise BadScenario("network.nodes", "has no meaning with brokers: see network.brokers.count")
    key = "network.brokers"
    wave = table.congestion or laws.Wave(period=1.0, height=0.0)
    workers = 1 if table.workers is None else table.workers
    bounds: list[tuple[str, float, float, float]] = [
        ("count", table.count, 1, SCENARIO_BROKERS_MAX),
        ("workers", workers, 1, SCENARIO_NODES_MAX),
        ("slow", table.slow, 0, table.count),
        ("slow_factor", table.slow_factor, 1e-3, 1e6),
        ("congestion.period", wave.period, 1e-3, 1e9),
        ("congestion.height", wave.height, 0.0, 1e6),
    ]
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise BadScenario(f"{key}.{name}", f"{value:g} is not between {low:g} and {high:g}")
    if wave.fall >= 1.0:
        # Else messages would overtake each other by the wave alone, whatever the brokers do.
        most = wave.period / pi
        raise BadScenario(f"{key}.congestion.height", f"{wave.height:g} is not below {most:g}")
    if table.diameter is not None:
        if table.shape != "long":
            raise BadScenario(f"{key}.diameter", 'has no meaning without shape = "long"')
        if problem := graphs.impossible(table.count, table.diameter):
            raise BadScenario(f"{key}.diameter", problem)
    for name, law in (("link", table.link), ("processing", table.processing)):
        if problem := laws.problem(law):
            raise BadScenario(f"{key}.{name}", problem)
    _validate_content(key, table)


def _validate_cube(s: Scenario) -> None:
    table = s.network.cube
    if s.network.overlay != "cube":
        if table != CubeTable():
            raise BadScenario("network.cube", 'has no meaning without overlay = "cube"')
        return
    key = "network.cube"
    bounds = [("window", table.window, 1, CUBE_WINDOW_MAX), ("resend", table.resend, 1e-6, 1e6)]
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise BadScenario(f"{key}.{name}", f"{value:g} is not between {low:g} and {high:g}")


def _validate_content(key: str, table: BrokersTable) -> None:
    if table.match == "topic":
        for name in CONTENT_KEYS:
            if getattr(table, name) != getattr(BrokersTable(), name):
                raise BadScenario(f"{key}.{name}", 'has no meaning without match = "content"')
        return
    from inorder.content.choices import engine_named, summary_named

    for name, look in (("engine", engine_named), ("summary", summary_named)):
        try:
            look(getattr(table, name))
        except UnknownName as error:
            raise BadScenario(f"{key}.{name}", str(error)) from None
    for name in ("hold", "margin", "min_interval"):
        value = getattr(table, name)
        if not 0.0 <= value <= 1e6:
            raise BadScenario(f"{key}.{name}", f"{value:g} is not between 0 and 1e+06")
    if table.margin and not table.hold:
        raise BadScenario(f"{key}.margin", "has no meaning without hold")


def _validate_filter(key: str, group: SubscribersTable) -> None:
    if group.where is None:
        if group.parameters or group.updates:
            raise BadScenario(f"{key}.where", "is missing: parameters and updates are of a where")
        return
    from inorder.content.predicate import Predicate
    from inorder.sim.drawn import first

    try:
        laws_of = group.laws
    except BadScenario as error:
        raise BadScenario(f"{key}.{error.key}", error.problem) from None
    try:
        predicate = Predicate.parse(group.where)
        predicate.check({**group.constants, **{name: first(law) for name, law in laws_of.items()}})
    except PredicateError as error:
        raise BadScenario(f"{key}.where", str(error)) from None


def _validate_faults(s: Scenario) -> None:
    from inorder.sim.workload import node_names

    known = [*node_names(s), *s.guarantee.services(s.topic_names, s.options)]
    brokers = s.network.brokers.names if s.network.overlay == "brokers" else []
    for number, fault in enumerate(s.faults.list, 1):
        key = f"faults.list[{number}]"
        named = getattr(fault, "nodes", None) or (getattr(fault, "node", None),)
        # Any broker can be cut off; only one that matches has a machine that could crash.
        cut = isinstance(fault, Partition) or s.matches_content
        there = [*known, *brokers] if cut else known
        _known(key, [name for name in named if name is not None], there)
        if not 0.0 <= fault.at <= s.faults_until:
            raise BadScenario(f"{key}.at", f"{fault.at:g} is not before {s.faults_until:g}")


def _known(key: str, names: Any, known: Any) -> None:
    for name in names:
        if name not in known:
            some = ", ".join(list(known)[:12]) + (", ..." if len(known) > 12 else "")
            raise BadScenario(key, f"{name!r} is not one of {some}")


def attribute_law(key: str, table: dict[str, Any]) -> Attribute:
    kinds: dict[str, type[Attribute]] = {"choice": Choice, "uniform": Uniform, "walk": Walk}
    for name, kind in kinds.items():
        if name in table:
            attribute: Attribute = convert(table, kind, key)
            if isinstance(attribute, Choice) and not attribute.choice:
                raise BadScenario(f"{key}.choice", "is empty")
            return attribute
    raise BadScenario(key, f"needs one of {', '.join(kinds)}")
