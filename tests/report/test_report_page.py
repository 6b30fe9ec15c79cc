"""The page as a document: what it says, that it is whole, and that it needs nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from inorder.check.verdict import judged, not_judged
from inorder.pipeline.page import PICTURES_MAX, ReportData, render
from tests.report.report_markup import Page, drawings
from tests.report.report_samples import HOSTILE, LONG, disagreement, hostile, nothing, realistic


@pytest.mark.parametrize("make", [realistic, hostile, nothing])
def test_the_page_is_well_formed_html_with_well_formed_svg(make):
    page = render(make())
    assert page.startswith("<!DOCTYPE html>")
    read = Page(page)
    assert read.count("h1") == read.count("main") == read.count("footer") == 1
    drawn = len(drawings(page, "spacetime")) + len(drawings(page, "histogram"))
    assert drawn + len(drawings(page, "sample")) == read.count("svg")


@pytest.mark.parametrize("make", [realistic, hostile, nothing])
def test_ids_are_unique_and_every_reference_meets_one(make):
    tags = Page(render(make())).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in tags:
        for key in ("aria-labelledby", "aria-describedby"):
            assert set((attrs.get(key) or "").split()) <= set(ids)


@pytest.mark.parametrize("make", [realistic, hostile, nothing])
def test_the_page_asks_for_nothing_from_elsewhere(make):
    page = render(make())
    bare = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|//[a-z]|@import|url\(", bare)
    for tag, attrs in Page(page).tags:
        assert tag not in {"script", "link", "img", "iframe", "object", "base"}
        assert not {"src", "href", "style"} & set(attrs)
        assert not [key for key in attrs if key.startswith("on")]
    assert "default-src 'none'" in page


def test_the_headline_says_how_many_promises_broke():
    words = Page(render(realistic())).text
    assert "2 of 5 promises broken" in words
    assert "2 kept, 1 not judged, 1 related promise broken. 481,344 rows looked at." in words


def test_the_table_shows_every_promise_and_the_related_ones():
    page = render(realistic())
    assert page.count('<tr class="promise">') == 5
    assert page.count('<tr class="related">') == 1
    words = Page(page).text
    assert "✗ broken1,234" in words
    assert "because it needs the column after" in words
    assert "related: acyclic" in words


def test_each_broken_promise_shows_its_witness_in_words():
    words = Page(render(realistic())).text
    assert "ledger delivered p1:1 before p2:1 (places 1 and 2), but warehouse" in words
    assert "mailer delivered p1:9 more than once, at places 7 and 8." in words
    assert "acyclic 1 violation, related to total" in words
    assert render(realistic()).count('<article class="witness">') == 3


def test_the_footer_says_what_was_audited():
    words = Page(render(realistic())).text
    for said in ("out/trace", "Rows481,344", "Seed7", "orders, payments", "loss 0.02", "Tlsnone"):
        assert said in words


def test_dark_narrow_and_print_have_their_styles():
    page = render(realistic())
    assert "@media screen and (prefers-color-scheme: dark)" in page
    assert "@media print" in page
    assert "@media (max-width:" in page
    assert '<meta name="color-scheme" content="light dark">' in page


@dataclass(frozen=True)
class _Scheme:
    page: str
    panel: str
    ink: str
    soft: str
    broken: str
    kept: str


def _schemes() -> list[_Scheme]:
    css = render(nothing())
    found = {key: re.findall(rf"--{key}: (#[0-9a-f]{{6}})", css) for key in _Scheme.__annotations__}
    return [_Scheme(**{key: values[at] for key, values in found.items()}) for at in (0, 1)]


def _light(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("at", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast_in_both_schemes(at):
    scheme = _schemes()[at]
    for ground in (scheme.page, scheme.panel):
        for ink in (scheme.ink, scheme.soft, scheme.broken, scheme.kept):
            dark, bright = sorted((_light(ground), _light(ink)))
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (ground, ink)


def test_hostile_text_stays_text():
    page = render(hostile())
    assert "<script" not in page
    assert "\x00" not in page
    assert "\u202e" not in page
    assert "alert('x')" in Page(page).text
    assert "<script>" in HOSTILE


def test_lone_surrogates_do_not_stop_the_page_from_being_written():
    data = realistic()
    data.title = data.pictures[0].deliveries[0].event = "broken \ud800 text"
    assert "broken \ufffd text" in render(data).encode("utf-8").decode("utf-8")


def test_long_ids_are_shortened_with_the_full_text_in_a_title():
    data = realistic()
    data.pictures[0].deliveries[0].event = LONG
    data.promises["unique"] = judged("unique", 1, {}, {"event": LONG})
    data.about = {"run": LONG}
    page = render(data)
    assert f'<bdi title="{LONG}">' in page
    assert f"<title>{LONG}</title>urn:uui…" in page


def test_equal_data_give_equal_pages_under_any_hash_seed():
    code = (
        "from tests.report.report_samples import realistic\n"
        "from inorder.pipeline.page import render\n"
        "print(render(realistic()))"
    )
    pages = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
            text=True,
            encoding="utf-8",
        ).stdout
        for seed in ("1", "2")
    }
    assert pages == {render(realistic()) + "\n"}


def test_rendering_does_not_change_the_data():
    data = realistic()
    render(data)
    assert data == realistic()


def test_nothing_at_all_is_said_plainly():
    words = Page(render(nothing())).text
    assert "Nothing judged" in words
    assert "The log held no rows." in words
    assert "No promise was put to a judge." in words
    assert "How it happened" not in words
    assert "Latency" not in words


KEPT = judged("fifo", 0, {}, None)
BROKEN = judged("total", 1, {}, {"event": "e"})
OPEN = not_judged("causal", "")


@pytest.mark.parametrize(
    ("promises", "rows", "tone", "words"),
    [
        ({"a": KEPT, "b": KEPT}, 9, "kept", "All 2 promises kept"),
        ({"a": KEPT}, 9, "kept", "The promise is kept"),
        ({"a": KEPT, "b": OPEN}, 9, "kept", "1 of 2 promises kept"),
        ({"a": OPEN, "b": OPEN}, 9, "open", "None of 2 promises could be judged"),
        ({"a": BROKEN}, 9, "broken", "1 of 1 promise broken"),
        ({"a": KEPT}, 0, "open", "Nothing happened, so nothing broke"),
        (
            {"a": judged("total", 0, {}, None, {"acyclic": BROKEN}), "b": KEPT},
            9,
            "broken",
            "All 2 promises kept, 1 related broken",
        ),
    ],
)
def test_the_headline_fits_the_verdicts(promises, rows, tone, words):
    page = render(ReportData("t", "s", rows, "", promises))
    assert f'<div class="banner {tone}">' in page
    assert f"<span>{words}</span>" in page


def test_only_what_was_promised_makes_the_headline():
    """The rest is shown, and said not to be promised."""
    data = ReportData("t", "s", 9, "", {"fifo": KEPT, "total": BROKEN}, promised=["fifo"])
    page = render(data)
    assert '<div class="banner kept">' in page
    words = Page(page).text
    assert "The promise is kept" in words
    assert "1 not kept that nobody promised" in words
    assert "opposite orders (not promised)" in words
    assert "(not promised)" not in Page(render(ReportData("t", "s", 9, "", {"total": KEPT}))).text


def test_the_table_says_how_much_was_judged():
    counts = {"owed": 240, "deliverable": 300}
    data = ReportData("t", "s", 9, "", {"reliable": judged("reliable", 0, counts, None)})
    assert "240 of 300 deliverable pairs (80 %) were owed" in Page(render(data)).text


def test_a_recorded_verdict_of_another_kind_is_shown_beside_the_headline():
    data = realistic()
    data.verdict = "incomplete"
    assert "Recorded verdict: incomplete." in Page(render(data)).text


def test_huge_numbers_are_grouped_and_kept_exact():
    data = realistic()
    data.rows = 10**24
    assert "1,000,000,000,000,000,000,000,000 rows" in Page(render(data)).text


def test_hundreds_of_pictures_are_clipped_with_a_sentence():
    data = realistic()
    data.pictures = [disagreement()] * 300
    page = render(data)
    assert len(drawings(page, "spacetime")) == PICTURES_MAX
    assert "The first 5 of 300 pictures are drawn here" in Page(page).text
