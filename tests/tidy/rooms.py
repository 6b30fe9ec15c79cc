"""The map of the house: which room may import which.

The whole map of the design is here, also rooms nobody has built yet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "inorder"

PROTOCOLS = [f"protocols.{name}" for name in ("session", "total", "fifo", "causal", "cube")]
DRIVERS = ["sim", "bus", "nodes", "pipeline"]

# Rooms of machines: no clock, no chance, no input or output, no set walked.
PURE = [*PROTOCOLS, "content", "logs", "guarantee"]

# What drivers may import: everything below them, never each other.
DRIVEN = ["core", "logs", "links", *PROTOCOLS, "content", "guarantee", "brokers", "check"]

# What each room may import besides itself.
MAY_IMPORT: dict[str, list[str]] = {
    "core": [],
    "logs": ["core"],
    "links": ["core"],
    "check": ["core"],
    **{room: ["core", "protocols.session"] for room in PROTOCOLS},
    "content": ["core"],
    "guarantee": ["core", "logs", *PROTOCOLS, "content"],
    "brokers": ["core", "logs"],
    **dict.fromkeys(DRIVERS, DRIVEN),
}
EVERYTHING = [*MAY_IMPORT, "__init__"]
MAY_IMPORT["cli"] = EVERYTHING
MAY_IMPORT["protocols"] = []
MAY_IMPORT["__init__"] = ["core", "logs", "bus"]


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room a file belongs to: its folder under inorder/, or its own name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return _room([part for part in parts if part != "__init__"] or ["__init__"])


def _room(parts: list[str]) -> str:
    """Each protocol is a room of its own; elsewhere the first folder is the room."""
    return ".".join(parts[: 2 if parts[0] == "protocols" else 1])


def imported_rooms(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The rooms a module imports, with the line; imports inside functions count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module]
            if module in ("inorder", "inorder.protocols"):
                names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "inorder":
                yield node.lineno, "__init__"
            elif name.startswith("inorder."):
                yield node.lineno, _room(name.split(".")[1:])


def wrong_imports(room: str, tree: ast.AST) -> list[str]:
    """What in this module breaks the map."""
    allowed = {room, *MAY_IMPORT[room]}
    return [
        f"line {line}: {room} must not import {other}"
        for line, other in imported_rooms(tree)
        if other not in allowed
    ]
