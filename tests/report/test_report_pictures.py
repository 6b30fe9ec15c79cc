"""The drawings: space-time pictures and histograms."""

from __future__ import annotations

import math

import pytest

from inorder.pipeline.page import Histogram, Mark, ReportData, SpaceTime, render
from inorder.pipeline.page_chart import BARS_MAX, quantile
from inorder.pipeline.page_layout import LANES_MAX, MARKS_MAX
from tests.report.report_markup import SVG, Page, drawings, having
from tests.report.report_samples import disagreement, realistic


def report(picture: SpaceTime) -> str:
    return render(ReportData("t", "s", 1, "", {}, pictures=[picture]))


def draw(picture: SpaceTime):
    (svg,) = drawings(report(picture), "spacetime")
    return svg


def chart(edges: list[float], counts: list[int]) -> str:
    return render(ReportData("t", "s", 1, "", {}, latency={"hold": Histogram(edges, counts)}))


def test_crossing_deliveries_are_marked_by_more_than_colour():
    svg = draw(disagreement())
    assert len(having(svg, "way")) == 6
    assert len(having(svg, "way", "cross")) == 4
    diamonds = having(svg, "got", "cross")
    assert [mark.tag for mark in diamonds] == [f"{SVG}polygon"] * 4
    assert {line.get("stroke-dasharray") for line in having(svg, "way", "cross")} == {None, "9 4"}


def test_the_order_of_the_crossing_events_stands_at_the_end_of_the_lane():
    said = [text.text for text in having(draw(disagreement()), "order")]
    assert said == ["p1:1 → p2:1", "p2:1 → p1:1"]


def test_tagged_deliveries_are_hollow():
    assert len(having(draw(disagreement()), "got", "hollow")) == 1


def test_publishers_stand_above_subscribers_whatever_the_order_given():
    picture = disagreement()
    picture.lanes = picture.lanes[::-1]
    svg = draw(picture)
    heights = {lane.text: float(lane.get("y")) for lane in having(svg, "who")}
    assert max(heights["p1"], heights["p2"]) < min(heights[s] for s in ("ledger", "mailer"))
    groups = [group.text for group in having(svg, "group")]
    assert groups == ["publishers", "subscribers", "order delivered"]


def test_time_runs_to_the_right():
    svg = draw(disagreement())
    for line in having(svg, "way"):
        assert float(line.get("x1")) < float(line.get("x2"))


def test_the_picture_is_told_in_words_too():
    svg = draw(disagreement())
    assert svg.get("role") == "img"
    assert svg.find(f"{SVG}title").text == "ledger and warehouse disagree"
    assert "mailer delivers p2:1, then p1:1 (tagged as late)." in svg.find(f"{SVG}desc").text


def test_without_publications_deliveries_are_drawn_alone_and_no_unit_is_claimed():
    marks = [Mark("a", "c1", 1.0), Mark("b", "c1", 2.0), Mark("c", "c1", 3.0)]
    svg = draw(SpaceTime("foreign", ["c1"], [], marks))
    assert not having(svg, "way")
    assert len(having(svg, "got")) == 3
    assert [tick.text for tick in having(svg, "tick")] == ["1", "2", "3", "later →"]


def test_marks_at_one_instant_still_show_both_labels():
    marks = [Mark("a:1", "s", 5.0), Mark("b:1", "s", 5.0)]
    svg = draw(SpaceTime("same", ["s"], [], marks))
    labels = having(svg, "id")
    assert {label.text for label in labels} == {"a:1", "b:1"}
    assert len({label.get("y") for label in labels}) == 2


def test_a_lane_that_was_not_named_is_added():
    svg = draw(SpaceTime("x", [], [], [Mark("e", "s9", 1.0)]))
    assert [lane.text for lane in having(svg, "who")] == ["s9"]


def test_a_picture_without_marks_says_so():
    page = report(SpaceTime("", ["a"], [], [Mark("e", "a", math.nan)]))
    assert "The picture holds no marks." in Page(page).text
    assert not drawings(page, "spacetime")


def test_crowded_pictures_keep_what_crosses_and_say_what_is_left_out():
    lanes = [f"s{at}" for at in range(50)]
    marks = [Mark(f"e{n}", lane, float(n)) for lane in lanes for n in range(20)]
    marks += [Mark("x", "s48", 90.0, crossing=True), Mark("y", "s49", 91.0, crossing=True)]
    page = report(SpaceTime("crowd", lanes, [], marks))
    (svg,) = drawings(page, "spacetime")
    assert len(having(svg, "who")) == LANES_MAX
    assert len(having(svg, "got")) == MARKS_MAX
    assert len(having(svg, "got", "cross")) == 2
    assert f"Not drawn: {50 - LANES_MAX} lanes, {len(marks) - MARKS_MAX} marks." in Page(page).text


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_every_coordinate_is_a_finite_number_on_the_canvas(scale):
    picture = disagreement()
    for mark in [*picture.publications, *picture.deliveries]:
        mark.at *= scale
    svg = draw(picture)
    _, _, width, height = map(float, svg.get("viewBox").split())
    for each in svg.iter():
        for key, most in (("x", width), ("x1", width), ("x2", width), ("y", height)):
            if key in each.attrib:
                assert 0 <= float(each.get(key)) <= most


def test_histograms_come_in_the_order_an_event_travels():
    words = Page(render(realistic())).text
    assert words.index("Network") < words.index("Hold") < words.index("End to end")
    assert "No samples." in words


def test_median_and_p99_are_said_with_their_unit_and_as_estimates():
    words = Page(render(realistic())).text
    assert "median ≈ 1 ms, p99 ≈ 1.98 ms" in words
    assert "Median and p99 are estimated from the bins" in words
    assert "100 samples, tallest bar 50." in words


@pytest.mark.parametrize(
    ("edges", "counts", "share", "value"),
    [
        ([0.0, 1.0], [10], 0.5, 0.5),
        ([0.0, 1.0, 2.0], [1, 1], 0.5, 1.0),
        ([0.0, 1.0, 2.0, 3.0], [1, 0, 1], 0.99, 2.98),
        ([-1.0, 1.0], [4], 0.25, -0.5),
        ([0.0, 1.0, math.inf], [1, 99], 0.5, 1.0),
    ],
)
def test_quantiles_are_read_off_the_bins(edges, counts, share, value):
    assert quantile(edges, counts, share)[0] == pytest.approx(value)


def test_an_open_last_bin_gives_a_lower_bound_only():
    assert "median ≈ over 1 s" in Page(chart([0.0, 1.0, math.inf], [1, 99])).text


def test_many_bins_are_joined_and_empty_ends_trimmed_without_losing_samples():
    counts = [0] * 100 + [3] * 1000 + [0] * 100
    page = chart([at * 1e-6 for at in range(1201)], counts)
    (svg,) = drawings(page, "histogram")
    assert 0 < len(having(svg, "bar")) <= BARS_MAX
    assert "3,000 samples" in Page(page).text


@pytest.mark.parametrize("counts", [[], [0], [0, 0]])
def test_an_empty_histogram_says_so(counts):
    page = chart([0.0] * (len(counts) + 1), counts)
    assert "No samples." in Page(page).text


def test_a_histogram_with_the_wrong_number_of_edges_is_our_bug():
    with pytest.raises(AssertionError, match="one edge more"):
        chart([0.0], [1])
