"""The dev score around a run's best evaluation, in two settings."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.steady_dev import main, read_scores, steady_score

pytestmark = pytest.mark.release

HEAD = "task,method,setting,seed,step,seconds,rows,metric,dev\n"


def write_curves(folder: Path, scores: dict[int, list[float]]) -> Path:
    folder.mkdir()
    lines = [
        f"words,plain,,{seed},{25 * place},1.0,0,macro-f1,{score}\n"
        for seed, of_draw in scores.items()
        for place, score in enumerate(of_draw)
    ]
    (folder / "curves.csv").write_text(HEAD + "".join(lines), encoding="utf-8")
    return folder


def test_the_score_is_the_mean_of_the_best_and_its_neighbours() -> None:
    assert steady_score([10, 20, 60, 40, 90], 0) == 90
    assert steady_score([10, 20, 60, 40, 50], 1) == 40
    assert steady_score([10, 40, 90], 1) == 65  # nothing follows the last
    assert steady_score([30, 60, 0, 60, 60], 1) == 30  # the first of three that are best


def test_scores_are_in_the_order_of_steps(tmp_path: Path) -> None:
    lines = "words,plain,,3,100,1.0,0,macro-f1,0.4\nwords,plain,,3,25,1.0,0,macro-f1,0.2\n"
    (tmp_path / "curves.csv").write_text(HEAD + lines, encoding="utf-8")
    assert read_scores(tmp_path, "plain") == {3: pytest.approx([20, 40])}
    with pytest.raises(click.ClickException, match="no evaluation of contrast"):
        read_scores(tmp_path, "contrast")


def test_tasks_and_settings_are_not_mixed(tmp_path: Path) -> None:
    """Other methods may have several settings."""
    lines = [
        "words,plain,,0,0,1.0,0,macro-f1,0.4\n",
        "images,plain,,0,0,1.0,0,macro-f1,0.2\n",
        "words,other,lr=1e-3,0,0,1.0,0,macro-f1,0.4\n",
        "words,other,lr=1e-4,0,0,1.0,0,macro-f1,0.2\n",
        "words,third,,0,0,1.0,0,macro-f1,0.4\n",
    ]
    (tmp_path / "curves.csv").write_text(HEAD + "".join(lines), encoding="utf-8")
    with pytest.raises(click.ClickException, match="has the tasks images and words"):
        read_scores(tmp_path, "plain")
    with pytest.raises(click.ClickException, match="other has the settings 'lr=1e-3' and 'lr=1"):
        read_scores(tmp_path, "other")
    assert read_scores(tmp_path, "third") == {0: [40]}


def test_draws_that_both_have_are_compared_over_all_pairs(tmp_path: Path) -> None:
    one = write_curves(tmp_path / "one", {0: [0.1, 0.5, 0.3], 1: [0.2, 0.2, 0.2], 2: [0.9]})
    two = write_curves(tmp_path / "two", {0: [0.3, 0.6, 0.6], 1: [0.3, 0.3, 0.3]})
    pairs = ["--pair", str(one), str(two), "--pair", str(one), str(one)]
    result = CliRunner().invoke(main, [*pairs, "--method", "plain"])
    assert result.exit_code == 0, result.output
    assert "| two | 0 | 30.0 | 50.0 | +20.0 |" in result.output
    assert "5 draws: +6.00" in result.output  # 20, 10, and three times nothing


def test_settings_without_a_draw_in_common_are_refused(tmp_path: Path) -> None:
    one = write_curves(tmp_path / "one", {0: [0.1]})
    two = write_curves(tmp_path / "two", {1: [0.1]})
    result = CliRunner().invoke(main, ["--pair", str(one), str(two), "--method", "plain"])
    assert result.exit_code == 1
    assert "no draw of plain in common" in result.output
