"""A predicate: parsed once, given values as often as you like, and turned into boxes.

Rule 1: values are checked all together before any is taken; a refused change changes nothing.
Rule 2: a parameter keeps its kind for life: another kind is a typing error far more often than a
        wish. A list holds values of one kind; an empty list fits every kind.
Rule 3: `bind` and `matches` mean the same: an event is in a box exactly when the predicate, word by
        word, is true for it. Attributes that are whole numbers by schema must be so in events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from inorder.content import logic
from inorder.content.atom import SCHEMA_KINDS
from inorder.content.bind import boxes_of
from inorder.content.box import Box
from inorder.content.normal import normal
from inorder.content.skeleton import Filling, Skeleton, Vector, skeleton_of
from inorder.content.spark import spark_sql, spark_values
from inorder.content.syntax import ParameterUse, Reading, Tree, read, show
from inorder.content.value import Kind, Value, fits, kind_of, plain
from inorder.core.errors import Misuse, PredicateError
from inorder.core.limits import CONTENT_SET_MEMBERS_MAX

Bindings = Mapping[str, Any]


class Predicate:
    """A parsed predicate; it never changes.

    >>> cheap = Predicate.parse("firm = :firm AND price < :limit")
    >>> (box,) = cheap.bind({"firm": "IBM", "limit": 10})
    >>> box.contains({"firm": "IBM", "price": 9.5}), box.contains({"firm": "IBM"})
    (True, False)
    """

    def __init__(self, text: str, reading: Reading, schema: Mapping[str, str] | None) -> None:
        whole = {name for name, kind in (schema or {}).items() if kind in ("int", "timestamp")}
        self.source = text  # as written: columns point into it
        self.tree: Tree = reading.tree
        self.text = show(reading.tree)
        self.parameters: tuple[ParameterUse, ...] = reading.parameters
        self.schema = None if schema is None else dict(schema)
        forms = [skeleton_of(one, frozenset(whole)) for one in normal(reading.tree, text)]
        self.skeleton: tuple[Skeleton, ...] = tuple(skeleton for skeleton, _ in forms)
        self._sources = tuple(sources for _, sources in forms)
        names = {one.attribute for form in self.skeleton for one in form.conditions()}
        self.attributes: tuple[str, ...] = tuple(sorted(names))
        self._uses = {use.name: use for use in reading.parameters}

    @classmethod
    def parse(cls, text: str, schema: Mapping[str, str] | None = None) -> Self:
        """`schema` maps attributes to bool, int, float, string or timestamp."""
        for name, type_name in sorted((schema or {}).items()):
            if type_name not in SCHEMA_KINDS:
                raise Misuse(f"attribute {name!r} is {type_name!r}, not {', '.join(SCHEMA_KINDS)}")
        return cls(text, read(text, schema), schema)

    def __repr__(self) -> str:
        return f"Predicate({self.text!r})"

    def check(self, values: Bindings, previous: Bindings | None = None) -> dict[str, Filling]:
        """All values, checked and in their one spelling.

        With the `previous` ones, which this method returned, `values` may be only those to change.

        >>> cheap = Predicate.parse("firm IN :firms AND price < :limit")
        >>> first = cheap.check({"firms": {"b", "a"}, "limit": 10.0})
        >>> cheap.check({"limit": 12.5}, first)
        {'firms': ('a', 'b'), 'limit': 12.5}
        """
        for name in sorted(values, key=str):
            if name not in self._uses:
                problem = f"expected a parameter of the text, found {name!r}"
                raise PredicateError("UNKNOWN_PARAMETER", problem, None, self.source)
        checked: dict[str, Filling] = {}
        for name, use in self._uses.items():
            if name in values:
                checked[name] = self._checked(use, values[name])
                if previous is not None and name in previous:
                    self._same_kind(use, checked[name], previous[name])
            elif previous is not None and name in previous:
                checked[name] = previous[name]
            else:
                raise self._error("UNBOUND_PARAMETER", use, "has no value")
        return checked

    def bind(self, values: Bindings) -> tuple[Box, ...]:
        """The boxes with these values: none when nothing can match at present."""
        found: dict[Box, None] = {}
        for skeleton, vector in zip(self.skeleton, self.values_of(values), strict=True):
            found.update(dict.fromkeys(boxes_of(skeleton, vector)))
        return tuple(found)

    def values_of(self, values: Bindings) -> tuple[Vector, ...]:
        """For each skeleton the vector of its values."""
        checked = self.check(values)
        return tuple(sources.values_of(checked) for sources in self._sources)

    def matches(self, values: Bindings, attributes: Mapping[str, Any]) -> bool:
        """Whether an event matches, taken from the tree word by word; `values` are not checked."""
        return logic.matches(self.tree, values, attributes)

    def spark_sql(self) -> str:
        """The predicate as a Spark SQL expression with `:name` parameters."""
        return spark_sql(self.tree, self.schema)

    def spark_values(self, values: Bindings) -> dict[str, Any]:
        """The values of the parameters for `spark.sql(text, args=...)`; lists stay lists."""
        return spark_values(self.tree, self.check(values))

    def _checked(self, use: ParameterUse, value: Any) -> Filling:
        if not use.many:
            return self._plain(use, value)
        if not isinstance(value, list | tuple | set | frozenset):
            raise self._error("PARAMETER_TYPE", use, f"must be a list, not {_name(value)}")
        if len(value) > CONTENT_SET_MEMBERS_MAX:
            problem = f"has {len(value)} members, the limit is {CONTENT_SET_MEMBERS_MAX}"
            raise self._error("PREDICATE_TOO_LARGE", use, problem)
        kinds = sorted({kind_of(one) or "none" for one in value})
        if len(kinds) > 1 or "none" in kinds:
            problem = f"must hold values of one kind, not of {', '.join(kinds)}"
            raise self._error("PARAMETER_TYPE", use, problem)
        return tuple(sorted({self._plain(use, one) for one in sorted(value)}))

    def _plain(self, use: ParameterUse, value: Any) -> Value:
        kind = kind_of(value)
        if kind is None:
            raise self._error("PARAMETER_TYPE", use, f"cannot be {_name(value)}")
        if use.kind is not None and kind != use.kind:
            raise self._error("PARAMETER_TYPE", use, f"must be {use.kind}, not {kind}")
        if not fits(value):
            raise self._error("PARAMETER_TYPE", use, "is a whole number of more than 64 bits")
        return plain(value)

    def _same_kind(self, use: ParameterUse, value: Filling, previous: Filling) -> None:
        before, now = _kind(previous), _kind(value)
        if before is not None and now is not None and before != now:
            raise self._error("PARAMETER_TYPE", use, f"was {before} and cannot become {now}")

    def _error(self, code: str, use: ParameterUse, problem: str) -> PredicateError:
        return PredicateError(code, f"parameter :{use.name} {problem}", use.column, self.source)


def _kind(filling: Filling) -> Kind | None:
    if isinstance(filling, tuple):
        return kind_of(filling[0]) if filling else None
    return kind_of(filling)


def _name(value: Any) -> str:
    if isinstance(value, float):
        return "NaN"
    return "None" if value is None else f"a {type(value).__name__}"
