"""A witness of each judge is told in one sentence; an unknown one is listed."""

from __future__ import annotations

import pytest

from inorder.pipeline.page_witness import witness_sentence
from inorder.pipeline.page_words import number, shorten, text, value
from tests.report.report_markup import Page

STORIES = {
    "causal": (
        {
            "cause": "p:1",
            "effect": "q:1",
            "subscriber": "s",
            "nths": {"effect": 3, "cause": 9},
        },
        "s delivered q:1 at place 3 and its cause p:1 only at place 9.",
    ),
    "fifo": (
        {
            "subscriber": "s",
            "publisher": "p",
            "events": ["p:5", "p:4"],
            "numbers": [5, 4],
            "nths": [1, 2],
        },
        "s delivered p:5, number 5 of p, before p:4, number 4 (places 1 and 2).",
    ),
    "filter": (
        {
            "event": "p:1",
            "subscriber": "s",
            "nth": 4,
            "where": "amount > :floor",
            "parameters": {"floor": 100},
            "attributes": {"amount": 7},
        },
        "s delivered p:1 at place 4, which does not match amount > :floor "
        "(parameters floor 100; attributes amount 7).",
    ),
    "integrity": (
        {
            "fault": "never_published",
            "event": "p:1",
            "subscriber": "s",
            "topic": "t",
            "nth": 4,
        },
        "s delivered p:1 on topic t at place 4: never published.",
    ),
    "reliable": (
        {"event": "p:1", "subscriber": "s", "topic": "t", "published_at": 2.5, "held_since": 1.0},
        "s never delivered p:1, though it had held topic t since 1 s (published at 2.5).",
    ),
    "acyclic": (
        {
            "cycle": ["a", "b"],
            "because": [
                {"subscriber": "s", "first": "a", "then": "b"},
                {"subscriber": "t", "first": "b", "then": "a"},
            ],
        },
        "No single order fits: s delivered a before b and t delivered b before a.",
    ),
    "position": (
        {
            "events": ["a", "b"],
            "subscriber": "s",
            "nths": [4, 5],
            "positions": [17, 12],
        },
        "s delivered a, which stands at position 17, before b, which stands at position 12 "
        "(places 4 and 5).",
    ),
    "half a shape": (
        {"events": ["a", "b"], "subscribers": ["s", "t"]},
        "Events a and b; subscribers s and t.",
    ),
    "nths of somebody else": (
        {"events": ["a", "b"], "subscribers": ["s", "t"], "nths": {"u": [1, 2]}},
        "Events a and b; subscribers s and t; nths u 1 and 2.",
    ),
    "unknown": (
        {"odd_key": 1.5, "deep": {"a": {"b": 1}}, "flag": True, "gone": None},
        'Odd key 1.5; deep {"a": {"b": 1}}; flag yes.',
    ),
    "many": ({"events": list("abcdefghijk")}, "Events a, b, c, d, e, f, g, h and 3 more."),
    "empty": ({}, "The witness names nothing."),
}


@pytest.mark.parametrize("key", STORIES)
def test_a_witness_is_told_in_one_sentence(key):
    witness, sentence = STORIES[key]
    assert Page(witness_sentence(witness)).text == sentence


def test_text_is_escaped_and_made_visible():
    assert text('<a href="x">\'&') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;"
    assert text("a\tb\u00a0c\u2066d") == "a b c\ufffdd"


def test_shortening_keeps_both_ends_and_the_length():
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde…hijk"
    assert all(len(shorten("x" * 50, most)) == most for most in range(4, 50))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (None, "none"),
        (True, "yes"),
        (12345, "12,345"),
        (0.1, "0.1"),
        ([], "<bdi>none</bdi>"),
        ({}, "<bdi>none</bdi>"),
        ({"a_b": 1}, "<bdi>a b 1</bdi>"),
    ],
)
def test_values_are_said_plainly(raw, said):
    assert value(raw, 80) == said


def test_numbers_that_are_not_numbers_do_not_stop_the_page():
    assert number(float("nan")) == "nan"
    assert number(float("inf")) == "inf"
