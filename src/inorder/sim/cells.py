"""Scenarios whose topics have places: `[network.cube.cells]`, and what is impossible about it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from inorder.core.errors import BadScenario, Misuse
from inorder.guarantee.cells.grid import SIDES, Grid

if TYPE_CHECKING:
    from inorder.sim.scenario import Attribute, Scenario, SubscribersTable

KEY = "network.cube.cells"


def place_laws(scenario: Scenario) -> dict[str, Attribute]:
    """The laws of where events are, if topics have places."""
    if scenario.network.cube.cells is None:
        return {}
    names = [name for side in SIDES for name in side]
    return {name: law for name, law in scenario.attributes.items() if name in names}


def validate(s: Scenario, grid: Grid) -> None:
    """What types alone cannot say."""
    if problem := grid.trouble():
        raise BadScenario(KEY, problem)
    if s.guarantee.services(s.topic_names, s.options):
        problem = f"{s.guarantee.name} needs to know all topics beforehand, and cells are topics"
        raise BadScenario(KEY, problem)
    promised = s.guarantee.promises(s.options, "cube")
    if "causal" in promised and "causal_across_topics" not in promised:
        problem = "cells are topics, and these stamps keep causal order within each only"
        raise BadScenario(KEY, f'{problem}: it takes stamps = "whole"')
    table = s.network.cube
    if table.members == "preset":
        raise BadScenario(KEY, "members are not preset where filters choose the cells")
    if table.adapt:
        raise BadScenario(KEY, "adapt is not for peers with cells")
    if table.detection and any(far in s.attributes for _, far in SIDES):
        raise BadScenario(KEY, "events with an area are not for peers that watch each other die")
    _validate_places(s, grid)
    for number, group in enumerate(s.subscribers, 1):
        _validate_area(f"subscribers[{number}].where", group, grid)


def _validate_places(s: Scenario, grid: Grid) -> None:
    """Every event is to have a place."""
    if not s.publishers.count and not any(group.rate or group.reply for group in s.subscribers):
        return
    laws = place_laws(s)
    ends = {name: list(_ends(name, law)) for name, law in laws.items()}
    for place in product(*ends.values()):
        try:
            grid.cells_of(dict(zip(ends, place, strict=True)))
        except Misuse as error:
            raise BadScenario("publishers.attributes", str(error)) from None
    if not ends:
        names = " and ".join(side[0] for side in SIDES)
        raise BadScenario("publishers.attributes", f"cells need {names} of every event")


def _ends(name: str, law: Attribute) -> Iterator[object]:
    """Values that say whether all others can be places: the extreme ones."""
    from inorder.sim.scenario import Choice, Uniform

    if isinstance(law, Choice):
        yield from law.choice
    elif isinstance(law, Uniform):
        yield from law.uniform
    elif name in {far for _, far in SIDES}:
        raise BadScenario(f"publishers.attributes.{name}", "an area that walks has no end")
    else:
        yield law.walk[0]


def _validate_area(key: str, group: SubscribersTable, grid: Grid) -> None:
    from inorder.content.predicate import Predicate
    from inorder.sim.drawn import first

    if group.where is None:
        boxes = Predicate.parse("EXISTS x").bind({})
    else:
        moving = {name: first(law) for name, law in group.laws.items()}
        boxes = Predicate.parse(group.where).bind({**group.constants, **moving})
    try:
        grid.cells_for(boxes)
    except Misuse as error:
        raise BadScenario(key, str(error)) from None
