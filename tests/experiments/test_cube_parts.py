"""What is not run says so; the page of all figures; and any part of a figure can be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from experiments.cube import page, thesis
from experiments.cube.__main__ import FIGURES
from experiments.cube.vcube import VCUBE as PS
from experiments.figure import NOT_RUN, Figure, Row


def test_a_size_that_is_not_run_says_so(tmp_path: Path) -> None:
    (figure,) = (each for each in FIGURES if each.name == "5.6")
    text = figure.reproduce(tmp_path, False, 1, most=16)
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert sum(NOT_RUN in line for line in lines) == 6 * 8
    assert not any(NOT_RUN in line for line in lines if "| 16 |" in line or "| 8 |" in line)
    # What is known of a larger size is shown.
    figure.reproduce(tmp_path, False, 1, most=32)
    again = figure.reproduce(tmp_path, False, 1, most=16)
    assert again.count(NOT_RUN) == 6 * 7


def test_the_page_has_every_figure_with_its_picture(tmp_path: Path) -> None:
    (figure,) = (each for each in FIGURES if each.name == "5.6")
    text = figure.reproduce(tmp_path, True, 1, most=16)
    folder = tmp_path / "quick"
    page.write(folder, [text], True)
    written = (folder / page.NAME).read_text()
    assert "![Figure 5.6](figure-5.6.svg)" in written
    assert "## Figure 5.6: one publisher" in written
    # Claims, those that hold, rows, rows that were run, runs.
    (told,) = (line for line in written.splitlines() if line.startswith("| Figure 5.6 | "))
    assert "18 rows have not been run yet" in written
    points = figure.points(True)
    ran = sum(point["nodes"] <= 16 for point in points)
    assert told.split(" | ")[3:6] == [str(len(points)), str(ran), str(ran)]
    assert "Python 3" in written
    docs = tmp_path / "docs"
    docs.mkdir()
    (other,) = (each for each in FIGURES if each.name == "5.7")
    page.publish(folder, docs, [figure, other])
    assert (docs / page.PICTURES / "figure-5.6.svg").exists()
    published = (docs / page.NAME).read_text()
    assert f"({page.PICTURES}/figure-5.6.svg)" in published
    assert "## Figure 5.7: one publisher, by the share of subscribers\n\nNot run." in published


def test_single_trees_need_not_be_run_again_when_the_peers_change() -> None:
    for figure in FIGURES:
        curves = {point.get("curve") for point in figure.points(False)}
        if "SRPT" in curves and PS in curves:
            assert figure.loaded_of[PS] != figure.loaded
            assert "SRPT" not in figure.loaded_of


def test_every_figure_of_the_evaluation_is_here() -> None:
    numbers = [str(number) for figure in FIGURES for number in figure.numbers]
    wanted = (
        "2.9 4.8 3.1 table-4.1 table-4.2 table-4.3 4.3 4.4 4.5 4.6 4.7 4.9 5.2 5.6 5.7 5.8 "
        "table-5.1 5.9 5.10 5.11a 5.11b 5.12"
    )
    assert {*wanted.split()} <= {*numbers}
    stated = {each.figure.replace(" ", "-") for each in thesis.STATED} - {"5.1"}
    assert stated <= {*numbers}


@pytest.mark.parametrize("figure", FIGURES, ids=[figure.name for figure in FIGURES])
def test_any_part_of_a_figure_can_be_judged_and_drawn(figure: Figure) -> None:
    """Whatever has been run: every half of the points, and each point alone."""
    points = figure.points(False)
    histograms = {"dependencies": {"1": 2}, "largest packets": {"3": 4}, "most held": {"0": 1}}
    keys = [column.key for column in figure.columns]
    numbers: dict[str, Any] = dict.fromkeys((*keys, "hops", "tree", "pubs", "root", "wait"), 1.0)
    for key, value in histograms.items():
        numbers |= {key: value, f"aggr {key}": value, f"plain {key}": value}
    for name in ("latency", "false", "guests", "several", *versus_keys(figure)):
        numbers.setdefault(name, 1.0)
    parts = [
        points[0::2],
        points[1::2],
        *([point] for point in points[:: max(1, len(points) // 9)]),
    ]
    for part in parts:
        rows = [Row(point, [numbers]) for point in part]
        assert all("reproduced: " in line for line in figure.judge(rows))
        for picture in figure.charts(rows).values():
            assert picture.startswith("<svg")


def versus_keys(figure: Figure) -> set[str]:
    """What chapter 4's judges read of their runs, besides their own columns."""
    return {column.key for other in FIGURES if other.kept_as == figure.kept_as
            for column in other.columns}  # fmt: skip
