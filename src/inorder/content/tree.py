"""The tree of a predicate: our own few nodes, whatever the parser of the day calls them.

Every test has its attribute on the left and constants or parameters on the right. AND and OR hold
two parts or more.
"""

from __future__ import annotations

from typing import Union

from msgspec import Struct

from inorder.content.value import Value

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Constant(Struct, frozen=True, gc=False):
    value: Value


class Parameter(Struct, frozen=True, gc=False):
    name: str


Operand = Constant | Parameter


class Compare(Struct, frozen=True, gc=False):
    attribute: str
    op: str
    operand: Operand


class Between(Struct, frozen=True, gc=False):
    attribute: str
    low: Operand
    high: Operand


class Member(Struct, frozen=True, gc=False):
    """IN: of the operands written out, or of one parameter that holds a list."""

    attribute: str
    operands: tuple[Operand, ...] | Parameter


class Like(Struct, frozen=True, gc=False):
    attribute: str
    operand: Operand


class IsNull(Struct, frozen=True, gc=False):
    attribute: str


class Exists(Struct, frozen=True, gc=False):
    attribute: str


class Truth(Struct, frozen=True, gc=False):
    """An attribute alone: it must hold TRUE."""

    attribute: str


class And(Struct, frozen=True, gc=False):
    parts: tuple[Tree, ...]


class Or(Struct, frozen=True, gc=False):
    parts: tuple[Tree, ...]


class Not(Struct, frozen=True, gc=False):
    part: Tree


Atom = Compare | Between | Member | Like | IsNull | Exists | Truth
Tree = Union[Atom, "And", "Or", "Not"]
