"""A tree as a Spark SQL expression of the same meaning, with `:name` parameters.

Spark's logic is the same three-valued one, once three differences are bridged: NaN is a number to
Spark (the largest) and absent to us; a backslash in its strings is an escape, and in its patterns
an error when it escapes nothing; an attribute is one column, also with dots in its name. A column
has one type, so constants of two kinds for one attribute are refused.

A parameter that holds a list becomes `array_contains` of an array. Patterns given as parameters
must be spelt as `Pattern.text` does; `spark_values` sees to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inorder.content.like import pattern_of
from inorder.content.tree import (
    And,
    Atom,
    Between,
    Compare,
    Constant,
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
from inorder.content.value import kind_of
from inorder.core.errors import PredicateError


def spark_sql(tree: Tree, schema: Mapping[str, str] | None = None) -> str:
    """The expression; with a schema, columns that cannot hold a NaN are named without a guard.

    >>> spark_sql(Not(Compare("price", "<", Parameter("limit"))), {"price": "int"})
    'NOT (`price` < :limit)'
    """
    types = dict(schema or {})
    _guess_types(tree, types)
    return _expression(tree, types)


def spark_values(tree: Tree, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the parameters as Spark wants them: patterns respelt, lists as lists."""
    patterns: set[str] = set()
    others: set[str] = set()
    for test in _tests(tree):
        names = {one.name for one in _operands(test) if isinstance(one, Parameter)}
        (patterns if isinstance(test, Like) else others).update(names)
    given: dict[str, Any] = {}
    for name, value in sorted(values.items()):
        if isinstance(value, tuple):
            # An array of literals has one type, and takes no casts.
            floats = any(isinstance(one, float) for one in value)
            given[name] = [float(one) for one in value] if floats else list(value)
            continue
        given[name] = pattern_of(value).text() if name in patterns else value
        if name in others and given[name] != value:
            problem = f"Spark reads the pattern :{name} otherwise, and it is also compared with ="
            raise PredicateError("UNSUPPORTED_EXPRESSION", problem)
    return given


def _expression(tree: Tree, types: dict[str, str]) -> str:
    if isinstance(tree, And | Or):
        word = " AND " if isinstance(tree, And) else " OR "
        return word.join(f"({_expression(part, types)})" for part in tree.parts)
    if isinstance(tree, Not):
        return f"NOT ({_expression(tree.part, types)})"
    column = _column(tree.attribute, types.get(tree.attribute))
    if isinstance(tree, Compare):
        return f"{column} {tree.op} {_operand(tree.operand)}"
    if isinstance(tree, Between):
        return f"{column} BETWEEN {_operand(tree.low)} AND {_operand(tree.high)}"
    if isinstance(tree, Member):
        if isinstance(tree.operands, Parameter):
            return f"array_contains({_operand(tree.operands)}, {column})"
        return f"{column} IN ({', '.join(map(_operand, tree.operands))})"
    if isinstance(tree, Like):
        operand = tree.operand
        if isinstance(operand, Constant):
            operand = Constant(pattern_of(str(operand.value)).text())
        return f"{column} LIKE {_operand(operand)}"
    if isinstance(tree, IsNull):
        return f"{column} IS NULL"
    assert isinstance(tree, Exists | Truth)
    return f"{column} IS NOT NULL" if isinstance(tree, Exists) else column


def _column(attribute: str, type_name: str | None) -> str:
    if "${" in attribute:  # Spark replaces ${...} before it reads, and names have no escapes
        problem = f"Spark cannot name the attribute {attribute[:80]!r}"
        raise PredicateError("UNSUPPORTED_EXPRESSION", problem)
    name = "`" + attribute.replace("`", "``") + "`"
    if type_name in ("bool", "int", "string", "timestamp"):
        return name
    if type_name == "float":
        return f"nanvl({name}, NULL)"
    is_nan = f"typeof({name}) IN ('double', 'float') AND isnan(TRY_CAST({name} AS DOUBLE))"
    return f"CASE WHEN {is_nan} THEN NULL ELSE {name} END"


def _operand(operand: Operand) -> str:
    if isinstance(operand, Parameter):
        return f":{operand.name}"
    value = operand.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
        return f"'{escaped}'"
    return f"{value!r}D" if isinstance(value, float) else repr(value)


def _guess_types(tree: Tree, types: dict[str, str]) -> None:
    """Constants tell a column's type: beside text or a truth value it cannot hold a NaN."""
    found: dict[str, set[str]] = {}
    for test in _tests(tree):
        kinds = found.setdefault(test.attribute, set())
        kinds.update(kind_of(one.value) or "" for one in _operands(test) if type(one) is Constant)
        if isinstance(test, Like | Truth):
            kinds.add("text" if isinstance(test, Like) else "truth")
    for attribute in sorted(found):
        names = sorted(found[attribute])
        if len(names) > 1:
            problem = f"a column has one type, {attribute[:80]!r} is compared with {names}"
            raise PredicateError("TYPE_MISMATCH", problem)
        if names and names[0] != "number":
            types.setdefault(attribute, {"text": "string", "truth": "bool"}[names[0]])


def _tests(tree: Tree) -> list[Atom]:
    if isinstance(tree, And | Or):
        return [one for part in tree.parts for one in _tests(part)]
    return _tests(tree.part) if isinstance(tree, Not) else [tree]


def _operands(test: Atom) -> tuple[Operand, ...]:
    if isinstance(test, Compare | Like):
        return (test.operand,)
    if isinstance(test, Between):
        return (test.low, test.high)
    if isinstance(test, Member):
        return (test.operands,) if isinstance(test.operands, Parameter) else test.operands
    return ()
