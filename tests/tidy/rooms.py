"""The map of the house: which room may import which.

The whole map of the design is here, also rooms nobody has built yet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "inorder"

VOCABULARY = [
    "errors", "limits", "event", "effect", "machine", "wire", "settings", "pack", "member",
]  # fmt: skip
PROTOCOLS = ["none", "total", "causal", "fifo", "content"]
JUDGES = ["trace", "check", "store"]
REGISTRY = ["guarantee", "attach", "compose", "parameters"]
DRIVERS = ["sim", "live", "pipeline"]
TOP = ["job", "sweep", "cli", "studio"]

# What each room may import besides itself.
MAY_IMPORT: dict[str, list[str]] = {
    **dict.fromkeys(VOCABULARY, VOCABULARY),
    **dict.fromkeys(PROTOCOLS, VOCABULARY),
    **{room: [*VOCABULARY, *JUDGES] for room in JUDGES},
    **{room: [*VOCABULARY, *PROTOCOLS, *REGISTRY] for room in REGISTRY},
    **{room: [*VOCABULARY, *PROTOCOLS, *JUDGES, *REGISTRY] for room in DRIVERS},
    **{
        room: [*VOCABULARY, *PROTOCOLS, *JUDGES, *REGISTRY, *DRIVERS, *TOP, "__init__"]
        for room in TOP
    },
    "__init__": [*VOCABULARY, *REGISTRY, "live"],
}


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room a file belongs to: its folder under inorder/, or its own name."""
    relative = path.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The rooms a module imports, with the line; imports inside functions count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module]
            if module == "inorder":
                names = [f"inorder.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "inorder":
                yield node.lineno, "__init__"
            elif name.startswith("inorder."):
                yield node.lineno, name.split(".")[1]


def wrong_imports(room: str, tree: ast.AST) -> list[str]:
    """What in this module breaks the map."""
    allowed = {room, *MAY_IMPORT[room]}
    return [
        f"line {line}: {room} must not import {other}"
        for line, other in imported_rooms(tree)
        if other not in allowed
    ]
