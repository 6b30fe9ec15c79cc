"""Finds what a protocol room must not do: clocks, chance, input and output, walking a set."""

from __future__ import annotations

import ast

BANNED_MODULES = {
    "asyncio", "datetime", "glob", "io", "os", "pathlib", "queue", "random", "secrets", "select",
    "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading",
    "time", "uuid", "multiprocessing", "concurrent", "logging", "http", "urllib",
}  # fmt: skip
BANNED_CALLS = {"open", "print", "input", "exec", "eval", "id", "hash", "breakpoint"}
# Builtins that walk their argument in its own order (sorted, len, min, max, any ... do not care).
WALKERS = {"list", "tuple", "iter", "enumerate", "map", "filter", "zip", "next", "reversed", "join"}


def impurities(tree: ast.AST) -> list[str]:
    sets = _set_names(tree)
    found: list[str] = []
    for node in ast.walk(tree):
        found += _imports(node)
        if isinstance(node, ast.Call):
            name = _name(node.func)
            if isinstance(node.func, ast.Name) and name in BANNED_CALLS:
                found.append(f"line {node.lineno}: calls {name}()")
            if name in WALKERS and any(_is_set(argument, sets) for argument in node.args):
                found.append(f"line {node.lineno}: {name}() walks a set")
        walked = []
        if isinstance(node, ast.For | ast.comprehension):
            walked = [node.iter]
        elif isinstance(node, ast.Starred):
            # {*a} builds another set; [*a] and f(*a) walk it.
            walked = [node.value] if not getattr(node, "in_set", False) else []
        elif isinstance(node, ast.Set):
            for element in node.elts:
                if isinstance(element, ast.Starred):
                    element.in_set = True  # type: ignore[attr-defined]
        for expression in walked:
            if _is_set(expression, sets):
                found.append(f"line {expression.lineno}: walks a set; sort it first")
    return found


def _imports(node: ast.AST) -> list[str]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    return [
        f"line {node.lineno}: imports {name}"  # type: ignore[attr-defined]
        for name in names
        if name.split(".")[0] in BANNED_MODULES
    ]


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _set_names(tree: ast.AST) -> set[str]:
    """Names and attributes that are annotated as sets, or assigned one."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            text = ast.unparse(node.annotation)
            if text.startswith(("set[", "frozenset[", "AbstractSet[")) or text in {
                "set",
                "frozenset",
            }:
                names.add(node.arg if isinstance(node, ast.arg) else _name(node.target))
        elif isinstance(node, ast.Assign) and _is_set(node.value, set()):
            names.update(_name(target) for target in node.targets)
    return names - {""}


def _is_set(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"set", "frozenset"}
    if isinstance(node, ast.BinOp):
        operators = ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor
        return isinstance(node.op, operators) and (
            _is_set(node.left, names) or _is_set(node.right, names)
        )
    return isinstance(node, ast.Name | ast.Attribute) and _name(node) in names
