"""Rows of quick controls in a table get new scores, and nothing else changes."""

from dataclasses import replace
from pathlib import Path

import click
import pytest
from aang_plugin_compare.tables import Entry, judged, table
from click.testing import CliRunner

from benchmarks.joined_results import read_table
from benchmarks.quick_controls import main, with_new

pytestmark = pytest.mark.release

OLD = Entry("demo", "tf-idf", "macro-f1", [0], [0.5], [0.5], "", 5, 1, seconds=[1.0], quick=True)
PLAIN = Entry("demo", "single-task-defaults", "macro-f1", [0], [0.6], [0.55], "", 1, 0)


def test_only_controls_on_the_same_draws_take_the_place_of_others() -> None:
    new = replace(OLD, dev=[0.7], test=[0.65], missing=0)
    assert with_new([OLD, PLAIN], [new]) == [replace(new, missing=1), PLAIN]
    with pytest.raises(click.ClickException, match=r"demo/tf-idf: the table has the draws \[0\]"):
        with_new([OLD, PLAIN], [replace(new, seeds=[0, 1])])


def test_a_table_is_written_anew(tmp_path: Path) -> None:
    """A second call computes nothing."""
    folder = tmp_path / "tables" / "demo-defaults"
    folder.mkdir(parents=True)
    entries = judged([OLD, PLAIN], "single-task-defaults")
    (folder / "table.json").write_text(table(entries, "json", None), encoding="utf-8")
    (folder / "curves.csv").write_text("task,method,setting,seed,step\n", encoding="utf-8")
    arguments = [str(tmp_path), str(tmp_path), str(tmp_path / "out"), str(tmp_path / "tables")]
    for said in (True, False):
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        assert ("demo/tf-idf/seed-0: done" in done.output) == said
    first, plain = read_table(folder)
    assert first.test != OLD.test
    assert first.points == pytest.approx(100 * (first.test[0] - 0.55))
    assert plain.test == [0.55]
