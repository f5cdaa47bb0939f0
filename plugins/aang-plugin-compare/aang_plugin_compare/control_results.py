"""Results of controls that are not runs: a file for each control, task and seed."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Annotated, Any

from aang.runs import TF_IDF
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aang_core import DataError, Metric
from aang_core.storage import write_file, writing

FOLDER = "controls"

FROZEN = ("frozen-first-token", "frozen-mean")
QUICK_CONTROLS = (TF_IDF, *FROZEN)
"""The controls that come first in every table."""

_Score = Annotated[float, Field(allow_inf_nan=False)]


class ControlMetric(BaseModel):
    """The scores on dev and, where there is a test set, on test.

    Attributes:
        intervals: the 95% bootstrap interval of each; results of earlier versions have none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Metric
    dev: _Score
    test: _Score | None
    intervals: dict[str, list[_Score]] = {}


class ControlResult(BaseModel):
    """The result of a control with one seed.

    Attributes:
        control: its name, also in the table.
        quick: whether it is a quick control, which is not tested against the baseline.
        seed: the seed.
        metric: its scores.
        setting: the setting that was chosen.
        tried: number of settings.
        seconds: seconds that all settings took together.
        asked: the options that it was computed with; if they change, it is computed again.
        rows: digest of the training rows that the seed drew; None if it was trained on all rows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    control: str
    quick: bool
    seed: Annotated[int, Field(ge=0)]
    metric: ControlMetric
    setting: str
    tried: Annotated[int, Field(ge=1)]
    seconds: Annotated[_Score, Field(ge=0)]
    asked: dict[str, Any]
    rows: str | None


def result_file(root: Path, task: str, control: str, seed: int) -> Path:
    """The file of a result, in the folder of a comparison."""
    return root / FOLDER / task / control / f"seed-{seed}.json"


def write_result(root: Path, task: str, result: ControlResult) -> None:
    """Write a result atomically.

    Raises:
        StorageError: the file cannot be written.
    """
    path = result_file(root, task, result.control, result.seed)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(result.model_dump(mode="json"), indent=2) + "\n")


def read_result(path: Path) -> ControlResult | None:
    """The result in ``path``; None if there is none.

    Raises:
        DataError: it is damaged.
    """
    try:
        return ControlResult.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: is damaged: {reason}; remove it") from error


def results_of(
    root: Path, task: str, seeds: Sequence[int], left_out: Set[Path] = frozenset()
) -> Mapping[str, list[ControlResult]]:
    """The results on a task by control, in the order of ``seeds``.

    Args:
        root: the folder of the comparison.
        task: the task.
        seeds: the seeds.
        left_out: files that do not count, relative to ``root``.

    Raises:
        DataError: a result is damaged.
    """
    results: dict[str, list[ControlResult]] = {}
    for seed in seeds:
        for path in result_files(root, task, seed, left_out):
            if (result := read_result(path)) is not None:
                results.setdefault(path.parent.name, []).append(result)
    return {name: results[name] for name in _names(root / FOLDER / task) if name in results}


def result_files(root: Path, task: str, seed: int, left_out: Set[Path] = frozenset()) -> list[Path]:
    """The files of all controls' results on a task with one seed, without those left out."""
    files = (result_file(root, task, name, seed) for name in _names(root / FOLDER / task))
    return [path for path in files if path.relative_to(root) not in left_out and path.is_file()]


def _names(folder: Path) -> Iterator[str]:
    """The controls in a folder: the quick ones in their order, then the others."""
    there = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
    yield from (name for name in QUICK_CONTROLS if name in there)
    yield from sorted(there - set(QUICK_CONTROLS))
