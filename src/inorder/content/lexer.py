"""Text into words, and the limits that hold before anything is parsed.

sqlglot cuts the text; this file keeps of its hundreds of token types the few a predicate needs, and
refuses what would let two readers see two different texts: control characters, comments, spaces
that are not ASCII, names with look-alike letters (write those in double quotes).
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from inorder.core.errors import PredicateError
from inorder.core.limits import CONTENT_TEXT_BYTES_MAX, CONTENT_TOKENS_MAX

Sort = Literal["word", "name", "string", "number", "sign", "end"]

# Unquoted names. The words of the grammar, and words that other readers of SQL give a meaning of
# their own to wherever they stand, need quotes to be names.
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GRAMMAR = "AND OR NOT IN LIKE BETWEEN IS NULL EXISTS TRUE FALSE"
_OTHERS = """
ALL ALTER ANALYZE ANY ARRAY AS BEGIN CACHE CALL CASE CAST COMMENT COMMIT CONNECT_BY_ROOT COPY
CREATE CROSS CURRENT_CATALOG CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DELETE DESC
DESCRIBE DISTINCT DROP ELSE END EXCEPT EXECUTE EXPLAIN FETCH FOR FROM GLOB GRANT GROUP HAVING IF
ILIKE INNER INSERT INTERSECT INTERVAL INTO ISNULL JOIN KILL LATERAL LIST LOAD LOCALTIME
LOCALTIMESTAMP MAP MERGE NOTNULL NULLABLE OBJECT ON OPTIMIZE ORDER OUTER PARTITIONED_BY PIVOT
PRAGMA PREPARE QUALIFY RANGE REGEXP RENAME RETURNING REVOKE RLIKE ROLLBACK SELECT SESSION_USER SET
SHOW STRAIGHT_JOIN STRUCT TABLE TABLESAMPLE THEN TRUNCATE UNCACHE UNION UNPIVOT UPDATE USE USING
VACUUM VALUES WHEN WHERE WITH XOR
"""
RESERVED = frozenset(_GRAMMAR.split()) | frozenset(_OTHERS.split())

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
# Everything a line of text may not hold, in quotes or out: C0 without tab and line ends, DEL, C1.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Word(Struct, frozen=True, gc=False):
    """One word of the text: `at` is its column, from 1; `glued` means that no space is before."""

    sort: Sort
    text: str
    at: int
    glued: bool

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.sort == "word" else ""


def words_of(text: str) -> list[Word]:
    """The words of a predicate, closed by one of sort `end`.

    >>> [word.text for word in words_of("price<:limit AND firm = 'it''s'")][:-1]
    ['price', '<', ':', 'limit', 'AND', 'firm', '=', "it's"]
    """
    _refuse_large_or_unclean(text)
    from sqlglot import Tokenizer
    from sqlglot.errors import SqlglotError

    try:
        tokens = Tokenizer().tokenize(text)
    except SqlglotError:
        column = _unclosed(text)
        raise PredicateError("SYNTAX", "a quote or comment is not closed", column, text) from None
    if len(tokens) > CONTENT_TOKENS_MAX:
        problem = f"{len(tokens)} words, the limit is {CONTENT_TOKENS_MAX}"
        raise PredicateError("PREDICATE_TOO_LARGE", problem, None, text)
    words: list[Word] = []
    end = 0
    for token in tokens:
        _refuse_gap(text, end, token.start)
        glued = token.start == end
        sort = _sort_of(token.token_type.name, token.text)
        if sort == "sign" and not (token.text.isascii() and token.token_type.name != "NUMBER"):
            problem = f"expected a word, number or sign in ASCII, found {token.text[:20]!a}"
            raise PredicateError("SYNTAX", problem, token.start + 1, text)
        words.append(Word(sort, token.text, token.start + 1, glued))
        end = token.end + 1
    _refuse_gap(text, end, len(text))
    words.append(Word("end", "", len(text) + 1, False))
    return words


def _refuse_large_or_unclean(text: str) -> None:
    if not isinstance(text, str):
        raise PredicateError("SYNTAX", f"expected text, found a {type(text).__name__}")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > CONTENT_TEXT_BYTES_MAX:
        problem = f"{size} bytes of text, the limit is {CONTENT_TEXT_BYTES_MAX}"
        raise PredicateError("PREDICATE_TOO_LARGE", problem, None, text[:80])
    if found := _CONTROL.search(text) or re.search("[\ud800-\udfff]", text):
        problem = f"expected printable text, found U+{ord(found.group()):04X}"
        raise PredicateError("SYNTAX", problem, found.start() + 1, text)


def _refuse_gap(text: str, start: int, end: int) -> None:
    """Between words only spaces may stand; sqlglot would skip comments and odd spaces too."""
    gap = text[start:end]
    if odd := gap.strip(" \t\r\n"):
        column = start + gap.index(odd) + 1
        problem = f"expected a space between words, found {odd[:20]!r}"
        raise PredicateError("SYNTAX", problem, column, text)


def _sort_of(token_type: str, text: str) -> Sort:
    if token_type == "STRING":
        return "string"
    if token_type == "IDENTIFIER":
        return "name"
    if token_type == "NUMBER" and _NUMBER.fullmatch(text):
        return "number"
    return "word" if PLAIN_NAME.fullmatch(text) else "sign"


def _unclosed(text: str) -> int:
    """The column of the quote or comment that is never closed."""
    at = 0
    for found in re.finditer(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|'|\"|/\*", text):
        at = found.start()
        if len(found.group()) == 1 or found.group() == "/*":
            break
    return at + 1
