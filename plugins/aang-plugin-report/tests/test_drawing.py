"""Charts as pictures."""

import re
from pathlib import Path

import pytest
from aang_plugin_report.charts import Bars, Heat, Intervals, Lines, Series
from aang_plugin_report.drawing import draw_picture, plotly_json

LONG = "task/random-factorized-with-a-name-of-its-own/bidirectional/denoise"


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["task/mask/denoise", "two  words"], ["task/mask/denoise", "two words"]),
        (
            [LONG, LONG.replace("denoise", "end-task"), f"other-{LONG}", "x" * 61],
            [
                "task/random-factorized-with-…f-its-own/bidirectional/denoise",
                "task/random-factorized-with-…-its-own/bidirectional/end-task",
                "other-task/random-factorized…f-its-own/bidirectional/denoise",
                f"{'x' * 28}…{'x' * 31}",
            ],
        ),
    ],
)
def test_long_names_keep_both_ends(tmp_path: Path, names: list[str], shown: list[str]) -> None:
    """Names of objectives often begin alike and end alike, and still are different names."""
    means = [("mean", [0.5] * len(names))]
    bars = Bars(key="key", title="A title", labels=names, groups=means, alt="In words.")
    draw_picture(bars, tmp_path / "bars.svg")
    drawn = (tmp_path / "bars.svg").read_text(encoding="utf-8")
    for name in shown:
        # The letters are shapes; what they say is a comment beside them.
        assert f"<!-- {name} -->" in drawn


def curves(*names: str) -> Lines:
    series = [Series(n, [0, 1], [0, 1]) for n in names]
    return Lines(key="k", title="A title", series=series, alt="alt")


def test_no_two_curves_look_the_same(tmp_path: Path) -> None:
    """There are ten colours; a chart of losses has up to fourteen curves."""
    chart = curves(*(f"number-{i}" for i in range(14)))
    dashes = [trace["line"]["dash"] for trace in plotly_json(chart)["data"]]
    # Plotly gives its ten colours in turn.
    assert len({(i % 10, dash) for i, dash in enumerate(dashes)}) == 14
    draw_picture(chart, tmp_path / "lines.svg")
    drawn = (tmp_path / "lines.svg").read_text(encoding="utf-8")
    legend = drawn[drawn.index('id="legend_1"') :]
    styles = re.findall(r'style="(fill: none; stroke[^"]*)"', legend)
    assert len(set(styles)) == len(styles) == 14


def test_names_with_an_underscore_are_in_the_legend(tmp_path: Path) -> None:
    """Matplotlib leaves out those that begin with one."""
    groups = [("_a", [0.5]), ("b", [0.5])]
    bars = Bars(key="k", title="A title", labels=["x"], groups=groups, alt="alt")
    for chart in (curves("_a", "b"), bars):
        draw_picture(chart, tmp_path / "chart.svg")
        drawn = (tmp_path / "chart.svg").read_text(encoding="utf-8")
        legend = drawn[drawn.index('id="legend_1"') :]
        assert re.findall(r"<!-- *(\S+) *-->", legend) == ["_a", "b"]


def test_a_heat_map_as_a_picture(tmp_path: Path) -> None:
    """One value of which was not measured."""
    rows = [[0.5, None], [-1.0, 0.25]]
    names = {"x": ["1", "2"], "y": ["end", "a"]}
    chart = Heat(key="k", title="A title", **names, z=rows, alt="alt", diverging=True)
    draw_picture(chart, tmp_path / "heat.svg")
    drawn = (tmp_path / "heat.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    assert {"A title", "end", "a"} <= set(re.findall(r"<!-- (.*?) -->", drawn))


def test_intervals_reach_from_end_to_end(tmp_path: Path) -> None:
    """Both where a dot stands for a name and where it is a point of a curve."""
    ends = [(1.0, 4.0), (2.5, 3.0)]
    dots = Intervals(key="d", title="t", labels=["a", "b"], values=[2, 3], ends=ends, alt="alt")
    curve = Lines(
        key="c", title="t", series=[Series("s", [10, 20], [2, 3], intervals=ends)], alt="alt"
    )
    for chart, axis in ((dots, "x"), (curve, "y")):
        (trace,) = plotly_json(chart)["data"]
        error = trace[f"error_{axis}"]
        reached = zip(trace[axis], error["arrayminus"], error["array"], strict=True)
        assert [(at - below, at + above) for at, below, above in reached] == ends
        draw_picture(chart, tmp_path / f"{chart.key}.svg")
    assert "<!-- a -->" in (tmp_path / "d.svg").read_text(encoding="utf-8")
