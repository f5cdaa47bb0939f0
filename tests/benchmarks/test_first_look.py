"""The files of the first look are comparisons that ``aang compare`` plans."""

from pathlib import Path

import pytest
from aang_plugin_compare.planning import read_comparison
from click.testing import CliRunner

from aang_core import AangError, load_plugins, load_space
from benchmarks.first_look import METHODS, main

pytestmark = pytest.mark.release

REGISTRY = load_plugins(environ={}).registry


def known(method: str) -> bool:
    """Whether all that the method names is installed."""
    options = METHODS[method]
    try:
        load_space(options.get("space", "td"), REGISTRY)
    except AangError:
        return False
    return options.get("recipe", "tapt") in REGISTRY.recipes


@pytest.mark.parametrize("task", ["scierc", "acl-arc", "demo"])
def test_they_are_planned(tmp_path: Path, task: str) -> None:
    """Methods whose plug-in is not installed are left out and listed by name."""
    leave_out = [part for m in METHODS if not known(m) for part in ("--leave-out", m)]
    made = CliRunner().invoke(
        main,
        [str(tmp_path), str(tmp_path), str(tmp_path / "out"), *leave_out, "--option", "lr=1e-3"],
    )
    assert made.exit_code == 0, made.output
    plan = read_comparison(tmp_path / "out" / f"{task}.yaml", REGISTRY)
    assert {cell.seed for cell in plan.cells} == set(range(5))
    drawn = None if task == "demo" else 500
    assert {cell.config.train_rows for cell in plan.cells} == {drawn}
    assert {cell.config.precision for cell in plan.cells} == {"bf16"}
    assert {"single-task", "single-task-96", "factored-td", "masked-lm"} <= set(plan.methods)
