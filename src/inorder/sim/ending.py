"""What is still to happen when a run is cut, in words: the ground of `quiet` in `trace.json`.

Rule 1: a timer that was cancelled or moved, and a message that will not arrive, are nothing.
Rule 2: the story is something: a publication or a fault that was still to come.
Rule 3: a machine that waits is something, even if only a timer in the background can help it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inorder.sim.agenda import Agenda
from inorder.sim.node import Node

# What is said of a step of the agenda, by the name of its action; others by that name itself.
_WORDS = {
    "_hand_over": "messages to {target}",
    "_fire": "timer {timer} of {node}",
    "_joined": "{node} joins a topic",
    "_synced": "writes to the disk of {node}",
    "_publish": "publications of {name}",
    "_update": "updates of {name}",
    "_operate": "changes of subscriptions",
    "_start_next": "changes of subscriptions",
    "publish": "replies of {name}",
    "restart": "the restart of {name}",
    "_begin": "faults",
    "_end": "ends of faults",
    "heal": "the end of all faults",
}


def under_way(agenda: Agenda, nodes: Iterable[Node]) -> tuple[str, ...]:
    """What is still to happen, a line each with its number, sorted; nothing when it is quiet."""
    counts: dict[str, int] = {}
    for action, args in agenda.pending():
        if words := _words(getattr(action, "__name__", "steps"), args):
            counts[words] = counts.get(words, 0) + 1
    for node in nodes:
        if node.inbox:
            counts[f"waiting for {node.name} to go on"] = len(node.inbox)
        if not getattr(node.machine, "idle", True):
            counts[f"{node.name} waits"] = 1
        if getattr(node.machine, "owes", False):
            counts[f"holders at {node.name} that may miss something"] = 1
    return tuple(f"{words}: {counts[words]}" for words in sorted(counts))


def _words(action: str, args: tuple[Any, ...]) -> str:
    """What a step is, or nothing if it will have no effect."""
    form = _WORDS.get(action, action.strip("_").replace("_", " "))
    if action == "_fire":
        node, timer, token = args
        return form.format(timer=timer, node=node.name) if node.timers.get(timer) == token else ""
    if action == "_hand_over":
        return form.format(target=args[1]) if args[-1] else ""
    if action in ("_joined", "_synced"):
        node, life = args[0], args[-1]
        return form.format(node=node.name) if node.life == life else ""
    return form.format(name=args[0]) if "{name}" in form else form
