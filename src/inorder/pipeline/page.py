"""The audit's report: one HTML page that opens from a file, without scripts, fonts or a network.

Everything on the page that came from a log is hostile until escaped: text passes through
`page_words.text` or `page_words.name` on its way into the markup, and nothing else does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from msgspec import Struct

from inorder.check.extent import extent
from inorder.check.verdict import Verdict
from inorder.pipeline.page_chart import histogram_figure
from inorder.pipeline.page_headline import KEPT_MEANS, Headline, headline
from inorder.pipeline.page_svg import LEGEND, picture_figure
from inorder.pipeline.page_witness import witness_sentence
from inorder.pipeline.page_words import label, name, number, plural, prose, shorten, text, value

# A reader studies a handful of pictures; the audit may find hundreds.
PICTURES_MAX = 5
# A scenario describes itself in a few lines; beyond this the page stops being about the audit.
ABOUT_MAX = 40

UNTITLED = "Audit of an unnamed run"
LATENCY_ORDER = ("network", "hold", "end to end")
MARKS = {"kept": "✓", "broken": "✗", "not judged": "–"}

# The page needs nothing from anywhere, so the browser is told to refuse everything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Histogram(Struct):
    """Seconds: `counts[i]` samples lie between `edges[i]` and `edges[i + 1]`."""

    edges: list[float]
    counts: list[int]


class Mark(Struct):
    """An event on a lane at a moment: a publication or a delivery."""

    event: str
    lane: str
    at: float
    in_order: bool = True
    crossing: bool = False


class SpaceTime(Struct):
    """What a violation looked like: who published, who delivered, and when."""

    caption: str
    lanes: list[str]
    publications: list[Mark]
    deliveries: list[Mark]


class ReportData(Struct):
    """All the page shows. `promises` keep their order; `latency` is told in seconds."""

    title: str
    source: str
    rows: int
    verdict: str
    promises: dict[str, Verdict]
    about: dict[str, Any] = {}
    latency: dict[str, Histogram] = {}
    pictures: list[SpaceTime] = []
    # What decides the headline; None: all promises do.
    promised: list[str] | None = None


def render(data: ReportData) -> str:
    """One self-contained HTML page; equal data give equal text."""
    style = files("inorder.pipeline").joinpath("report.css").read_text(encoding="utf-8")
    says = headline(data.promises, data.rows, data.promised)
    sections = [
        _header(data, says),
        "<main>",
        _promises(data.promises, data.promised),
        _witnesses(data.promises),
        _pictures(data.pictures),
        _latency(data.latency),
        "</main>",
        _footer(data),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(shorten(data.title or UNTITLED, 120))}: {text(says.words)}</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _header(data: ReportData, says: Headline) -> str:
    recorded = ""
    if data.verdict and data.verdict not in MARKS:
        recorded = f' <span class="recorded">Recorded verdict: {text(data.verdict)}.</span>'
    return (
        '<header>\n<p class="eyebrow">inorder audit</p>\n'
        f"<h1>{name(data.title or UNTITLED, 120)}</h1>\n"
        f'<div class="banner {says.tone}">\n'
        f'<p class="verdict"><span class="glyph" aria-hidden="true">{says.glyph}</span>'
        f"<span>{text(says.words)}</span></p>\n"
        f"<p>{text(says.detail)}{recorded}</p>\n</div>\n</header>"
    )


def _promises(promises: dict[str, Verdict], promised: Sequence[str] | None) -> str:
    if not promises:
        return _section("promises", "Promises", "<p>No promise was put to a judge.</p>")
    rows: list[str] = []
    for promise, verdict in promises.items():
        rows.append(_promise_row(promise, verdict, False, _is_promised(promise, promised)))
        rows += [_promise_row(also, inner, True, True) for also, inner in verdict.also.items()]
    head = "".join(
        f'<th scope="col"{cls}>{word}</th>'
        for word, cls in (
            ("Promise", ""),
            ("Verdict", ""),
            ("Violations", ' class="count"'),
            ("What was looked at", ""),
        )
    )
    table = (
        f'<table class="promises">\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table>"
    )
    return _section("promises", "Promises", table)


def _promise_row(promise: str, verdict: Verdict, related: bool, promised: bool) -> str:
    state = _state(verdict)
    meaning = KEPT_MEANS.get(promise, "")
    if not promised:
        meaning += " (not promised)"
    gloss = f'<span class="gloss">{text(meaning)}</span>' if meaning else ""
    tie = '<span class="tie">related: </span>' if related else ""
    violations = number(verdict.violations) if verdict.judged else "–"
    said = extent(verdict)
    looked = f'<span class="extent">{text(said)}</span> ' if said and verdict.judged else ""
    looked += " · ".join(
        f'<span class="pair">{text(label(key))} {number(count)}</span>'
        for key, count in verdict.counts.items()
    )
    if not verdict.judged:
        why = verdict.why or "the log lacks what it needs"
        looked = f"because {'it ' if why.startswith('needs ') else ''}{prose(why)}"
    return (
        f'<tr class="{"related" if related else "promise"}">'
        f'<th scope="row">{tie}{name(label(promise), 40)}{gloss}</th>'
        f'<td class="state {state.replace(" ", "-")}">'
        f'<span aria-hidden="true">{MARKS[state]}</span> {state}</td>'
        f'<td class="count{"" if verdict.judged else " blank"}">{violations}</td>'
        f'<td class="looked">{looked or "–"}</td></tr>'
    )


def _witnesses(promises: dict[str, Verdict]) -> str:
    items: list[str] = []
    for promise, verdict in promises.items():
        items += _witness(promise, verdict, "")
        for also, inner in verdict.also.items():
            items += _witness(also, inner, f", related to {label(promise)}")
    if not items:
        return ""
    lead = (
        '<p class="lead">Violations are counted exactly; for each broken promise this is the '
        "smallest one found.</p>\n"
    )
    return _section("witnesses", "Smallest witnesses", lead + "\n".join(items))


def _witness(promise: str, verdict: Verdict, tie: str) -> list[str]:
    if not verdict.judged or verdict.kept:
        return []
    data, sentence = "", "No witness was recorded."
    if verdict.witness:
        sentence = witness_sentence(verdict.witness)
        plain = json.dumps(verdict.witness, indent=2, ensure_ascii=False, default=str)
        data = (
            "\n<details><summary>The witness as data</summary>"
            f"<pre>{text(plain, lines=True)}</pre></details>"
        )
    count = plural(verdict.violations, "violation")
    return [
        f'<article class="witness">\n<h3>{name(label(promise), 40)}'
        f' <small>{text(count)}{text(tie)}</small></h3>\n<p class="sentence">{sentence}</p>'
        f"{data}\n</article>"
    ]


def _pictures(pictures: list[SpaceTime]) -> str:
    if not pictures:
        return ""
    shown = pictures[:PICTURES_MAX]
    clipped = ""
    if len(pictures) > len(shown):
        clipped = (
            f'<p class="lead">The first {len(shown)} of {number(len(pictures))} pictures are '
            "drawn here; the rest are left out to keep the page readable.</p>\n"
        )
    figures = "\n".join(picture_figure(picture, at) for at, picture in enumerate(shown, 1))
    return _section("pictures", "How it happened", clipped + LEGEND + "\n" + figures)


def _latency(latency: dict[str, Histogram]) -> str:
    if not latency:
        return ""
    rank = {key: at for at, key in enumerate(LATENCY_ORDER)}
    keys = sorted(latency, key=lambda key: rank.get(label(key), len(rank)))
    figures = "\n".join(
        histogram_figure(key, latency[key].edges, latency[key].counts, at)
        for at, key in enumerate(keys, 1)
    )
    lead = (
        '<p class="lead">Median and p99 are estimated from the bins, as if the samples of a bin '
        "lay evenly in it. Bars are equally wide even where the bins are not.</p>\n"
    )
    return _section("latency", "Latency", f'{lead}<div class="charts">\n{figures}\n</div>')


def _footer(data: ReportData) -> str:
    pairs = [
        ("Audited", name(data.source, 200)),
        ("Rows", number(data.rows)),
        ("Verdict", text(data.verdict or "none recorded")),
    ]
    about = list(data.about.items())
    pairs += [(name(_capital(label(key)), 40), value(what, 160)) for key, what in about[:ABOUT_MAX]]
    if len(about) > ABOUT_MAX:
        pairs.append(("More", f"{number(len(about) - ABOUT_MAX)} further entries not shown"))
    items = "\n".join(f"<div><dt>{key}</dt><dd>{what}</dd></div>" for key, what in pairs)
    return f"<footer>\n<h2>What was audited</h2>\n<dl>\n{items}\n</dl>\n</footer>"


def _section(key: str, title: str, body: str) -> str:
    return (
        f'<section aria-labelledby="{key}-title">\n<h2 id="{key}-title">{title}</h2>\n'
        f"{body}\n</section>"
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _is_promised(promise: str, promised: Sequence[str] | None) -> bool:
    return promised is None or promise in promised


def _state(verdict: Verdict) -> str:
    if not verdict.judged:
        return "not judged"
    return "kept" if verdict.kept else "broken"
