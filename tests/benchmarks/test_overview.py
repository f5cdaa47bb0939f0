"""Methods of several settings stand in one table, and are tested over all draws together."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from aang_plugin_compare.tables import Entry
from click.testing import CliRunner, Result
from scipy.stats import ttest_rel

from benchmarks.overview import main

pytestmark = pytest.mark.release


def folder(path: Path, *, quick: str = "", **methods: dict[int, float]) -> Path:
    """A comparison's folder, with test scores in percent by draw of each method."""
    entries = [
        Entry(
            task=path.name,
            method=method,
            metric="macro-f1",
            seeds=list(scores),
            dev=[0.5] * len(scores),
            test=[score / 100 for score in scores.values()],
            setting="",
            tried=1,
            missing=0,
            seconds=[60.0] * len(scores),
            quick=method == quick,
        )
        for method, scores in methods.items()
    ]
    path.mkdir()
    (path / "table.json").write_text(json.dumps([asdict(entry) for entry in entries]))
    return path


def overview(*settings: tuple[str, Path], options: tuple[str, ...] = ()) -> Result:
    given = [word for name, path in settings for word in ("--setting", name, str(path))]
    return CliRunner().invoke(main, [*given, "--baseline", "plain", *options])


def rows(told: Result) -> dict[str, list[list[str]]]:
    """The cells behind a method's name, one list for each table that has it."""
    assert told.exit_code == 0, told.output
    found: dict[str, list[list[str]]] = {}
    for line in told.output.splitlines():
        if line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found.setdefault(name.strip("`"), []).append(cells)
    return found


def test_a_method_is_tested_over_the_draws_of_all_settings(tmp_path: Path) -> None:
    """Only draws that both have are pairs; a setting counts once, however many draws it has."""
    first = folder(
        tmp_path / "first",
        quick="words",
        words={0: 30.0},
        plain={0: 40.0, 1: 42.0, 2: 41.0},
        other={0: 48.0, 1: 52.0},
    )
    second = folder(tmp_path / "second", plain={0: 70.0}, other={0: 71.0})
    told = rows(overview(("few", first), ("all", second)))
    assert told["words"] == [["30.0 (-10.0), 1 draw", "–"]]  # Not tested.
    assert told["plain"] == [["41.0, 3 draws", "70.0, 1 draw"]]
    by_setting, over_settings = told["other"]
    assert by_setting == ["50.0 (+9.0), 2 draws", "71.0 (+1.0), 1 draw"]
    p = f"{ttest_rel([48.0, 52.0, 71.0], [40.0, 42.0, 70.0]).pvalue:.3f}"
    assert over_settings == ["2", "3", "+5.0", "+6.3", p, p]


def test_folders_of_one_setting_are_joined(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", plain={0: 40.0})
    two = folder(tmp_path / "two", plain={0: 40.0, 1: 41.0}, other={0: 45.0})
    two_tasks = json.loads((two / "table.json").read_text())
    (two / "table.json").write_text(json.dumps([{**e, "task": "one"} for e in two_tasks]))
    told = rows(overview(("few", one), ("few", two)))
    assert told["plain"] == [["40.5, 2 draws"]]
    assert told["other"][0] == ["45.0 (+5.0), 1 draw"]


def test_tasks_are_not_mixed(tmp_path: Path) -> None:
    """The methods of one would take the place of the other's, under the same names."""
    one = folder(tmp_path / "one", plain={0: 40.0})
    two = folder(tmp_path / "two", plain={0: 60.0})
    told = overview(("few", one), ("few", two))
    assert told.exit_code == 1
    assert "few has the tasks one and two; give a comparison for each" in told.output


def test_chosen_methods_keep_the_users_order(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", plain={0: 40.0}, a={0: 41.0}, b={0: 42.0})
    told = rows(overview(("few", one), options=("--method", "b", "--method", "plain")))
    assert list(told) == ["b", "plain"]


def test_a_method_that_nothing_trained_is_refused(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", plain={0: 40.0})
    told = overview(("few", one), options=("--method", "other"))
    assert told.exit_code == 1
    assert "no setting has other, only plain" in told.output


def test_a_method_with_another_name_counts_as_the_same(tmp_path: Path) -> None:
    first = folder(tmp_path / "first", plain={0: 40.0, 1: 42.0}, other={0: 48.0, 1: 52.0})
    second = folder(tmp_path / "second", plain_by_default={0: 50.0}, other={0: 53.0})
    settings = (("one", first), ("two", second))
    told = overview(*settings, options=("--called", "plain_by_default", "plain"))
    assert rows(told)["other"][1][:4] == ["2", "3", "+6.0", "+7.0"]


def test_two_methods_of_a_folder_are_not_counted_as_one(tmp_path: Path) -> None:
    first = folder(tmp_path / "first", plain={0: 40.0}, other={0: 48.0})
    told = overview(("one", first), options=("--called", "other", "plain"))
    assert told.exit_code == 1
    assert "has plain, so other cannot be counted as it" in told.output
