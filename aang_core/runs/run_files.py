"""What a run folder holds, checked before it is used: folders come from strangers too."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aang_core.errors import DataError
from aang_core.training.evaluation import Metric

_Count = Annotated[int, Field(ge=0)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Numbers = dict[str, _Number]


class _Part(BaseModel):
    """What is used of an object; there may be more in it."""

    model_config = ConfigDict(strict=True)


class _Scores(_Part):
    dev: _Number
    test: _Number | None


class _Chosen(_Scores):
    name: Metric


class _LogLikelihood(_Part):
    before: _Number
    after: _Number


class _Stage(_Part):
    objective: str
    steps: _Count
    best_step: _Count
    log_likelihood: Annotated[_LogLikelihood, Field(alias="log-likelihood")]
    note: str = ""
    model: str


class _FinalFineTuning(_Part):
    epochs: _Count
    best_epoch: _Count
    kept: bool
    before: _Scores
    after: _Scores


class _Result(_Part):
    weighter: str
    space: str
    seed: _Count
    objectives: _Count
    metric: _Chosen
    majority: _Scores
    best_step: _Count
    steps: _Count
    train_seconds: _Number
    peak_memory_bytes: _Count
    body_rows: _Count = 0
    model: str
    recipe: str = ""
    pretraining: dict[str, _Stage] = {}
    # It may be absent, and is not null.
    final_fine_tuning: _FinalFineTuning = None  # type: ignore[assignment]


class _Plugin(_Part):
    distribution: str
    version: str
    status: str


class _Plugins(_Part):
    plugins: list[_Plugin]
    primitives: dict[str, str]


class _Rows(_Part):
    examples: _Count
    cut: _Count
    labels: dict[str, _Count]


class _Texts(_Part):
    texts: _Count
    cut: _Count


class _Data(_Part):
    task: str
    parts: dict[str, _Rows]
    sources: dict[str, _Texts]
    notes: list[str]


class _TrainRows(_Part):
    rows: Annotated[list[_Count], Field(min_length=1)]
    of: _Count
    digest: str


class _Class(_Part):
    precision: _Number
    recall: _Number
    f1: _Number
    examples: _Count


class _Evaluated(_Part):
    scores: dict[Metric, _Number]
    confusion: list[list[_Count]] = []
    classes: dict[str, _Class]


class _Evaluation(_Part):
    labels: list[str]
    dev: _Evaluated
    # It may be absent, and is not null.
    test: _Evaluated = None  # type: ignore[assignment]


class _Evaluations(_Part):
    """A line of ``metrics.jsonl``."""

    step: _Count
    dev: dict[Metric, _Number]


class _Cost(_Part):
    """A line of ``cost.jsonl``."""

    step: _Count
    seconds: _Number
    rows: _Count


class _Weights(_Part):
    """A line of ``weights.jsonl``."""

    step: _Count
    end_task_weight: _Number
    weights: _Numbers
    cosines: _Numbers = {}
    alpha: _Numbers = {}
    factors: dict[Annotated[str, Field(pattern=r"^[a-z]+$")], _Numbers] = {}


_FILES: Mapping[str, type[_Part]] = {
    "result.json": _Result,
    "plugins.json": _Plugins,
    "data.json": _Data,
    "evaluation.json": _Evaluation,
    "metrics.jsonl": _Evaluations,
    "weights.jsonl": _Weights,
    "cost.jsonl": _Cost,
    "train_rows.json": _TrainRows,
}


def read_part(folder: Path, name: str) -> Any:
    """The content of one of the JSON files of a run; of a file of lines, a list.

    Raises:
        DataError: it is damaged, or holds something else than a run writes there.
        FileNotFoundError: there is none.
    """
    path = folder / name
    try:
        text = path.read_text(encoding="utf-8")
        values = (
            [json.loads(line) for line in text.splitlines()]
            if name.endswith("l")
            else [json.loads(text)]
        )
        for value in values:
            _FILES[name].model_validate(value)
    except FileNotFoundError:
        raise
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise DataError(f"{path}: is damaged: {where!r}: {first['msg']}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: is damaged: {error}") from error
    return values if name.endswith("l") else values[0]


def inside(folder: Path, name: str) -> Path:
    """``folder / name``.

    Raises:
        DataError: that is not below ``folder``.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(
            f"{folder}: names {name!r}, which is not in it; a run folder holds all that belongs "
            "to the run"
        )
    return path


def refuse_links(folder: Path) -> None:
    """Refuse a folder with a symbolic link that leads out of it.

    What is written to such a link, or read from it, is not the run's: a link ``result.json`` could
    be any file of the user's. The folder itself may be reached through one.

    Raises:
        DataError: there is one; the message names it.
    """
    root = folder.resolve()
    for parent, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(parent, name)
            if path.is_symlink() and not _leads_inside(path, root):
                raise DataError(
                    f"{folder}: {path.relative_to(root)} is a link that leads out of the folder. "
                    "A run folder holds all that belongs to the run: put there what it leads to, "
                    "or remove it"
                )


def _leads_inside(link: Path, root: Path) -> bool:
    try:
        return link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a circle of links
        return False
