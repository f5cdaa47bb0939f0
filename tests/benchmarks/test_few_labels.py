"""The files of few labels are comparisons that ``aang compare`` plans."""

from pathlib import Path

import pytest
from aang_plugin_compare.cells import Comparison
from aang_plugin_compare.planning import read_comparison
from click.testing import CliRunner

from aang_core import load_plugins, load_space
from benchmarks.few_labels import METHODS, main

pytestmark = pytest.mark.release

REGISTRY = load_plugins(environ={}).registry


def planned(folder: Path, task: str, *options: str) -> Comparison:
    """The comparison of a task that the script writes."""
    places = [str(folder), str(folder), str(folder / "out")]
    made = CliRunner().invoke(main, [*places, *options])
    assert made.exit_code == 0, made.output
    return read_comparison(folder / "out" / f"{task}.yaml", REGISTRY)


@pytest.mark.parametrize(("task", "seeds"), [("scierc", 3), ("acl-arc", 3), ("demo", 5)])
def test_they_are_planned(tmp_path: Path, task: str, seeds: int) -> None:
    plan = planned(tmp_path, task)
    assert {cell.seed for cell in plan.cells} == set(range(seeds))
    assert list(plan.methods) == list(METHODS)
    assert {cell.config.train_rows for cell in plan.cells} == {None if task == "demo" else 200}
    # Methods that read no text without labels are not given any.
    reading = {cell.method for cell in plan.cells if cell.config.unlabelled == ("rest",)}
    assert reading == (set() if task == "demo" else {"fixmatch", "factored-td+u"})


def test_options_are_those_of_all_runs(tmp_path: Path) -> None:
    """The demo's own number of steps included, for a quick look."""
    for task in ("scierc", "demo"):
        plan = planned(tmp_path, task, "--option", "steps=2", "--seeds", "1", "--rows", "30")
        assert {(cell.config.steps, cell.seed) for cell in plan.cells} == {(2, 0)}
    assert {cell.config.model for cell in plan.cells} == {None}


def test_methods_take_as_many_rows_a_step(tmp_path: Path) -> None:
    for cell in planned(tmp_path, "demo").cells:
        config = cell.config
        alone = config.weighter == "single-task" or config.recipe == "contrast"
        assert config.batch_size + (0 if alone else config.aux_batch_size) == 64, cell.method


def test_fixmatch_is_one_objective() -> None:
    (objective,) = load_space(METHODS["fixmatch"]["space"], REGISTRY).objectives
    assert objective.factors["data"] == "unlabelled"


def test_text_without_labels_is_for_methods_that_read_it(tmp_path: Path) -> None:
    """Without them the files are comparisons, too."""
    left = [part for name in ("fixmatch", "factored-td+u") for part in ("--leave-out", name)]
    plan = planned(tmp_path, "scierc", *left)
    assert {cell.config.unlabelled for cell in plan.cells} == {()}
