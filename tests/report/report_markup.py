"""Reading a page back: as a tree of tags, and its SVG parts as XML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "br", "link", "img", "input", "hr"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """Checks while reading that every tag is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"<{tag}> names an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> out of place"

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def drawings(page: str, kind: str) -> list[ElementTree.Element]:
    """The SVGs of a class, parsed as XML."""
    found = re.findall(rf'<svg class="{kind}.*?</svg>', page, re.DOTALL)
    return [ElementTree.fromstring(svg) for svg in found]


def having(root: ElementTree.Element, *classes: str) -> list[ElementTree.Element]:
    return [each for each in root.iter() if set(classes) <= set(each.get("class", "").split())]
