"""Finished runs and controls that a table leaves out, because they are not of the comparison."""

from collections.abc import Iterator
from pathlib import Path

from aang.runs import Result, read_part

from aang_core import AangError, Registry
from aang_plugin_compare.cells import Cell, Comparison
from aang_plugin_compare.control_results import QUICK_CONTROLS, read_result, result_file
from aang_plugin_compare.matching import matched
from aang_plugin_compare.quick_options import asked_of
from aang_plugin_compare.run_folders import run_state

_LOWEST = {"spearman": -1.0, "pearson": -1.0, "r2": float("-inf"), "rmse": 0.0}
_HIGHEST = {"rmse": float("inf")}
"""The range of each score, where it is not from 0 to 1."""


def left_out(comparison: Comparison, root: Path, registry: Registry) -> dict[Path, str]:
    """The finished runs and quick controls to leave out, each with the reason.

    Args:
        comparison: the comparison.
        root: its folder.
        registry: where the default space and weighter are looked up.

    Returns:
        The reasons by the folders of the runs and the files of the controls, relative to ``root``.

    Raises:
        DataError: the result of a run or of a control is damaged.
    """
    found = {}
    for cell in comparison.cells:
        if (root / cell.folder / "result.json").is_file():
            for reason in _reasons(cell, root, registry):
                found[cell.folder] = reason
                break
    for cell in comparison.leading():
        for name in QUICK_CONTROLS:
            path = result_file(root, cell.task, name, cell.seed)
            result = read_result(path)
            if result is not None and result.asked != asked_of(cell.config, name):
                found[path.relative_to(root)] = (
                    f"{path}: was computed with other options; aang compare computes it again "
                    "without --table-only"
                )
    return found


def _reasons(cell: Cell, root: Path, registry: Registry) -> Iterator[str]:
    try:
        config = cell.config if cell.match is None else matched(cell.config, cell.match, root)
        run_state(root / cell.folder, config, registry)
    except AangError as error:
        yield str(error)
    metric = read_part(Result, root / cell.folder).metric
    lowest, highest = _LOWEST.get(metric.name, 0.0), _HIGHEST.get(metric.name, 1.0)
    for part, score in (("dev", metric.dev), ("test", metric.test)):
        if score is not None and not lowest <= score <= highest:
            yield (
                f"{root / cell.folder}: its {metric.name} on {part} is {score:g}, which no model "
                "can have; result.json is damaged"
            )
