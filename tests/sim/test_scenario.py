"""Scenario files: what is read, and what is refused with which words."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.core.errors import BadScenario
from inorder.sim.scenario import load, parse
from inorder.sim.workload import node_names, tell

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


def test_an_empty_file_is_a_scenario_of_defaults():
    scenario = parse("")
    assert scenario.topic_names == ("t1",)
    assert scenario.guarantee.name == "none"
    assert node_names(scenario) == ["p1", "s1"]


def test_the_examples_are_valid():
    for name in ("partition.toml", "explore.toml"):
        assert load(next(path for path in EXAMPLES if path.name == name)).title


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("colour = 1", "colour", "is not known here; allowed: title, duration"),
        ("duration = 'long'", "duration", "expected `float`, got `str`"),
        ("duration = -1", "duration", "-1 is not between 0 and 1e+09"),
        ("topics = 0", "topics", "0 is not between 1 and"),
        ("topics = -3", "topics", "-3 is not between 1 and"),
        ("topics = ['a', 'a']", "topics", "occurs twice"),
        ("[network]\nmodel = 'warp'", "network.model", "'warp' is not one of ideal, delay, wan"),
        ("[network]\nclasses = 'message'", "network.classes", "has no meaning without model"),
        ("[network]\nspeed = 1", "network.speed", "is not known here; allowed: model,"),
        ("[network]\ndelay = {law='odd'}", "network.delay", "'odd'"),
        ("[network]\ndelay = {law='normal', mean=-1, std=1}", "network.delay", "mean must be"),
        ("[network]\ndelay = {law='normal'}", "network.delay", "missing required field `mean`"),
        (
            "[order]\nguarantee = 'luck'",
            "order.guarantee",
            "unknown guarantee 'luck'; known: causal",
        ),
        ("[order]\nmode = 'hold'", "order.mode", "is not known here; nothing is allowed here"),
        ("[publishers]\ntopics = 'best'", "publishers.topics", "own, uniform, power, zipf, last"),
        ("[[subscribers]]\ncount = 1\n[[subscribers]]\nper = 7", "subscribers[2].per", "7 is not"),
        ("[[subscribers]]\ntopics = ['x']", "subscribers[1].topics", "'x' is not one of t1"),
        ("[[subscribers]]\nrate = -1", "subscribers[1].rate", "-1 is not between 0 and 1e+06"),
        ("[churn]\nspare = 1", "churn.spare", "has no meaning without churn.session"),
        (
            "[churn]\nspare = 2\nsession = {law='constant', mean=1}",
            "churn.spare",
            "2 is not between 0 and 1",
        ),
        (
            "[churn]\nrate = 1\nsession = {law='constant', mean=1}",
            "churn.rate",
            "two kinds of churn",
        ),
        ("[churn]\nsession = {law='constant', mean=-1}", "churn.session", "mean must not be"),
        ("[network.cube]\nwindow = 2", "network.cube", "has no meaning without overlay"),
        (
            "[network]\noverlay = 'cube'\n[network.cube]\nwindow = 0",
            "network.cube.window",
            "0 is not between 1 and",
        ),
        (
            "duration = 100\n[[subscribers]]\ncount = 9\nrate = 1e6",
            "publishers.rate",
            "gives more than",
        ),
        ("[[subscribers]]\nname = 3", "subscribers[1].name", "expected `str`, got `int`"),
        ("[publishers.attributes]\nx = {}", "publishers.attributes.x", "needs one of choice"),
        ("[publishers.attributes]\nx = {choice=[]}", "publishers.attributes.x.choice", "is empty"),
        ("[faults]\ndraw = ['rain']", "faults.draw[1]", "'rain' is not one of partition, pause"),
        ("[[faults.list]]\nkind='crash'\nat=1\nnode='p9'", "faults.list[1]", "'p9' is not one of"),
        (
            "[[faults.list]]\nkind='crash'\nat=99\nnode='p1'",
            "faults.list[1].at",
            "99 is not",
        ),
        ("[[faults.list]]\nkind='flood'\nat=1", "faults.list[1]", "'flood'"),
        (
            "[publishers]\nrate = 1e6\ncount = 10000",
            "publishers.rate",
            "gives more than",
        ),
        ("= nonsense", "file", "is not TOML"),
    ],
)
def test_a_wrong_scenario_names_the_key_and_what_is_allowed(text, key, words):
    with pytest.raises(BadScenario) as caught:
        parse(text)
    assert caught.value.key.startswith(key) or key in caught.value.key
    assert words in str(caught.value)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(BadScenario, match=r"nowhere.toml: cannot be read: No such file"):
        load(tmp_path / "nowhere.toml")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_rubbish_is_refused_with_our_error_and_no_other(text):
    with contextlib.suppress(BadScenario):
        parse(text)


def test_a_story_is_drawn_from_the_seed_alone():
    text = "[publishers]\ncount=2\nrate=5\n[churn]\nrate=1\n[faults]\ndraw=['crash','weather']"

    def told(seed):
        story = tell(parse(text), seed)
        return [list(made) for made in story.publications.values()], story.operations, story.faults

    assert told(3) == told(3)
    assert told(3) != told(4)


def test_rates_and_topics_come_out_as_written():
    text = "duration=100\ntopics=4\n[publishers]\ncount=2\nrate=5\ntopics='own'"
    story = tell(parse(text), 1)
    made = {name: list(publications) for name, publications in story.publications.items()}
    assert [len(p) for p in made.values()] == [500, 500]
    assert {p.topic for p in made["p2"]} == {"t2"}


def test_poisson_arrivals_have_the_rate():
    text = "duration=1000\n[publishers]\nrate=5\narrivals='poisson'"
    made = list(tell(parse(text), 1).publications["p1"])
    assert 4600 < len(made) < 5400  # 5000, over five standard deviations either way


def test_attributes_are_drawn_as_described():
    text = """
    [publishers]
    rate = 20
    bytes = 7
    [publishers.attributes]
    kind = {choice = ["a", "b"]}
    amount = {uniform = [1, 2]}
    price = {walk = [100, 0.5]}
    """
    values = [p.value for p in tell(parse(text), 1).publications["p1"]]
    assert {v["kind"] for v in values} == {"a", "b"}
    assert all(1 <= v["amount"] <= 2 and len(v["body"]) == 7 for v in values)
    steps = [abs(b["price"] - a["price"]) for a, b in itertools.pairwise(values)]
    assert 0 < max(steps) < 3
