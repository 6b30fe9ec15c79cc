"""Subscribers that publish, and subscribers that take each other's places."""

from __future__ import annotations

from inorder.sim.scenario import parse
from inorder.sim.workload import tell

CROWD = """
duration = 60
topics = ["a", "b", "c"]
[publishers]
count = 0
[[subscribers]]
name = "s"
count = 12
topics = "uniform"
per = 2
rate = 0.5
[churn]
session = {law = "exponential", mean = 5.0}
spare = 3
start = 2
until = 50
"""


def test_subscribers_publish_at_their_rate_on_what_they_hold():
    story = tell(parse(CROWD), 3)
    held = {each.node: each.topics for each in story.operations if each.op == "subscribe"}
    assert sorted(story.publications) == sorted(held)
    count = 0
    for node, publications in story.publications.items():
        for publication in publications:
            assert publication.topic in held[node]
            assert publication.at <= 60
            count += 1
    assert 250 < count < 480  # 12 nodes, 60 s, one in two seconds: 360


def test_a_subscriber_without_a_rate_publishes_nothing():
    assert tell(parse(CROWD.replace("rate = 0.5", "")), 3).publications == {}


def test_as_many_hold_topics_at_any_time():
    operations = sorted(tell(parse(CROWD), 7).operations, key=lambda each: each.at)
    assert len([each for each in operations if each.at == 0.0]) == 9
    assert operations[9].at > 2.0
    assert operations[-1].at <= 50.0
    holding: dict[str, tuple[str, ...]] = {}
    for each in operations:
        if each.op == "subscribe":
            assert each.node not in holding
            holding[each.node] = each.topics
        else:
            assert holding.pop(each.node) == each.topics
        assert each.at == 0.0 or len(holding) in (8, 9)
    assert len(holding) == 9


def test_those_who_have_been_away_longest_come_first():
    operations = tell(parse(CROWD), 7).operations
    joined = [each.node for each in operations if each.op == "subscribe" and each.at > 0.0]
    left = [each.node for each in operations if each.op == "unsubscribe"]
    assert joined == ["s10", "s11", "s12", *left][: len(joined)]


def test_a_story_is_the_same_every_time():
    assert tell(parse(CROWD), 5).operations == tell(parse(CROWD), 5).operations
    assert tell(parse(CROWD), 5).operations != tell(parse(CROWD), 6).operations
