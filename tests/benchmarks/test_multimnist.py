"""Cells of MultiMNIST are kept in a file, which has one number of epochs."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks.multimnist import main
from examples.multimnist import TASKS

pytestmark = pytest.mark.release


def results(path: Path, *cells: dict[str, Any]) -> Path:
    """A file with a cell of plain fine-tuning for each target, and further ones."""
    same = {"weighter": "single-task", "seed": 0, "dev": 0.9, "test": 0.8}
    lines = [*({**same, "target": target} for target in TASKS), *cells]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def run(path: Path, *options: str) -> Result:
    given = [str(path.parent), str(path), "--seeds=1", "--weighter=single-task", *options]
    return CliRunner().invoke(main, ["run", *given])


def test_cells_of_another_number_of_epochs_are_refused(tmp_path: Path) -> None:
    """They would stand for what is asked for. A cell that does not say it has the default."""
    file = results(tmp_path / "results.jsonl")
    content = file.read_text()
    assert run(file).exit_code == 0
    refused = run(file, "--epochs=30")
    assert refused.exit_code == 1
    assert "results.jsonl has cells of 25 epochs, not 30" in refused.output
    results(file, {"weighter": "diw", "target": TASKS[0], "seed": 0, "epochs": 4, "test": 0.1})
    assert "has cells of 4 epochs, not 25" in run(file).output
    assert results(file).read_text() == content


@pytest.mark.parametrize("targets", [(), TASKS[:1]])
def test_curves_need_cells_of_alpha_vil(tmp_path: Path, targets: tuple[str, ...]) -> None:
    """For both targets."""
    record = {
        "alpha": dict.fromkeys(TASKS, 1.0),
        "weights": dict.fromkeys(TASKS, 0.5),
        "end_task_weight": 0.5,
    }
    cells = [
        {"weighter": "alpha-vil", "target": t, "seed": 0, "history": [record]} for t in targets
    ]
    file, figure = results(tmp_path / "results.jsonl", *cells), tmp_path / "figure.png"
    refused = CliRunner().invoke(main, ["curves", str(file), str(figure)])
    assert refused.exit_code == 1
    missing = TASKS[len(targets)]
    assert f"results.jsonl has no cell of alpha-vil with the target {missing}" in refused.output
    assert not figure.exists()
