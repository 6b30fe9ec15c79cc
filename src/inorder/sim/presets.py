"""`[network.cube] members = "preset"`: who is there when a run begins.

Three subscribers hold `chat` from the beginning on, and two publishers may publish on it. The run
begins as if all five had joined already: the subscribers as members, the publishers as sources. The
applications subscribe at time 0 as ever, and are answered at once.

Services that spread events for others, and subscribers that publish on what they do not hold, join
when they first have something to spread.
"""

from __future__ import annotations

from inorder.sim import cube
from inorder.sim.scenario import Scenario
from inorder.sim.workload import Story, publisher_names
from inorder.sim.world import World


def preset_all(world: World, scenario: Scenario, story: Story) -> None:
    """Before anything happens; the disks say it, too."""
    members: dict[str, list[str]] = {topic: [] for topic in scenario.topic_names}
    for operation in story.operations:
        if operation.at == 0.0 and operation.op == "subscribe":
            for topic in operation.topics:
                members[topic].append(operation.node)
    sources = sources_of(scenario)
    machines = [node.machine for node in world.nodes.values()]
    for topic, names in members.items():
        written = cube.preset(machines, [topic], names, sources[topic])
        for name, records in written.items():
            world.nodes[name].disk += [each.record for each in records]


def sources_of(scenario: Scenario) -> dict[str, list[str]]:
    """By topic, the publishers that may publish on it themselves."""
    names = scenario.topic_names
    sources: dict[str, list[str]] = {topic: [] for topic in names}
    if scenario.guarantee.services(names, scenario.options):
        return sources
    for place, publisher in enumerate(publisher_names(scenario)):
        picked = {"own": [names[place % len(names)]], "last": [names[-1]]}
        for topic in picked.get(scenario.publishers.topics, names):
            sources[topic].append(publisher)
    return sources
