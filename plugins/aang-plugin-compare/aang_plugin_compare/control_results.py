"""Results of controls that are not runs: a file for each control, task and seed."""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Annotated, Any, TypeVar

from aang.config import TrainConfig
from aang.runs import PENALTIES as OF_TF_IDF
from aang.runs import TF_IDF, ChosenScores
from pydantic import BaseModel, ConfigDict, Field

from aang_core import DataError
from aang_core.storage import write_file, writing

Record = TypeVar("Record")

FOLDER = "controls"

FROZEN = ("frozen-first-token", "frozen-mean")
QUICK_CONTROLS = (TF_IDF, *FROZEN)
"""The controls that come first in every table."""

PENALTIES: Mapping[str, Sequence[float]] = {
    TF_IDF: OF_TF_IDF,
    **dict.fromkeys(FROZEN, (0.001, 0.01, 0.1, 1.0, 10.0)),
}
"""The inverse penalties C that each control tries, equally many for all."""

ENCODED = ("model", "from_scratch", "allow_missing_weights", "max_length")
"""Options that features of the encoder depend on."""

_READ = (
    *("train", "dev", "test", "dataset", "text", "text_pair", "label", "dev_fraction"),
    "skip_bad_rows",
    *("task_type", "train_rows", "aux_task", "target", "seed", "metric"),
)


def asked_of(config: TrainConfig, control: str) -> dict[str, Any]:
    """The options that a quick control is computed with.

    Args:
        config: options of the run whose data and encoder it has.
        control: its name.
    """
    names = _READ if control == TF_IDF else (*_READ, *ENCODED)
    values = config.model_dump(mode="json", include=set(names), exclude_none=True)
    # Only where they matter, so that results from before these two were recorded stay valid.
    if not config.test_score:
        values["test_score"] = False
    if config.target in config.aux_task and config.target in config.set:
        values["set"] = config.model_dump(mode="json")["set"][config.target]
    return {**values, "penalties": list(PENALTIES[control])}


_Score = Annotated[float, Field(allow_inf_nan=False)]


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
        data: digest of the data that it was computed on; with other data it is computed again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    control: str
    quick: bool
    seed: Annotated[int, Field(ge=0)]
    metric: ChosenScores
    setting: str
    tried: Annotated[int, Field(ge=1)]
    seconds: Annotated[_Score, Field(ge=0)]
    asked: dict[str, Any]
    rows: str | None
    data: str = ""


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
    return read_record(path, ControlResult.model_validate_json, "remove it")


def read_record(path: Path, parse: Callable[[bytes], Record], remedy: str) -> Record | None:
    """The record in a file of a comparison or a search; None if there is no file.

    Args:
        path: the file.
        parse: reads its content; raises ValueError or TypeError if it cannot.
        remedy: what to do about a damaged one, for the message.

    Raises:
        DataError: it is damaged.
    """
    try:
        return parse(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: is damaged: {reason}; {remedy}") from error


def results_of(
    root: Path, task: str, seeds: Sequence[int], left_out: Set[Path] = frozenset()
) -> dict[str, list[ControlResult]]:
    """The results on a task by control, in the order of ``seeds``; quick controls come first.

    Args:
        root: the folder of the comparison.
        task: the task.
        seeds: the seeds.
        left_out: files that do not count, relative to ``root``.

    Raises:
        DataError: a result is damaged.
    """
    others = sorted(path.name for path in (root / FOLDER / task).glob("*/"))
    results: dict[str, list[ControlResult]] = {}
    for name in dict.fromkeys((*QUICK_CONTROLS, *others)):
        for path in (result_file(root, task, name, seed) for seed in seeds):
            result = None if path.relative_to(root) in left_out else read_result(path)
            if result is not None:
                results.setdefault(name, []).append(result)
    return results
