"""Text into a tree, and a tree into text.

    or    := and { OR and }      and := not { AND not }      not := NOT not | atom
    atom  := '(' or ')' | EXISTS attr | attr IS [NOT] NULL | attr | value op value
           | value [NOT] BETWEEN value AND value | attr [NOT] LIKE value
           | attr [NOT] IN '(' value {, value} ')' | attr [NOT] IN :list
    op    := = | == | != | <> | < | <= | > | >=
    value := number | 'string' | TRUE | FALSE | attr | :parameter

Rule 1: limits first, then words (lexer.py), then this grammar and nothing else. It runs over a
        stack of its own, so depth is a number to compare and not the interpreter's.
Rule 2: every comparison has one attribute and one constant or parameter; sides are swapped.
Rule 3: a refusal names the column and what was expected. Where other SQL would go on, it is
        UNSUPPORTED_EXPRESSION with the construct's name; where no SQL would, it is SYNTAX.
Rule 4: with a schema, every attribute must be in it and every constant of its kind.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from inorder.content.atom import AtomReader, ParameterUse
from inorder.content.lexer import words_of
from inorder.content.show import show
from inorder.content.spark import spark_sql
from inorder.content.tree import (
    And,
    Between,
    Compare,
    Constant,
    Exists,
    IsNull,
    Like,
    Member,
    Not,
    Or,
    Parameter,
    Tree,
    Truth,
)
from inorder.core.limits import CONTENT_NESTING_MAX

__all__ = [
    "And",
    "Between",
    "Compare",
    "Constant",
    "Exists",
    "IsNull",
    "Like",
    "Member",
    "Not",
    "Or",
    "Parameter",
    "ParameterUse",
    "Reading",
    "Tree",
    "Truth",
    "parse",
    "read",
    "show",
    "spark_sql",
]


class Reading(Struct, frozen=True):
    """What a text says: its tree, and its parameters in order of their first use."""

    tree: Tree
    parameters: tuple[ParameterUse, ...]


class _Group(Struct):
    """What has been read of one pair of parentheses."""

    ors: list[Tree]
    ands: list[Tree]
    nots: int = 0

    def take(self, tree: Tree) -> None:
        for _ in range(self.nots):
            tree = Not(tree)
        self.nots = 0
        self.ands.append(tree)

    def close_and(self) -> None:
        self.ors.append(self.ands[0] if len(self.ands) == 1 else And(tuple(self.ands)))
        self.ands = []

    def tree(self) -> Tree:
        self.close_and()
        return self.ors[0] if len(self.ors) == 1 else Or(tuple(self.ors))


def parse(text: str, schema: Mapping[str, str] | None = None) -> Tree:
    """The tree of a predicate.

    >>> show(parse("5 > price and firm == 'IBM'"))
    "price < 5 AND firm = 'IBM'"
    """
    return read(text, schema).tree


def read(text: str, schema: Mapping[str, str] | None = None) -> Reading:
    words = AtomReader(text, words_of(text), schema)
    group, outer, depth = _Group([], []), list[_Group](), 0
    while True:
        opening = words.current
        if words.take_keyword("NOT"):
            group.nots += 1
            depth += 1
        elif words.take_sign("("):
            outer.append(group)
            group = _Group([], [])
            depth += 1
        else:
            depth -= group.nots
            group.take(words.atom())
            while outer and words.take_sign(")"):
                inner, group = group.tree(), outer.pop()
                depth -= 1 + group.nots
                group.take(inner)
            if words.take_keyword("OR"):
                group.close_and()
            elif not words.take_keyword("AND"):
                break
        if depth > CONTENT_NESTING_MAX:
            problem = f"nested deeper than {CONTENT_NESTING_MAX}"
            raise words.error("SYNTAX", problem, opening)
    if outer or words.current.sort != "end":
        raise words.refusal("AND, OR or )" if outer else "AND, OR or the end")
    return Reading(group.tree(), words.parameters())
