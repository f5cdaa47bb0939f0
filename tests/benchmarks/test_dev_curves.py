"""Curves are averaged over the draws of a method, and drawn."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.dev_curves import main, read_curves

pytestmark = pytest.mark.release

LINES = """task,method,setting,seed,step,seconds,rows,metric,dev
words,plain,,0,0,1.0,0,macro-f1,0.1
words,plain,,0,25,11.0,1600,macro-f1,0.5
words,plain,,0,50,21.0,3200,macro-f1,0.6
words,plain,,1,0,3.0,0,macro-f1,0.3
words,plain,,1,25,15.0,1600,macro-f1,0.3
words,other,,0,0,1.0,0,macro-f1,0.2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "curves.csv").write_text(LINES, encoding="utf-8")
    return tmp_path


def test_a_curve_is_the_mean_of_its_draws_where_all_have_been(folder: Path) -> None:
    plain = read_curves(folder, ["plain"])["plain"]
    assert plain.draws == 2
    assert plain.steps == [0, 25]
    assert plain.rows == [0, 1600]
    assert plain.seconds == [2, 13]
    assert plain.scores == pytest.approx([20, 40])
    assert plain.errors == pytest.approx([10, 10])  # half of the difference of two draws


def test_a_draw_of_a_slow_machine_does_not_stretch_the_others(folder: Path) -> None:
    with (folder / "curves.csv").open("a", encoding="utf-8") as file:
        file.write("words,plain,,2,0,40.0,0,macro-f1,0.1\n")
    assert read_curves(folder, ["plain"])["plain"].seconds == [3]


def test_curves_that_are_drawn_together_are_of_the_same_draws(folder: Path) -> None:
    """Another draw has other training rows, which can make a method look better than it is."""
    curves = read_curves(folder)
    assert {name: curve.draws for name, curve in curves.items()} == {"plain": 1, "other": 1}
    assert curves["plain"].scores == pytest.approx([10, 50, 60])
    assert curves["other"].errors == [0]
    with (folder / "curves.csv").open("a", encoding="utf-8") as file:
        file.write("words,late,,2,0,1.0,0,macro-f1,0.2\n")
    with pytest.raises(click.ClickException, match="plain, other, late have no draw in common"):
        read_curves(folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("images,other,,1,0,1.0,0,macro-f1,0.2", "has the tasks images and words"),
        ("words,plain,lr=1e-4,0,0,1.0,0,macro-f1,0.2", "plain has the settings '' and 'lr=1e-4'"),
    ],
)
def test_tasks_and_settings_are_not_mixed(folder: Path, line: str, message: str) -> None:
    """Of the methods that are drawn."""
    with (folder / "curves.csv").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    drawn = [str(folder / "figure.png"), str(folder)]
    refused = CliRunner().invoke(main, drawn)
    assert refused.exit_code == 1
    assert message in refused.output
    left = {"other": "plain", "plain": "other"}[line.split(",")[1]]
    assert CliRunner().invoke(main, [*drawn, "--method", left]).exit_code == 0


def test_the_figure_is_drawn(folder: Path) -> None:
    figure = folder / "of" / "figure.png"
    done = CliRunner().invoke(main, [str(figure), str(folder), "--method", "plain"])
    assert done.exit_code == 0, done.output
    assert figure.read_bytes().startswith(b"\x89PNG")
    refused = CliRunner().invoke(main, [str(figure), str(folder), "--method", "plane"])
    assert refused.exit_code == 2
    assert "has none of these methods, only plain, other" in refused.output
    refused = CliRunner().invoke(main, [str(figure), str(folder), "--title", "a", "--title", "b"])
    assert "2 titles for 1 folders" in refused.output


def test_a_run_that_does_not_say_what_it_took_is_not_drawn(folder: Path) -> None:
    """The others can be, still."""
    with (folder / "curves.csv").open("a", encoding="utf-8") as file:
        file.write("words,old,,0,0,1.0,,macro-f1,0.2\n")
    refused = CliRunner().invoke(main, [str(folder / "all.png"), str(folder), "--title", "Words"])
    assert refused.exit_code == 1
    assert "Words: old does not say how many rows or seconds it took" in refused.output
    assert not (folder / "all.png").exists()
    plain = CliRunner().invoke(main, [str(folder / "plain.png"), str(folder), "--method", "plain"])
    assert plain.exit_code == 0, plain.output
