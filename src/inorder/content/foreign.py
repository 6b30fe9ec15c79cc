"""What other SQL would make of a text that is no predicate: only to say so in the refusal.

sqlglot reads the text as a WHERE clause. If it can, the text is SQL that we do not support, and the
first node that is not on the list below names the construct. Its parser recurses, so it is asked
only about texts of a modest size.
"""

from __future__ import annotations

_NODES = """
And Or Not Paren EQ NEQ LT LTE GT GTE Between In Like Is Null Exists Column Dot Identifier Literal
Neg Boolean Placeholder
"""
SUPPORTED = frozenset(_NODES.split())

# A refusal of a longer or deeper text does without the name.
_WORDS_MAX = 500
_DEPTH_MAX = 16


def construct_of(text: str, words: int) -> str | None:
    """The name of the unsupported construct; None when no SQL reads like this.

    >>> construct_of("upper(a) = 'X'", 7), construct_of("a = = 1", 4)
    ('Upper', None)
    """
    if words > _WORDS_MAX or text.count("(") > _DEPTH_MAX or ";" in text:
        return None
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(f"SELECT 1 WHERE {text}")
    except (SqlglotError, RecursionError):
        return None
    where = tree.args.get("where")
    if type(tree).__name__ != "Select" or where is None:
        return type(tree).__name__
    beside = [
        key for key, part in tree.args.items() if part and key not in ("expressions", "where")
    ]
    if beside:
        return beside[0].upper()
    for node in where.this.walk():
        if type(node).__name__ not in SUPPORTED:
            return type(node).__name__
    return "not in this place"
