"""What is impossible in a scenario though every key has the right type.

Every complaint is a `BadScenario` with the dotted key, and says what is allowed there.
"""

from __future__ import annotations

from math import pi
from typing import Any

from inorder.core.errors import BadScenario, PredicateError, UnknownName
from inorder.core.limits import (
    CUBE_MAPPED_MAX,
    CUBE_MTU_MAX,
    CUBE_MTU_MIN,
    CUBE_WINDOW_MAX,
    SCENARIO_BROKERS_MAX,
    SCENARIO_EVENTS_MAX,
    SCENARIO_NODES_MAX,
    SCENARIO_TOPICS_MAX,
    SIM_CONVERGE_S_MAX,
)
from inorder.sim import cells, graphs, laws
from inorder.sim.faults import Crash, Partition
from inorder.sim.scenario import (
    CONTENT_KEYS,
    FAR_MODELS,
    BrokersTable,
    ChurnTable,
    CubeTable,
    NetworkTable,
    PlaneTable,
    Scenario,
    SubscribersTable,
)


def validate(s: Scenario) -> None:
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
        bounds.append((f"{key}.rate", group.rate, 0.0, 1e6))
        bounds.append((f"{key}.updates", group.updates, 0.0, 1e6))
        _validate_filter(key, group)
        if isinstance(group.topics, tuple):
            _known(f"{key}.topics", group.topics, topics)
    if s.churn:
        everybody = sum(group.count for group in s.subscribers)
        bounds.append(("churn.rate", s.churn.rate, 0.0, 1e6))
        bounds.append(("churn.spare", s.churn.spare, 0, everybody))
    for key, value, low, high in bounds:
        if not low <= value <= high:
            raise BadScenario(key, f"{value:g} is not between {low:g} and {high:g}")
    if s.churn:
        _validate_sessions(s.churn)
    if len(set(topics)) != len(topics):
        raise BadScenario("topics", "a name occurs twice")
    rates = [s.publishers.count * s.publishers.rate, *(g.count * g.rate for g in s.subscribers)]
    if sum(rates) * s.duration > SCENARIO_EVENTS_MAX:
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
    _validate_plane(network)
    if network.transmission is None:
        return
    if network.model != "packet":
        raise BadScenario("network.transmission", 'has no meaning without model = "packet"')
    if network.bandwidth is not None:
        problem = "has no meaning beside network.bandwidth: a byte takes its time, or a copy does"
        raise BadScenario("network.transmission", problem)


def _validate_plane(network: NetworkTable) -> None:
    table, key = network.plane, "network.plane"
    if network.model != "plane" and table != PlaneTable():
        raise BadScenario(key, 'has no meaning without model = "plane"')
    if table.sites is None and table.spread != PlaneTable().spread:
        raise BadScenario(f"{key}.spread", "has no meaning without sites")
    sites = 1 if table.sites is None else table.sites
    bounds: list[tuple[str, float, float, float]] = [
        ("side", table.side, 0.0, 1e3),
        ("least", table.least, 0.0, 1e3),
        ("sites", sites, 1, SCENARIO_NODES_MAX),
        ("spread", table.spread, 0.0, 1.0),
    ]
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise BadScenario(f"{key}.{name}", f"{value:g} is not between {low:g} and {high:g}")


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


def _validate_sessions(churn: ChurnTable) -> None:
    if churn.session is None:
        if churn.spare:
            raise BadScenario("churn.spare", "has no meaning without churn.session")
        return
    if churn.rate:
        raise BadScenario("churn.rate", "and churn.session are two kinds of churn: give one")
    if problem := laws.problem(churn.session):
        raise BadScenario("churn.session", problem)


def _validate_cube(s: Scenario) -> None:
    table = s.network.cube
    if s.guarantee.needs_places and s.network.overlay != "cube":
        problem = f"{s.guarantee.name} needs a network that numbers each publisher's events"
        raise BadScenario("order.guarantee", f'{problem}: overlay = "cube"')
    if s.network.overlay != "cube":
        if table != CubeTable():
            raise BadScenario("network.cube", 'has no meaning without overlay = "cube"')
        return
    key = "network.cube"
    bounds = [
        ("window", table.window, 1, CUBE_WINDOW_MAX),
        ("resend", table.resend, 1e-6, 1e6),
        ("mtu", table.mtu, CUBE_MTU_MIN, CUBE_MTU_MAX),
        ("tau", table.tau, 0.0, 1e3),
    ]
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise BadScenario(f"{key}.{name}", f"{value:g} is not between {low:g} and {high:g}")
    _validate_mapping(s)
    _validate_bundles(key, s.network)
    _validate_detection(key, s)
    if table.cells is not None:
        cells.validate(s, table.cells)


# What means something only if messages share packets, with which kinds of that.
BUNDLE_KEYS = {
    "mtu": ("causal", "timer", "hybrid"),
    "tau": ("timer", "hybrid"),
    "adapt": ("timer", "hybrid"),
    "piggyback": ("hybrid",),
}


def _validate_bundles(key: str, network: NetworkTable) -> None:
    table = network.cube
    for name, kinds in BUNDLE_KEYS.items():
        if getattr(table, name) != getattr(CubeTable(), name) and table.aggregate not in kinds:
            problem = f"has no meaning with aggregate = {table.aggregate}: {', '.join(kinds)}"
            raise BadScenario(f"{key}.{name}", problem)
    if table.adapt and network.model != "packet":
        raise BadScenario(f"{key}.adapt", 'has no meaning without model = "packet": no queues')


def _validate_detection(key: str, s: Scenario) -> None:
    from inorder.sim.workload import node_names

    table = s.network.cube
    if not table.detection:
        for name in ("watch", "round", "test_timeout", "declare_after"):
            if getattr(table, name) != getattr(CubeTable(), name):
                raise BadScenario(f"{key}.{name}", "has no meaning without detection")
        crashes = [at for at, fault in enumerate(s.faults.list, 1) if isinstance(fault, Crash)]
        if crashes or "crash" in s.faults.draw:
            fault = f"faults.list[{crashes[0]}]" if crashes else "faults.draw"
            raise BadScenario(fault, f"peers of a cube crash only with {key}.detection")
        return
    for name, value, most in (
        ("round", table.round, 1e6),
        ("test_timeout", table.test_timeout, table.round),
        ("declare_after", table.declare_after, 1e9),
    ):
        if not 1e-6 <= value <= most:
            raise BadScenario(f"{key}.{name}", f"{value:g} is not between 1e-06 and {most:g}")
    if table.links == "trusted":
        raise BadScenario(f"{key}.links", "trusted says that nothing is lost: detection needs more")
    if table.trees == "single":
        raise BadScenario(f"{key}.trees", "a single tree ends with its root: detection has no use")
    count = len(node_names(s)) + len(s.guarantee.services(s.topic_names, s.options))
    if table.watch == "neighbours" and count & (count - 1):
        raise BadScenario(f"{key}.watch", f"neighbours need a full cube: {count} peers are none")


def _validate_mapping(s: Scenario) -> None:
    from inorder.sim.workload import node_names

    mapping, key = s.network.cube.mapping, "network.cube.mapping"
    if mapping == "names":
        return
    network = s.network
    far = network.model in FAR_MODELS and network.classes == "pair"
    if mapping == "latency" and not far:
        problem = f"needs pairs of hosts that are near or far: model {' or '.join(FAR_MODELS)}"
        raise BadScenario(key, problem)
    services = s.guarantee.services(s.topic_names, s.options)
    if mapping == "talk" and services:
        problem = f"all talk goes through services of {s.guarantee.name}, and the file says nothing"
        raise BadScenario(key, f"{problem} of whom they talk to")
    if (count := len(node_names(s)) + len(services)) > CUBE_MAPPED_MAX:
        raise BadScenario(key, f"{count} peers are more than {CUBE_MAPPED_MAX}")


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
