"""SQL LIKE without regular expressions, in time that does not explode.

`%` is any text, `_` any one character; a backslash before either, or before a backslash, makes it
plain. The pattern is cut at its `%` into pieces; each piece is looked for once, leftmost first,
which is enough because whatever follows only gains from more room.
"""

from __future__ import annotations

from functools import lru_cache

# A piece is its characters; None stands for any one character.
Piece = tuple[str | None, ...]


def like(text: str, pattern: str) -> bool:
    r"""Whether the whole of `text` has the shape of `pattern`.

    >>> like("abcd", "a%_d"), like("50%", r"50\%"), like("500", r"50\%")
    (True, True, False)
    """
    pieces = _pieces(pattern)
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return len(text) == len(first) and _fits(text, 0, first)
    start, end = len(first), len(text) - len(last)
    if start > end or not _fits(text, 0, first) or not _fits(text, end, last):
        return False
    for piece in pieces[1:-1]:
        start = _find_end(text, start, end, piece)
        if start < 0:
            return False
    return True


@lru_cache(maxsize=1024)
def _pieces(pattern: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    piece: list[str | None] = []
    signs = iter(range(len(pattern)))
    for at in signs:
        sign = pattern[at]
        following = pattern[at + 1 : at + 2]
        if sign == "\\" and following and following in "%_\\":
            piece.append(following)
            next(signs)
        elif sign == "%":
            pieces.append(tuple(piece))
            piece = []
        else:
            piece.append(None if sign == "_" else sign)
    pieces.append(tuple(piece))
    return tuple(pieces)


def _fits(text: str, at: int, piece: Piece) -> bool:
    return all(sign is None or text[at + i] == sign for i, sign in enumerate(piece))


def _find_end(text: str, start: int, end: int, piece: Piece) -> int:
    """Where the leftmost fit of `piece` within text[start:end] ends, or -1."""
    plain = [sign for sign in piece if sign is not None]
    if len(plain) == len(piece):
        at = text.find("".join(plain), start, end)
        return -1 if at < 0 else at + len(piece)
    # One bit per character of the piece: bit i is set while the last i + 1 characters fit.
    anywhere = sum(1 << i for i, sign in enumerate(piece) if sign is None)
    fits: dict[str, int] = {}
    for i, sign in enumerate(piece):
        if sign is not None:
            fits[sign] = fits.get(sign, anywhere) | 1 << i
    goal = 1 << (len(piece) - 1)
    alive = 0
    for at in range(start, end):
        alive = (alive << 1 | 1) & fits.get(text[at], anywhere)
        if alive & goal:
            return at + 1
    return -1
