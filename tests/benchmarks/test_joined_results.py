"""Tables of several comparisons become one, with tests over all that they trained."""

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from aang_plugin_compare.tables import Entry
from click.testing import CliRunner, Result
from scipy.stats import ttest_rel

from benchmarks.joined_results import main

pytestmark = pytest.mark.release

HEADER = "task,method,setting,seed,step,seconds,rows,metric,dev\n"


def entry(method: str, test: dict[int, float], **changes: object) -> Entry:
    seeds, scores = list(test), list(test.values())
    same = {"metric": "macro-f1", "setting": "", "tried": 1, "missing": 0}
    runs = {"seeds": seeds, "dev": scores, "test": scores, "seconds": [60.0] * len(seeds)}
    return Entry(task="words", method=method, **{**same, **runs, **changes})  # type: ignore[arg-type]


def folder(path: Path, *entries: Entry) -> Path:
    path.mkdir()
    (path / "table.json").write_text(json.dumps([asdict(e) for e in entries]))
    lines = [f"words,{e.method},,{s},0,1.0,0,macro-f1,0.1\n" for e in entries for s in e.seeds]
    (path / "curves.csv").write_text(HEADER + "".join(lines))
    return path


def join(*folders: Path) -> Result:
    return CliRunner().invoke(main, [*map(str, folders), "--baseline", "plain"])


def test_runs_of_a_method_are_put_together_and_tested_anew(tmp_path: Path) -> None:
    plain = {0: 0.5, 1: 0.52, 2: 0.51}
    first = folder(tmp_path / "first", entry("plain", plain), entry("other", {2: 0.57, 0: 0.55}))
    quick = entry("tf-idf", {0: 0.4}, quick=True)
    second = folder(tmp_path / "second", entry("other", {1: 0.56, 0: 0.55}), quick)
    solvers_differ = entry("tf-idf", {0: 0.41, 1: 0.41}, quick=True)
    third = folder(tmp_path / "third", solvers_differ)
    assert join(first, first, second, third).exit_code == 0  # Into one of them.
    controls, baseline, other = json.loads((first / "table.json").read_text())
    assert (controls["method"], controls["missing"]) == ("tf-idf", 1)
    assert controls["test"] == [0.4, 0.41]
    assert (baseline["method"], baseline["t_test"]) == ("plain", None)
    assert (other["seeds"], other["test"]) == ([0, 1, 2], [0.55, 0.56, 0.57])
    assert other["points"] == pytest.approx(5)
    assert other["t_test"] == pytest.approx(
        ttest_rel([0.55, 0.56, 0.57], list(plain.values())).pvalue
    )
    with (first / "curves.csv").open(encoding="utf-8", newline="") as file:
        evaluations = [(line["method"], line["seed"]) for line in csv.DictReader(file)]
    assert len(evaluations) == len(set(evaluations)) == 8


def test_a_run_with_two_scores_is_refused(tmp_path: Path) -> None:
    """Where another processor or encoder made it, the others are not pairs either."""
    first = folder(tmp_path / "first", entry("plain", {0: 0.5, 1: 0.52}))
    second = folder(tmp_path / "second", entry("plain", {1: 0.53}), entry("other", {1: 0.6}))
    done = join(tmp_path / "out", first, second)
    assert done.exit_code == 1
    assert "words/plain/seed-1: scores 0.5200 on dev in one table and 0.5300" in done.output
    assert not (tmp_path / "out").exists()


def test_other_training_rows_of_a_seed_are_refused(tmp_path: Path) -> None:
    """A quick control tells: on the same rows it scores the same anywhere, but for its solver."""
    first = folder(
        tmp_path / "first", entry("plain", {0: 0.5}), entry("tf-idf", {0: 0.4}, quick=True)
    )
    other = entry("other", {0: 0.6}), entry("tf-idf", {0: 0.45}, quick=True)
    done = join(tmp_path / "out", first, folder(tmp_path / "second", *other))
    assert done.exit_code == 1
    assert "words/tf-idf/seed-0: scores 0.4000" in done.output
    assert "the two have other training rows" in done.output


def test_settings_of_a_grid_are_not_mixed(tmp_path: Path) -> None:
    first = folder(tmp_path / "first", entry("plain", {0: 0.5}, setting="lr=1e-3"))
    second = folder(tmp_path / "second", entry("plain", {1: 0.53}, setting="lr=1e-4"))
    assert "words/plain: one table has the setting 'lr=1e-3'" in join(first, first, second).output


def test_rows_of_a_step_are_the_mean_of_all_runs(tmp_path: Path) -> None:
    """A run that two tables have counts as in the one with more runs of its method."""
    three, two = {0: 0.5, 1: 0.5, 2: 0.5}, {3: 0.5, 4: 0.5}
    first = folder(tmp_path / "first", entry("plain", three, rows=52.0))
    second = folder(tmp_path / "second", entry("plain", two, rows=44.0))
    assert join(tmp_path / "out", first, second).exit_code == 0
    (joined,) = json.loads((tmp_path / "out" / "table.json").read_text())
    assert joined["rows"] == pytest.approx(48.8)
    whole = folder(tmp_path / "whole", entry("plain", three | two, rows=50.1))
    assert join(tmp_path / "out", first, whole).exit_code == 0
    (joined,) = json.loads((tmp_path / "out" / "table.json").read_text())
    assert joined["rows"] == 50.1


def test_rows_of_a_step_are_unknown_if_a_table_does_not_say_them(tmp_path: Path) -> None:
    first = folder(tmp_path / "first", entry("plain", {0: 0.5}, rows=52.0))
    second = folder(tmp_path / "second", entry("plain", {1: 0.5}))
    assert join(tmp_path / "out", first, second).exit_code == 0
    (joined,) = json.loads((tmp_path / "out" / "table.json").read_text())
    assert joined["rows"] is None


def test_scores_of_two_metrics_are_not_mixed(tmp_path: Path) -> None:
    """Neither of one method nor of two that are compared."""
    first = folder(tmp_path / "first", entry("plain", {0: 0.5}), entry("untrained", {}, metric=""))
    for name in ("plain", "other"):
        second = folder(tmp_path / name, entry(name, {1: 0.9}, metric="accuracy"))
        done = join(tmp_path / "out", first, second)
        assert done.exit_code == 1
        assert (
            f"words/{name}: scores are accuracy, and those of words/plain macro-f1" in done.output
        )
    assert not (tmp_path / "out").exists()


def test_scores_on_test_are_there_for_all_runs_of_a_method_or_for_none(tmp_path: Path) -> None:
    first = folder(tmp_path / "first", entry("plain", {0: 0.5}))
    second = folder(tmp_path / "second", replace(entry("plain", {1: 0.5}), test=[]))
    for folders in ((first, second), (second, first)):
        done = join(tmp_path / "out", *folders)
        assert done.exit_code == 1
        assert "words/plain: one table has scores on test and another has none" in done.output
    assert join(tmp_path / "out", second).exit_code == 0


def test_tables_without_a_run_in_common_are_noted(tmp_path: Path) -> None:
    """Tables may be linked through a third one; a quick control is not trained and links none."""
    note = "words: two tables have no run in common: nothing shows that both were trained alike"
    quick = entry("tf-idf", {0: 0.4}, quick=True)
    first = folder(tmp_path / "first", entry("plain", {0: 0.5}), quick)
    second = folder(tmp_path / "second", entry("plain", {1: 0.5}), quick)
    done = join(tmp_path / "out", first, second)
    assert done.exit_code == 0
    assert done.output.count(note) == 1
    link = folder(tmp_path / "link", entry("plain", {0: 0.5, 1: 0.5}))
    for folders in ((first,), (first, second, link), (first, folder(tmp_path / "quick", quick))):
        done = join(tmp_path / "out", *folders)
        assert done.exit_code == 0
        assert "no run in common" not in done.output


def test_tables_without_a_finished_run_are_joined(tmp_path: Path) -> None:
    """A training that was stopped early has only the head of its curves."""
    first = folder(tmp_path / "first", entry("plain", {}, metric=""))
    done = join(tmp_path / "out", first)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "curves.csv").read_text() == HEADER


def test_a_method_without_a_finished_run_keeps_its_place(tmp_path: Path) -> None:
    first = folder(tmp_path / "first", entry("plain", {0: 0.5}), entry("other", {}))
    assert join(first, first).exit_code == 0
    plain, other = json.loads((first / "table.json").read_text())
    assert (plain["missing"], other["missing"], other["points"]) == (0, 1, None)
