"""One test of a predicate, read word by word; with a schema, also checked against it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from inorder.content.foreign import construct_of
from inorder.content.lexer import RESERVED, Word
from inorder.content.tree import (
    MIRRORED,
    OPERATORS,
    And,
    Between,
    Compare,
    Constant,
    Exists,
    IsNull,
    Like,
    Member,
    Not,
    Operand,
    Parameter,
    Tree,
    Truth,
)
from inorder.content.value import Kind, fits, kind_of
from inorder.core.errors import PredicateError
from inorder.core.limits import CONTENT_SET_MEMBERS_MAX

_OPERATORS = {**dict(zip(OPERATORS, OPERATORS, strict=True)), "==": "=", "!=": "<>"}
SCHEMA_KINDS: dict[str, Kind] = {
    "bool": "truth",
    "int": "number",
    "float": "number",
    "string": "text",
    "timestamp": "number",
}


class ParameterUse(Struct, frozen=True, gc=False):
    """A parameter: whether it holds a list, its kind where one is required, its first column."""

    name: str
    many: bool
    kind: Kind | None
    column: int


class _Side(Struct, frozen=True, gc=False):
    """A value as it stands in the text: an attribute's name, or an operand."""

    what: str | Operand
    word: Word


class AtomReader:
    """Reads tests from the words of a text, and keeps the place."""

    def __init__(self, text: str, words: list[Word], schema: Mapping[str, str] | None) -> None:
        self._text = text
        self._words = words
        self._at = 0
        self._schema = schema
        self._uses: dict[str, ParameterUse] = {}

    @property
    def current(self) -> Word:
        return self._words[self._at]

    def parameters(self) -> tuple[ParameterUse, ...]:
        return tuple(self._uses.values())

    def error(self, code: str, problem: str, word: Word | None = None) -> PredicateError:
        return PredicateError(code, problem, (word or self.current).at, self._text)

    def refusal(self, expected: str) -> PredicateError:
        """The current word does not belong here; other SQL may think otherwise."""
        word = self.current
        found = repr(word.text[:40]) if word.text else "the end" if word.sort == "end" else "''"
        if construct := construct_of(self._text, len(self._words)):
            problem = f"expected {expected}, found {found} ({construct})"
            return self.error("UNSUPPORTED_EXPRESSION", problem)
        return self.error("SYNTAX", f"expected {expected}, found {found}")

    def take_keyword(self, keyword: str) -> bool:
        taken = self.current.keyword == keyword
        self._at += taken
        return taken

    def take_sign(self, sign: str) -> bool:
        taken = self.current.sort == "sign" and self.current.text == sign
        self._at += taken
        return taken

    def atom(self) -> Tree:
        if self.take_keyword("EXISTS"):
            start = self.current
            attribute = self._attribute("an attribute after EXISTS")
            self._known(attribute, start)
            return Exists(attribute)
        side = self._side("an attribute, a value, NOT or (")
        if self.take_keyword("IS"):
            return self._is_null(side)
        if self.current.sort == "sign" and self.current.text in _OPERATORS:
            op = _OPERATORS[self.current.text]
            self._at += 1
            return self._compare(side, op, self._side("an attribute or a value"))
        negated = self.take_keyword("NOT")
        test = self._worded(side, negated)
        return Not(test) if negated else test

    def _worded(self, side: _Side, negated: bool) -> Tree:
        if self.take_keyword("BETWEEN"):
            return self._between(side)
        if self.take_keyword("IN"):
            return self._member(side)
        if self.take_keyword("LIKE"):
            return self._like(side)
        if negated:
            raise self.refusal("BETWEEN, IN or LIKE")
        if not isinstance(side.what, str):
            if self.current.sort == "end" or self.current.keyword in ("AND", "OR"):
                problem = "expected a test of an attribute, found a value alone"
                raise self.error("UNSUPPORTED_EXPRESSION", problem, side.word)
            raise self.refusal("an operator")
        if self.current.sort == "sign" and self.current.text != ")":
            raise self.refusal("an operator, AND, OR or the end")
        self._want(side, "truth", side.word)
        return Truth(side.what)

    def _is_null(self, side: _Side) -> Tree:
        negated = self.take_keyword("NOT")
        if not self.take_keyword("NULL"):
            raise self.refusal("NULL" if negated else "NULL or NOT NULL")
        attribute = self._only_attribute(side, "IS NULL")
        self._known(attribute, side.word)
        return Not(IsNull(attribute)) if negated else IsNull(attribute)

    def _compare(self, left: _Side, op: str, right: _Side) -> Compare:
        if isinstance(left.what, str) == isinstance(right.what, str):
            both = "two attributes" if isinstance(left.what, str) else "no attribute"
            problem = f"expected one attribute and one constant or parameter, found {both}"
            raise self.error("UNSUPPORTED_EXPRESSION", problem, right.word)
        if not isinstance(left.what, str):
            left, op, right = right, MIRRORED[op], left
        assert isinstance(left.what, str)
        assert not isinstance(right.what, str)
        self._fit(left, right)
        return Compare(left.what, op, right.what)

    def _between(self, side: _Side) -> Tree:
        low = self._side("a value after BETWEEN")
        if not self.take_keyword("AND"):
            raise self.refusal("AND and the upper end of BETWEEN")
        high = self._side("the upper end of BETWEEN")
        least, most = self._compare(side, ">=", low), self._compare(side, "<=", high)
        if isinstance(side.what, str):
            return Between(side.what, least.operand, most.operand)
        return And((least, most))  # a value between two attributes: two comparisons

    def _member(self, side: _Side) -> Member:
        attribute = self._only_attribute(side, "IN")
        self._known(attribute, side.word)
        if self.current.text == ":" and self.current.sort == "sign":
            start = self.current
            name = self._parameter()
            self._use(name, True, self._kind(attribute), start)
            return Member(attribute, Parameter(name))
        if not self.take_sign("("):
            raise self.refusal("( or a parameter after IN")
        operands: list[Operand] = []
        while True:
            if self.take_sign(")"):
                self._at -= 1
                raise self.error("SYNTAX", "expected a value, found ')'")
            one = self._side("a value in the list of IN")
            if isinstance(one.what, str):
                problem = "expected constants and parameters in IN, found an attribute"
                raise self.error("UNSUPPORTED_EXPRESSION", problem, one.word)
            self._fit(side, one)
            operands.append(one.what)
            if self.take_sign(")"):
                break
            if not self.take_sign(","):
                raise self.refusal(", or ) in the list of IN")
        if len(operands) > CONTENT_SET_MEMBERS_MAX:
            problem = f"{len(operands)} members of IN, the limit is {CONTENT_SET_MEMBERS_MAX}"
            raise self.error("PREDICATE_TOO_LARGE", problem, side.word)
        return Member(attribute, tuple(operands))

    def _like(self, side: _Side) -> Like:
        attribute = self._only_attribute(side, "LIKE")
        pattern = self._side("a pattern after LIKE")
        operand = pattern.what
        if isinstance(operand, str) or (
            isinstance(operand, Constant) and not isinstance(operand.value, str)
        ):
            problem = "expected a 'string' or a parameter after LIKE"
            raise self.error("UNSUPPORTED_EXPRESSION", problem, pattern.word)
        self._want(side, "text", side.word)
        if isinstance(operand, Parameter):
            self._use(operand.name, False, "text", pattern.word)
        return Like(attribute, operand)

    def _only_attribute(self, side: _Side, before: str) -> str:
        if not isinstance(side.what, str):
            problem = f"expected an attribute before {before}, found a value"
            raise self.error("UNSUPPORTED_EXPRESSION", problem, side.word)
        return side.what

    # Values.

    def _side(self, expected: str) -> _Side:
        start = self.current
        if start.sort == "string":
            self._at += 1
            return _Side(Constant(start.text), start)
        if start.keyword in ("TRUE", "FALSE"):
            self._at += 1
            return _Side(Constant(start.keyword == "TRUE"), start)
        if start.sort == "number" or (start.sort == "sign" and start.text in ("-", ".")):
            return _Side(Constant(self._number(expected)), start)
        if start.sort == "sign" and start.text == ":":
            return _Side(Parameter(self._parameter()), start)
        return _Side(self._attribute(expected), start)

    def _number(self, expected: str) -> int | float:
        start = self.current
        sign = "-" if self.take_sign("-") else ""
        point = "." if self.take_sign(".") else ""
        word = self.current
        if word.sort != "number" or (point and not (word.glued and word.text[0].isdigit())):
            raise self.refusal(expected if word is start else "a number")
        text = sign + point + word.text
        try:
            number = int(text) if word.text.isdigit() and not point else float(text)
        except ValueError:
            raise self.error("SYNTAX", "expected a number of fewer digits", start) from None
        if not fits(number) or not math.isfinite(number):
            problem = "expected a number of 64 bits, found a larger one; give it as a parameter"
            raise self.error("SYNTAX", problem, start)
        self._at += 1
        return number

    def _parameter(self) -> str:
        self._at += 1
        word = self.current
        if word.sort != "word" or not word.glued:
            raise self.error("SYNTAX", "expected the name of a parameter right after :")
        self._at += 1
        return word.text

    def _attribute(self, expected: str) -> str:
        names = [self._name(expected)]
        while self.take_sign("."):
            names.append(self._name("a name after ."))
        return ".".join(names)

    def _name(self, expected: str) -> str:
        word = self.current
        free = word.keyword not in RESERVED if word.sort == "word" else word.sort == "name"
        if not word.text and word.sort == "name":
            raise self.error("SYNTAX", "expected a name between the quotes")
        if not free:
            raise self.refusal(expected)
        self._at += 1
        return word.text

    # The schema, and what it demands of parameters.

    def _kind(self, attribute: str) -> Kind | None:
        return SCHEMA_KINDS[self._schema[attribute]] if self._schema is not None else None

    def _known(self, attribute: str, word: Word) -> None:
        if self._schema is not None and attribute not in self._schema:
            problem = f"expected an attribute of the schema, found {attribute[:80]!r}"
            raise self.error("UNKNOWN_ATTRIBUTE", problem, word)

    def _want(self, side: _Side, kind: Kind, word: Word) -> None:
        """The attribute must be of this kind, or of any when there is no schema."""
        attribute = side.what
        assert isinstance(attribute, str)
        self._known(attribute, side.word)
        if self._kind(attribute) not in (None, kind):
            problem = f"expected {self._kind(attribute)} as {attribute[:80]!r} is, found {kind}"
            raise self.error("TYPE_MISMATCH", problem, word)

    def _fit(self, side: _Side, other: _Side) -> None:
        attribute = side.what
        assert isinstance(attribute, str)
        self._known(attribute, side.word)
        if isinstance(other.what, Parameter):
            self._use(other.what.name, False, self._kind(attribute), other.word)
        elif isinstance(other.what, Constant) and (kind := kind_of(other.what.value)):
            self._want(side, kind, other.word)

    def _use(self, name: str, many: bool, kind: Kind | None, word: Word) -> None:
        known = self._uses.get(name)
        if known is None:
            self._uses[name] = ParameterUse(name, many, kind, word.at)
            return
        if known.many != many:
            problem = f"parameter :{name} is a list in one place and a value in another"
            raise self.error("PARAMETER_TYPE", problem, word)
        if known.kind is not None and kind is not None and known.kind != kind:
            problem = f"parameter :{name} is {known.kind} in one place, {kind} in another"
            raise self.error("TYPE_MISMATCH", problem, word)
        self._uses[name] = ParameterUse(name, many, known.kind or kind, known.column)
