"""Who talks to whom in a scenario, as far as it says so before it runs.

The members of a topic are those who subscribe at the beginning; publishers divide their rate among
the topics as they pick them, subscribers that publish do so evenly. Replies, and who comes and goes
later, are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from inorder.protocols.cube.mapping import Group
from inorder.sim import topics
from inorder.sim.scenario import Scenario
from inorder.sim.workload import publisher_names, subscriber_names, tell


def talk(scenario: Scenario, seed: int, places: Mapping[str, int]) -> list[Group]:
    """The topics of which something travels, by the places of the nodes."""
    members: dict[str, list[int]] = {topic: [] for topic in scenario.topic_names}
    held: dict[str, tuple[str, ...]] = {}
    for operation in tell(scenario, seed).operations:
        if operation.at == 0.0 and operation.op == "subscribe":
            held[operation.node] = operation.topics
            for topic in operation.topics:
                members[topic].append(places[operation.node])
    rates = _rates(scenario, held)
    groups = []
    for topic, members_of in members.items():
        said = tuple((places[node], rate) for node, rate in rates[topic].items() if rate > 0.0)
        if any({*members_of} - {place} for place, _ in said):
            groups.append(Group(tuple(sorted(members_of)), said))
    return groups


def _rates(scenario: Scenario, held: Mapping[str, tuple[str, ...]]) -> dict[str, dict[str, float]]:
    """By topic and node, publications a second."""
    names = scenario.topic_names
    rates: dict[str, dict[str, float]] = {topic: {} for topic in names}
    table = scenario.publishers
    for place, node in enumerate(publisher_names(scenario)):
        if table.topics == "own":
            shares = {names[place % len(names)]: 1.0}
        elif table.topics == "last":
            shares = {names[-1]: 1.0}
        else:
            weights = topics.weights(table.topics, len(names), table.share, table.exponent)
            shares = dict(zip(names, weights, strict=True))
        for topic, share in shares.items():
            rates[topic][node] = table.rate * share
    for group in scenario.subscribers:
        for node in subscriber_names(group):
            for topic in held.get(node, ()):
                if group.rate:
                    rates[topic][node] = group.rate / len(held[node])
    return rates
