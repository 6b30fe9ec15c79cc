"""Words of the report: escaping, shortening, numbers. Nothing reaches the page around it."""

from __future__ import annotations

import html
import json
import re


def text(raw: object, lines: bool = False) -> str:
    """Escaped for HTML and XML; characters that cannot be seen (or steer bidi text) show as �."""
    return html.escape("".join(_visible(char, lines) for char in str(raw)))


def prose(raw: object) -> str:
    """A sentence of ours, or of a judge: `backticks` become code.

    >>> prose("no column `after` <here>")
    'no column <code>after</code> &lt;here&gt;'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(raw))


def name(raw: object, longest: int = 24) -> str:
    """An id or a title: cut in the middle when long, with the full text in a title."""
    full = str(raw)
    if len(full) <= longest:
        return f"<bdi>{text(full)}</bdi>"
    return f'<bdi title="{text(full)}">{text(shorten(full, longest))}</bdi>'


def shorten(full: str, longest: int) -> str:
    """Both ends survive: ids of one publisher differ at the end, publishers at the start.

    >>> shorten("warehouse-north-7:000123", 12)
    'wareho…00123'
    """
    if len(full) <= longest:
        return full
    tail = (longest - 1) // 2
    return f"{full[: longest - 1 - tail]}…{full[len(full) - tail :]}"


def label(key: object) -> str:
    """A field's name as words."""
    return str(key).replace("_", " ").strip() or "unnamed"


def number(count: float) -> str:
    """
    >>> number(1234567), number(0.25), number(2.0)
    ('1,234,567', '0.25', '2')
    """
    if isinstance(count, int):
        return f"{count:,}"
    return f"{count:,.6g}"


def plural(count: int, noun: str) -> str:
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def value(raw: object, longest: int) -> str:
    """Any JSON value on one line, as markup."""
    if raw is None:
        return "none"
    if isinstance(raw, bool):
        return "yes" if raw else "no"
    if isinstance(raw, int | float):
        return number(raw)
    if isinstance(raw, str):
        return name(raw, longest)
    if isinstance(raw, list | tuple) and all(isinstance(item, str | int | float) for item in raw):
        return name(", ".join(str(item) for item in raw) or "none", longest)
    if isinstance(raw, dict) and all(isinstance(item, str | int | float) for item in raw.values()):
        said = "; ".join(f"{label(key)} {item}" for key, item in raw.items())
        return name(said or "none", longest)
    return name(json.dumps(raw, ensure_ascii=False, default=str), longest)


def _visible(char: str, lines: bool) -> str:
    if char.isprintable() or (lines and char == "\n"):
        return char
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
