"""A tree as text: the canonical spelling, which parses back to the same tree."""

from __future__ import annotations

from inorder.content.lexer import PLAIN_NAME, RESERVED
from inorder.content.tree import (
    And,
    Between,
    Compare,
    Exists,
    IsNull,
    Like,
    Member,
    Not,
    Operand,
    Or,
    Parameter,
    Tree,
    Truth,
)


def show(tree: Tree) -> str:
    """The text of a tree.

    >>> show(Not(Or((Truth("open"), Compare("order id", "=", Parameter("order"))))))
    'NOT (open OR "order id" = :order)'
    """
    if isinstance(tree, And | Or):
        word = " AND " if isinstance(tree, And) else " OR "
        return word.join(_inside(part, isinstance(tree, And)) for part in tree.parts)
    if isinstance(tree, Not):
        return f"NOT {_inside(tree.part, True)}"
    name = show_name(tree.attribute)
    if isinstance(tree, Compare):
        return f"{name} {tree.op} {_operand(tree.operand)}"
    if isinstance(tree, Between):
        return f"{name} BETWEEN {_operand(tree.low)} AND {_operand(tree.high)}"
    if isinstance(tree, Member):
        return f"{name} IN {_members(tree.operands)}"
    if isinstance(tree, Like):
        return f"{name} LIKE {_operand(tree.operand)}"
    if isinstance(tree, IsNull):
        return f"{name} IS NULL"
    assert isinstance(tree, Exists | Truth)
    return f"EXISTS {name}" if isinstance(tree, Exists) else name


def show_name(attribute: str) -> str:
    parts = attribute.split(".")
    if all(PLAIN_NAME.fullmatch(part) and part.upper() not in RESERVED for part in parts):
        return attribute
    return '"' + attribute.replace('"', '""') + '"'


def _inside(part: Tree, tight: bool) -> str:
    """A part of AND, OR or NOT: AND within OR needs no parentheses, everything else does."""
    needs = isinstance(part, And | Or) if tight else isinstance(part, Or)
    return f"({show(part)})" if needs else show(part)


def _operand(operand: Operand) -> str:
    if isinstance(operand, Parameter):
        return f":{operand.name}"
    value = operand.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _members(operands: tuple[Operand, ...] | Parameter) -> str:
    if isinstance(operands, Parameter):
        return _operand(operands)
    return f"({', '.join(map(_operand, operands))})"
