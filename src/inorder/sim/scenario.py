"""Scenario files: what one simulated run is made of. Documented in docs/scenarios.md.

Every field has a default where a sane one exists. Unknown keys, wrong types and impossible values
raise `BadScenario` with the dotted key and what is allowed there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from inorder.core.errors import BadScenario
from inorder.core.settings import convert
from inorder.guarantee.cells.grid import Grid
from inorder.guarantee.promises import Network
from inorder.guarantee.registry import Guarantee, guarantee
from inorder.protocols.cube.options import Options as CubeOptions
from inorder.sim import graphs, laws
from inorder.sim.faults import Faults


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


class CubeTable(CubeOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[network.cube]`: what peers are told (protocols/cube/options.py), and what they are not."""

    # join: peers become members by joining. preset: those that subscribe at the beginning, and all
    # publishers, are members when the run begins.
    members: Literal["join", "preset"] = "join"
    # Which peer gets which number (protocols/cube/mapping.py). names: as the names come. latency:
    # near hosts get near numbers. talk: the same, and the trees of the topics are made short.
    mapping: Literal["names", "latency", "talk"] = "names"
    # Topics have places: events go to the cells of a grid (guarantee/cells), filters choose cells.
    cells: Grid | None = None

    @property
    def options(self) -> CubeOptions:
        told = CubeOptions.__struct_fields__
        return CubeOptions(**{name: getattr(self, name) for name in told})


class PlaneTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[network.plane]`: see sim/plane.py."""

    # Seconds a message takes along the whole side, and seconds that each takes beside that.
    side: float = 0.1
    least: float = 0.001
    # Hosts stand at so many sites, each with sides of so many sides of the plane; by default
    # anywhere.
    sites: int | None = None
    spread: float = 0.02


# Models in which pairs of hosts are near or far for a whole run.
FAR_MODELS = ("wan", "plane")

# Keys that mean something only if brokers match content.
CONTENT_KEYS = ("engine", "summary", "update", "hold", "margin", "min_interval")


class NetworkTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[network]`: see sim/models.py for what the models do."""

    model: Literal["ideal", "delay", "wan", "plane", "packet", "biased"] = "ideal"
    # direct: a link between any two hosts. scribe: Pastry routes and SCRIBE trees (sim/overlay.py),
    # each topic's manager on the host that is the root of its tree. brokers: a tree of brokers that
    # the roles hang on (sim/brokers.py). cube: every role is a peer of a hypercube (sim/cube.py).
    overlay: Literal["direct", "scribe", "brokers", "cube"] = "direct"
    brokers: BrokersTable = BrokersTable()
    cube: CubeTable = CubeTable()
    plane: PlaneTable = PlaneTable()
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
    # Publications per second, each, on the topics that it holds from the beginning.
    rate: float = 0.0
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
    """`[churn]`, between two times: `rate` changes of a topic per second, over all subscribers; or
    `session`, how long each stays with all its topics before one of the `spare` subscribers, who
    begin without any, takes its place."""

    rate: float = 0.0
    session: laws.Law | None = None
    spare: int = 0
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
    def kind(self) -> Network:
        """The kind of network that promises are about."""
        return "cube" if self.network.overlay == "cube" else "network"

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
    from inorder.sim.validate import validate

    scenario: Scenario = convert(table, Scenario, "")
    validate(scenario)
    return scenario


def attribute_law(key: str, table: dict[str, Any]) -> Attribute:
    kinds: dict[str, type[Attribute]] = {"choice": Choice, "uniform": Uniform, "walk": Walk}
    for name, kind in kinds.items():
        if name in table:
            attribute: Attribute = convert(table, kind, key)
            if isinstance(attribute, Choice) and not attribute.choice:
                raise BadScenario(f"{key}.choice", "is empty")
            return attribute
    raise BadScenario(key, f"needs one of {', '.join(kinds)}")
