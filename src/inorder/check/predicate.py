"""Does an event match a `where`? The judges' own evaluator, apart from every engine it judges.

The language: AND, OR, NOT, parentheses; comparisons = == != <> < <= > >= of one attribute with one
constant or parameter `:name`; [NOT] BETWEEN, IN, LIKE; IS [NOT] NULL; EXISTS attribute; a bare
boolean attribute. Nothing else: whatever is not on the list is refused by name.

The meaning is SQL's logic of true, false and unknown (None here). Comparing with an absent
attribute, or values of different kinds (text, number, truth value), is unknown; a null and a NaN
are absent; only IS NULL accepts absence. An event matches only if the whole is true.

sqlglot reads the text. It is loaded on first use, for `import inorder` must stay fast.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from inorder.check.logic import Test, test_of
from inorder.check.operand import Values
from inorder.core.errors import Misuse, TooLarge
from inorder.core.limits import PREDICATE_BYTES_MAX, PREDICATE_DEPTH_MAX


def matches(where: str, parameters: Values, attributes: Values) -> bool:
    """Whether an event with these attributes matches.

    >>> matches("price < :limit", {"limit": 10}, {"price": 9.5})
    True
    >>> matches("NOT price < 5", {}, {})
    False
    """
    return _parsed(where)(parameters, attributes) is True


@lru_cache(maxsize=1024)
def _parsed(where: str) -> Test:
    size = len(where.encode("utf-8", "surrogatepass"))
    if size > PREDICATE_BYTES_MAX:
        raise TooLarge("bytes of a predicate", size, PREDICATE_BYTES_MAX)
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        trees = sqlglot.parse(_prepared(where))
    except SqlglotError as error:
        raise Misuse(f"not a predicate: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise Misuse("not a predicate: nested too deep") from None
    if len(trees) != 1 or trees[0] is None:
        raise Misuse(f"a predicate is one expression, not {len(trees)} statements")
    return test_of(trees[0])


def _prepared(where: str) -> str:
    """The text, looked over token by token before the parser descends into it."""
    from sqlglot import Tokenizer, TokenType

    if any(sign < " " and sign not in "\t\n\r" for sign in where):
        raise Misuse("a predicate cannot hold control characters")
    tokens = Tokenizer().tokenize(where)
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise Misuse("a predicate is one expression: it cannot hold a semicolon")
    _limit_depth(tokens)
    return _spell_exists(where, tokens)


def _limit_depth(tokens: list[Any]) -> None:
    """Refuse what would nest too deep: parentheses, and NOTs in a row."""
    from sqlglot import TokenType

    levels: list[int] = []  # for each open parenthesis: itself and the NOTs before it
    nots = 0
    for token in tokens:
        kind = token.token_type
        if kind == TokenType.NOT:
            nots += 1
        elif kind == TokenType.L_PAREN:
            levels.append(nots + 1)
            nots = 0
        elif kind == TokenType.R_PAREN and levels:
            levels.pop()
            nots = 0
        elif kind in (TokenType.AND, TokenType.OR):
            nots = 0
        if (depth := sum(levels) + nots) > PREDICATE_DEPTH_MAX:
            raise TooLarge("depth of a predicate", depth, PREDICATE_DEPTH_MAX)


def _spell_exists(where: str, tokens: list[Any]) -> str:
    """EXISTS a.b becomes EXISTS(a.b), the only form sqlglot reads."""
    from sqlglot import TokenType

    inserts: list[tuple[int, str]] = []
    for at, token in enumerate(tokens):
        if token.token_type != TokenType.EXISTS:
            continue
        last = at + 1
        if last == len(tokens):
            raise Misuse("EXISTS needs an attribute")
        if tokens[last].token_type == TokenType.L_PAREN:
            continue
        while last + 2 < len(tokens) and tokens[last + 1].token_type == TokenType.DOT:
            last += 2
        inserts += [(token.end + 1, "("), (tokens[last].end + 1, ")")]
    for place, sign in reversed(inserts):
        where = where[:place] + sign + where[place:]
    return where
