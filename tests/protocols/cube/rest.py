"""What must hold when a storm is over (crashing.py): views, and that nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inorder.protocols.cube.messages import MEMBER, SOURCE
from tests.protocols.cube.judge import Broken

if TYPE_CHECKING:
    from tests.protocols.cube.crashing import Node, Storm


def check_views(storm: Storm, topic: str) -> None:
    """L4: all that live and are in have the same view, and it is true."""
    roles = {MEMBER: 0, SOURCE: 0}
    inside = []
    for number, node in enumerate(storm.nodes.values()):
        known = node.machine._topics.get(topic)
        if node.alive and known is not None and known.phase == "in":
            roles[known.role] |= 1 << number
            inside.append((node.name, known))
    for name, known in inside:
        seen = {MEMBER: known.members, SOURCE: known.sources}
        if seen != roles:
            raise Broken("L4", f"{name} sees {seen} of {topic}, true is {roles}")
    members = {name for name, known in inside if known.role == MEMBER}
    wanting = {name for name, node in storm.nodes.items() if node.alive and node.wants.get(topic)}
    if members != wanting or members != storm.judge.members(topic):
        told = storm.judge.members(topic)
        raise Broken("L4", f"{members} are in, told so are {told}, {wanting} want to be")


def check_rest(node: Node) -> None:
    peer = node.machine
    if peer._trees._waves or peer._trees._later or peer._trees._withheld:
        raise Broken("L3", f"{node.name} still waits: {peer._trees.packed()}")
    if getattr(peer.inner, "waiting", 0):
        raise Broken("L2", f"{node.name} holds events back")
    for topic, known in peer._topics.items():
        if known.calls or known.early or known.ahead or known.outstanding:
            raise Broken("L7", f"{node.name} keeps something of {topic}: {known.packed()}")
        if known.phase not in ("out", "in"):
            raise Broken("L3", f"{node.name} is for ever in {known.phase}")
        remains = known.remains
        if remains.dying or remains.unacked or remains.gap:
            raise Broken("L7", f"{node.name} has not done with {topic}: {remains.packed()}")
