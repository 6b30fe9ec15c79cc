r"""SQL LIKE in time linear in the text, without regular expressions.

`%` is any text and `_` any one character. A backslash makes the `%`, `_` or backslash after it
plain; before anything else it is itself.

Theory: `%` cuts a pattern into pieces. The first and the last are tied to the ends of the text;
each piece between takes the leftmost place it fits, which leaves the most room for the rest, so
nothing is ever tried twice.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

ANY = None  # the place of one character that may be any
Piece = tuple[str | None, ...]


class Pattern(Struct, frozen=True):
    """A pattern taken apart: `pieces` are what stands between its `%` signs."""

    pieces: tuple[Piece, ...]

    @property
    def prefix(self) -> str:
        """The characters every fitting text begins with."""
        first = self.pieces[0]
        end = first.index(ANY) if ANY in first else len(first)
        return "".join(sign for sign in first[:end] if sign is not None)

    @property
    def is_plain(self) -> bool:
        """Whether only the prefix itself fits."""
        return len(self.pieces) == 1 and ANY not in self.pieces[0]

    @property
    def is_prefix(self) -> bool:
        """Whether every text with the prefix fits."""
        first, rest = self.pieces[0], self.pieces[1:]
        return bool(rest) and ANY not in first and not any(rest)

    def text(self) -> str:
        """The pattern with every backslash that is itself doubled, as stricter readers want it."""
        return "%".join("".join(map(_spelt, piece)) for piece in self.pieces)


def like(text: str, pattern: str) -> bool:
    r"""Whether the whole of `text` fits `pattern`.

    >>> like("abcd", "a%_d"), like("50%", r"50\%"), like("500", r"50\%"), like("a\\b", r"a\b")
    (True, True, False, True)
    """
    first, *middle = pattern_of(pattern).pieces
    if not middle:
        return len(text) == len(first) and _fits(text, 0, first)
    last = middle.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not _fits(text, 0, first) or not _fits(text, end, last):
        return False
    for piece in middle:
        at = _after(piece, text, at, end)
        if at < 0:
            return False
    return True


@lru_cache(maxsize=1024)
def pattern_of(pattern: str) -> Pattern:
    r"""A pattern taken apart.

    >>> pattern_of("ab%").is_prefix, pattern_of(r"a\_b").is_plain, pattern_of("a_%").prefix
    (True, True, 'a')
    """
    pieces: list[list[str | None]] = [[]]
    escaped = False
    for sign in pattern:
        if escaped:
            escaped = False
            if sign not in "%_\\":
                pieces[-1] += ["\\", sign]
            else:
                pieces[-1].append(sign)
        elif sign == "\\":
            escaped = True
        elif sign == "%":
            pieces.append([])
        else:
            pieces[-1].append(ANY if sign == "_" else sign)
    if escaped:
        pieces[-1].append("\\")
    return Pattern(tuple(tuple(piece) for piece in pieces))


def _spelt(sign: str | None) -> str:
    if sign is ANY:
        return "_"
    return f"\\{sign}" if sign in "%_\\" else sign


def _fits(text: str, at: int, piece: Piece) -> bool:
    return all(sign is ANY or text[at + i] == sign for i, sign in enumerate(piece))


def _after(piece: Piece, text: str, start: int, end: int) -> int:
    """Where the leftmost fit of the piece within text[start:end] ends; -1 when there is none."""
    if ANY not in piece:
        found = text.find("".join(sign for sign in piece if sign is not None), start, end)
        return -1 if found < 0 else found + len(piece)
    # Shift-and: bit i of `partial` says that the last i + 1 characters fit the piece's first ones.
    anywhere = 0
    masks: dict[str, int] = {}
    for i, sign in enumerate(piece):
        if sign is None:
            anywhere |= 1 << i
        else:
            masks[sign] = masks.get(sign, 0) | 1 << i
    whole = 1 << len(piece) - 1
    partial = 0
    for at in range(start, end):
        partial = (partial << 1 | 1) & (masks.get(text[at], 0) | anywhere)
        if partial & whole:
            return at + 1
    return -1
