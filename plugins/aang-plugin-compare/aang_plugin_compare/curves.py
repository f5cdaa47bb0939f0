"""Dev scores of the runs of a comparison over steps, seconds and rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aang.config import recorded_config
from aang.runs import Cost, DevScores, Result, read_lines, read_part

from aang_plugin_compare.cells import Cell, Comparison


@dataclass(frozen=True)
class Point:
    """An evaluation on dev.

    Attributes:
        task: the task.
        method: the method.
        setting: the options that the grid sets, as text.
        seed: the seed.
        step: steps of the main training before it.
        seconds: seconds of training so far, with those of pre-training and this evaluation; None
            for a run that did not record them.
        rows: rows through the body so far, with those of pre-training; None like ``seconds``.
        metric: name of the metric.
        dev: the score.
    """

    task: str
    method: str
    setting: str
    seed: int
    step: int
    seconds: float | None
    rows: int | None
    metric: str
    dev: float


def curves(comparison: Comparison, root: Path) -> list[Point]:
    """Every evaluation of every run that has finished.

    Raises:
        DataError: a file of a run is damaged.
    """
    return [
        point for cell in comparison.finished(root) for point in _points(cell, root / cell.folder)
    ]


def _points(cell: Cell, folder: Path) -> Iterator[Point]:
    try:
        evaluations = read_lines(DevScores, folder)
    except FileNotFoundError:
        return
    try:
        # An evaluation's line is the last one of its step.
        taken = {line.step: line for line in read_lines(Cost, folder)}
    except FileNotFoundError:
        taken = {}
    stages = read_part(Result, folder).pretraining.values()
    seconds = sum(stage.train_seconds for stage in stages)
    rows = sum(stage.body_rows for stage in stages)
    # Without --metric, a run chooses it by the kind of its end task.
    metric = recorded_config(folder / "config.yaml").metric
    for line in evaluations:
        cost = taken.get(line.step)
        yield Point(
            cell.task,
            cell.method,
            cell.setting,
            cell.seed,
            line.step,
            None if cost is None else round(seconds + cost.seconds, 3),
            None if cost is None else rows + cost.rows,
            metric,
            line.dev[metric],
        )
