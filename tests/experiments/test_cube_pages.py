"""The figures of the thesis on the hypercube as the command makes them: tables and pictures."""

from __future__ import annotations

import doctest
import importlib
import math
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from experiments.chart import COLOURS, Frame, line, marks, page
from experiments.command import command
from experiments.cube import (
    churn,
    delays,
    several,
    shown,
    single,
    trees,
    workloads,
)
from experiments.cube.__main__ import FIGURES
from experiments.cube.world import CHAPTER_5, TOPIC, VCUBE, Run, Setting, srpt_world
from experiments.figure import Figure, Row
from experiments.points import Numbers, Settings, Store, run_all

# A slow twin: trees from the definition of clusters, and queues copy by copy.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cube")


@pytest.fixture(scope="module")
def texts(folder: Path) -> dict[str, str]:
    """The quick version of every figure."""
    return {
        figure.name: figure.reproduce(folder, True, None if figure.name in CLAIMS else 1)
        for figure in FIGURES
    }


CLAIMS = {
    "2.9": ["[even in 1000] the root queues above 128"],
    "5.2": ["relays of the single tree", "hops more"],
    "5.6": ["proportional to log2 N"],
    "5.7": ["the mean way stays the same", "no relays at 100 %"],
    "5.8": ["saturates above 128 nodes", "with t_pp 1000 SRPT grows less"],
    "5.11a": ["SRPT, 125 of 128, t_med 1 min [a second]"],
    "5.12": ["[1 publishers, one] the fewer brokers", "[128 publishers, two] 64 brokers below"],
}
NOT_CLAIMS = {
    "2.9": ["[even in 400, sd 40] the root queues above 128"],
    "5.12": ["[1 publishers, one] 64 brokers below"],
}


@pytest.mark.parametrize("name", CLAIMS)
def test_quick_figures_reproduce_what_the_full_ones_do(name: str, texts: dict[str, str]) -> None:
    lines = texts[name].splitlines()
    for verdict, claims in (("reproduced", CLAIMS[name]), ("NOT reproduced", NOT_CLAIMS.get(name))):
        for claim in claims or ():
            (found,) = [each for each in lines if claim in each and "reproduced: " in each]
            assert found.startswith(f"- {verdict}: ")


def test_every_row_says_its_size_its_runs_and_what_it_moved(texts: dict[str, str]) -> None:
    for figure in FIGURES:
        head = next(line for line in texts[figure.name].splitlines() if line.startswith("| "))
        cells = [cell.strip() for cell in head.split("|")]
        assert {"messages moved", "seconds", "thesis"} < {*cells}
        if figure.name != "5.2":  # always eight nodes, one run
            assert {"nodes", "runs"} < {*cells}
        assert "machine" in figure.setting


def test_pictures_stand_beside_the_tables(texts: dict[str, str], folder: Path) -> None:
    pictures = sorted(path.stem for path in (folder / "quick").glob("*.svg"))
    numbers = (
        "2.9 3.1 4.3 4.4 4.5 4.6 4.7 4.9 5.10 5.11a 5.11b 5.12 5.6 5.7 5.8 5.9 cells table-4.1 "
        "table-4.2 table-4.3"
    )
    assert pictures == [f"figure-{number}" for number in numbers.split()]
    for path in (folder / "quick").glob("*.svg"):
        ElementTree.fromstring(path.read_text())


def test_stated_numbers_are_drawn_over_the_curve_they_belong_to() -> None:
    rows = [
        Row({"curve": "SRPT", "order": order, "share": 25, "nodes": nodes},
            [{"latency": 700.0, "pubs": 1800.0}])
        for order in (single.NEAR, single.FAR)
        for nodes in (2048, 4096)
    ]  # fmt: skip
    picture = ElementTree.fromstring(single.charts_56(rows)["figure-5.6.svg"])
    assert len(picture.findall(".//{*}circle")) == 4
    assert len(picture.findall(".//{*}polyline")) == 4


def test_logarithmic_axes_leave_out_what_they_cannot_show() -> None:
    layers = [line([1.0, 10.0, 100.0, 1000.0], [1.0, 10.0, 0.0, 100.0]),
              marks([10.0], [10.0], colour=0)]  # fmt: skip
    frame = Frame("both", layers, x_log=True, y_log=True, ticks=[1.0, 1000.0])
    picture = ElementTree.fromstring(page([frame], height=260))
    (drawn,) = picture.findall(".//{*}polyline")
    places = [tuple(map(float, pair.split(","))) for pair in drawn.attrib["points"].split()]
    assert len(places) == 3
    (first, _), (second, _), (last, _) = places
    assert second - first == pytest.approx((last - first) / 3, abs=0.1)
    (_, low), (_, middle), (_, high) = places
    assert middle == pytest.approx((low + high) / 2, abs=0.1)
    (ring,) = picture.findall(".//{*}circle")
    assert (float(ring.attrib["cx"]), float(ring.attrib["cy"])) == places[1]
    assert ring.attrib["stroke"] == drawn.attrib["stroke"]
    assert ring.attrib["fill"] == "none"
    assert [text.text for text in picture.findall(".//{*}text")][-2:] == ["1", "1000"]


def test_names_stand_beside_the_frame_and_lines_that_meet_differ() -> None:
    layers = [line([1.5, 9.0], [3.0, 5.0], "ours"), line([1.5, 9.0], [3.0, 5.0], "theirs"),
              marks([9.0], [5.0], colour=0)]  # fmt: skip
    picture = ElementTree.fromstring(page([Frame("two", layers, ticks=[1.5, 9.0])], height=260))
    lines = picture.findall(".//{*}polyline")
    assert lines[0].attrib["points"] == lines[1].attrib["points"]
    assert lines[0].attrib["stroke-dasharray"] != lines[1].attrib["stroke-dasharray"]
    right = max(float(pair.split(",")[0]) for pair in lines[0].attrib["points"].split())
    texts = picture.findall(".//{*}text")
    places = {text.text: (float(text.attrib["x"]), float(text.attrib["y"])) for text in texts}
    names = [places[name] for name in ("ours", "theirs", "\u25cb stated")]
    assert all(x > right + 30 for x, _ in names)
    assert len({y for _, y in names}) == 3
    # Round numbers up the side, the larger the higher.
    assert places["5"][1] < places["4"][1] < places["0"][1]
    assert places["0"][1] - places["5"][1] == pytest.approx(5 * (places["0"][1] - places["1"][1]))


@pytest.mark.parametrize("count", [1, 3, 16, 17])
def test_a_line_shows_its_points_if_they_are_few(count: int) -> None:
    x = [float(place) for place in range(1, count + 1)]
    picture = ElementTree.fromstring(page([Frame("one", [line(x, x)])], 260))
    knots = [path.attrib["d"] for path in picture.findall(".//{*}path")
             if path.get("stroke-linecap") == "round"]  # fmt: skip
    if count == 17:
        assert knots == []
        return
    (drawn,) = picture.findall(".//{*}polyline")
    places = [pair.replace(",", " ") for pair in drawn.attrib["points"].split()]
    assert knots == ["".join(f"M{place}h.01" for place in places)]


def test_an_axis_begins_at_0_or_near_the_least_value() -> None:
    lows = {}
    for near in (False, True):
        frame = Frame("one", [line([1.0, 2.0], [400.0, 420.0])], near=near)
        (drawn,) = ElementTree.fromstring(page([frame], 260)).findall(".//{*}polyline")
        (_, first), (_, last) = (pair.split(",") for pair in drawn.attrib["points"].split())
        lows[near] = float(first) - float(last)
    assert lows[True] > 10 * lows[False] > 0


def test_there_are_figures_for_all_that_single_trees_are_compared_in() -> None:
    numbers = [str(number) for figure in FIGURES for number in figure.numbers]
    wanted = "2.9 4.8 5.2 5.6 5.7 5.8 table-5.1 5.10 5.11a 5.11b 5.12 cells"
    assert {*wanted.split()} < {*numbers}
    for figure in FIGURES:
        assert len(figure.points(False)) >= len(figure.points(True)) > 0
        assert any("experiments/cube/srpt.py" in pattern for pattern in figure.code)
        largest = max(point.get("nodes", 8) for point in figure.points(True))
        assert largest <= 128, "quick is small"


def test_runs_are_many_where_they_are_small() -> None:
    by_size = {nodes: shown.runs(nodes**2) for nodes in shown.SIZES}
    expected = {8: 40, 16: 40, 32: 40, 64: 40, 128: 40, 256: 40, 512: 5, 1024: 2}
    assert by_size == {**expected, 2048: 1, 4096: 1}
    chosen = {figure.name: figure for figure in FIGURES}
    for name in ("5.8", "table-5.1", "2.9"):
        figure = chosen[name]
        for point in figure.points(False):
            assert figure.runs_at
            copies = point["nodes"] ** 2 * point.get("share", 100) / 100
            assert figure.runs_at(point) == shown.runs(copies)


def test_runs_are_few_where_a_run_is_long() -> None:
    by_name = {figure.name: figure for figure in FIGURES}

    def runs(name: str, **settings: object) -> int:
        figure = by_name[name]
        (point,) = (each for each in figure.points(False)
                    if {**each, **settings} == each)  # fmt: skip
        assert figure.runs_at
        return min(figure.runs, figure.runs_at(point))

    fast: Settings = {"changes a": "second", "nodes": 4096}
    assert runs("5.11a", curve="VCube-PS", subscribers=4000, **fast, **{"t_med min": 1}) == 1
    assert runs("5.11a", curve="VCube-PS", subscribers=4000, **fast, **{"t_med min": 30}) == 2
    assert runs("5.11a", curve="VCube-PS", subscribers=500, **fast, **{"t_med min": "static"}) == 3
    assert runs("5.11b", curve="VCube-PS", a="second", percent=10) == 1
    assert runs("5.11b", curve="SRPT", a="second", percent=10) == 3
    # Where the popular topic's root lies decides.
    drawn = {"nodes": 256, "messages": 2**14}
    assert runs("5.10", curve="SRPT", law="Zipf", **drawn) == 5
    assert runs("5.10", curve="SRPT", law="uniform", **drawn) == 1
    assert runs("5.10", curve="VCube-PS", law="Zipf", **drawn) == 1
    assert runs("5.10", curve="SRPT", law="Zipf", nodes=256, messages=2**13) == 2
    fitted, stated = workloads.CALIBRATED, workloads.STATED
    counts = [runs("table-4.1", load=load, nodes=nodes)
              for load in (fitted, stated) for nodes in (128, 256, 512, 1024)]  # fmt: skip
    assert counts == [30, 10, 4, 2, 30, 10, 2, 1]


@pytest.mark.parametrize(("nodes", "subscribers"), [(64, 20), (128, 100)])
def test_what_a_run_of_5_11_moves_is_known_before(nodes: int, subscribers: int) -> None:
    found = churn.play(VCUBE, nodes, subscribers, 7000.0, 20_000.0, 1)
    assert found["moved"] == pytest.approx(
        churn.moves(nodes, subscribers, 7000.0, 20_000.0), rel=0.25
    )


# Pictures of what the thesis states.


def row(latency: float, **settings: object) -> Row:
    return Row(dict(settings), [{"latency": latency}])


def test_a_row_exceeds_another_by_the_runs_that_both_have() -> None:
    def made(*values: float) -> Row:
        return Row({}, [{"latency": value} for value in values])

    assert made(5.0, 6.0, 7.0).exceeds(made(4.0, 5.0), "latency")
    assert not made(5.0, 4.0, 90.0).exceeds(made(4.0, 5.0), "latency")
    assert not made(5.0).exceeds(made(), "latency"), "nothing to compare with"


def test_ratios_are_drawn_as_rings_over_our_own_rows() -> None:
    at = {"propagation": 100, "nodes": 256}
    rows = [row(600.0, curve="SRPT", share=100, **at), row(400.0, curve=VCUBE, share=100, **at),
            row(380.0, curve=VCUBE, share=25, **at)]  # fmt: skip
    rows += [row(2 * each.mean("latency"), **{**each.settings, "nodes": 4096}) for each in rows]
    picture = ElementTree.fromstring(several.charts_58(rows)["figure-5.8.svg"])
    rings = picture.findall(".//{*}circle")
    assert [ring.attrib["stroke"] for ring in rings] == [COLOURS[0], COLOURS[1]]
    lines = {line.attrib["stroke"]: line.attrib["points"].split()
             for line in picture.findall(".//{*}polyline")}  # fmt: skip

    def height(colour: str, place: int) -> float:
        return float(lines[colour][place].split(",")[1])

    # A logarithmic axis: a distance is a ratio.
    factor = (height(COLOURS[1], 0) - height(COLOURS[1], 1)) / math.log(2.0)
    over = (height(COLOURS[1], 0) - float(rings[0].attrib["cy"])) / factor
    assert math.exp(over) == pytest.approx(2.48, rel=0.02)
    above = (height(COLOURS[2], 1) - float(rings[1].attrib["cy"])) / factor
    assert math.exp(above) == pytest.approx(1.388, rel=0.02)


def test_nodes_are_counted_up_to_what_they_hold() -> None:
    most = {"plain most held": {"0": 400, "50": 500, "225": 124},
            "aggr most held": {"0": 900, "25": 124}}  # fmt: skip
    rows = [Row({"load": workloads.CALIBRATED, "nodes": 1024}, [most])]
    picture = ElementTree.fromstring(delays.charts_46(rows)["figure-4.6.svg"])
    lines = picture.findall(".//{*}polyline")
    assert len(lines) == 2
    for drawn in lines:
        heights = [float(pair.split(",")[1]) for pair in drawn.attrib["points"].split()]
        assert heights == sorted(heights, reverse=True)
    # All nodes in the end, in both.
    assert len({drawn.attrib["points"].split()[-1].split(",")[1] for drawn in lines}) == 1
    assert len(picture.findall(".//{*}circle")) == 4, "at 50 and 250, with and without"


# The command.


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["experiments.cube", *arguments])
    command("cube", "The thesis", FIGURES, "seconds")


def test_a_figure_is_asked_for_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(monkeypatch, "5.2", "--quick", "--out", str(tmp_path))
    run_command(monkeypatch, "--figure", "5.2", "--quick", "--out", str(tmp_path))
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("## ")]
    assert heads == ["## Figure 5.2: the trees of five subscribers of eight nodes"] * 2
    assert not (tmp_path / "quick" / "tables.md").exists(), "only all figures together are written"
    with pytest.raises(SystemExit):
        run_command(monkeypatch, "5.3", "--quick", "--out", str(tmp_path))
    assert "'5.3' is not one of 2.9, 4.8, 3.1" in capsys.readouterr().err


DOCUMENTED = ("chart", "points", "cube.meter", "cube.several", "cube.shown",
              "cube.thesis", "cube.workloads")  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_the_docstrings_are_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"experiments.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


# What is run, and what is drawn of it.


def squared(number: int, seed: int) -> Numbers:
    return {"square": number * number + seed}


def never(**settings: object) -> Numbers:
    raise AssertionError(f"{settings} was known")


def test_each_point_has_the_runs_that_are_asked_for(tmp_path: Path) -> None:
    points: list[Settings] = [{"number": number} for number in range(5)]
    counts = [3, 0, 1, 2, 4]
    found = run_all(Store(tmp_path), points, counts, squared, "test", "v1")
    assert [len(runs) for runs in found] == counts
    assert found[4] == [{"square": 16 + seed} for seed in (1, 2, 3, 4)]
    assert len([*tmp_path.iterdir()]) == sum(counts), "no run that is not asked for"
    assert run_all(Store(tmp_path), points, counts, never, "test", "v1") == found


def test_a_figure_is_drawn_again_from_its_numbers_alone(tmp_path: Path) -> None:
    figure = replace(single.FIGURES[1], points=lambda quick: figure_5_7_points())
    text = figure.reproduce(tmp_path, False, 2)
    picture = tmp_path / "figure-5.7.svg"
    drawn = picture.read_text()
    picture.unlink()
    shutil.rmtree(tmp_path / "points")
    later = replace(figure, run=never, title="in other words", judge=lambda rows: ["judged again"])
    again = later.redraw(tmp_path)
    assert picture.read_text() == drawn
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [line for line in again.splitlines() if line.startswith("| ")] == rows
    assert "## Figure 5.7: in other words" in again
    assert "- judged again" in again
    assert "2 runs a point" in again
    assert (tmp_path / "figure-5.7.md").read_text() == again
    assert replace(figure, name="5.99").redraw(tmp_path) is None


def figure_5_7_points() -> list[Settings]:
    return [{"curve": "SRPT", "order": single.FAR, "nodes": 16, "share": share}
            for share in (50, 100)]  # fmt: skip


def test_a_figure_with_runs_of_its_own_shows_them(tmp_path: Path) -> None:
    figure = replace(
        single.FIGURES[0], points=lambda quick: [
            {"curve": "SRPT", "order": single.FAR, "share": 100, "nodes": nodes}
            for nodes in (8, 16)
        ],
        runs_at=lambda point: 1 if point["nodes"] == 16 else 9, runs=4,
    )  # fmt: skip
    text = figure.reproduce(tmp_path, False, None)
    assert "1 to 4 runs a point" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| SRPT")]
    assert [(row[3], row[4]) for row in rows] == [("8", "4"), ("16", "1")]
    # A number of runs that is asked for holds for all.
    assert "2 runs a point" in figure.reproduce(tmp_path, False, 2)


@pytest.mark.parametrize("paired", [True, False])
def test_a_paired_run_draws_for_an_event_what_it_draws_in_another_run(paired: bool) -> None:
    last = []
    for extra in (False, True):
        setting = Setting(1, 32, {TOPIC: range(32)}, {TOPIC: 0})
        run = Run(srpt_world, setting, workloads.links(workloads.CHAPTER_4[0]), paired=paired)
        if extra:
            run.publish(0.0, 5)
        run.publish(5000.0, 3)
        run.go()
        last.append(run.latencies().last["n03:1"])
    assert (last[0] == last[1]) is paired


def test_links_are_those_of_the_thesis() -> None:
    assert (CHAPTER_5.processing, CHAPTER_5.transmission) == (1.0, 1.0)
    assert CHAPTER_5.propagation.mean == 100.0
    assert isinstance(trees.FIGURE, Figure)
