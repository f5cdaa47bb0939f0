"""The end task from a data set of the Hugging Face hub, or a local folder laid out like one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aang.corpora.in_memory import dataset_table
from aang.corpora.labelled_task import LabelledTask, TaskReading, load_task
from aang.corpora.tables import HIDDEN
from aang_core.errors import DataError
from aang_core.objectives.stages.data import ReadReport

_DEV_NAMES = ("validation", "valid", "dev")


def load_dataset_task(
    name: str, config: str | None, reading: TaskReading, report: ReadReport
) -> LabelledTask:
    """Read the end task with ``datasets.load_dataset``.

    Its splits ``train``, ``validation`` (or ``valid``, ``dev``) and ``test`` become the parts of
    the task. Class ids become class names. A test split whose labels are not public is left out and
    counted in the report.

    Args:
        name: a data set of the hub (``imdb``), a local folder that ``load_dataset`` understands, or
            one that ``save_to_disk`` has written.
        config: configuration of the data set, such as ``rte`` of ``nyu-mll/glue``.
        reading: how to read it.
        report: where to count what was skipped or changed.

    Raises:
        DataError: the data set cannot be loaded or used.
    """
    splits = parts_of(name, _load(name, config), reading.columns.label, report)
    parts = {
        part: dataset_table(rows, f"{name}, split {split!r}", first=1)
        for part, (split, rows) in splits.items()
    }
    own_name = f"{name.rstrip('/').rsplit('/')[-1]}" + (f"-{config}" if config else "")
    return load_task(parts, reading, report, own_name)


def parts_of(
    name: str, data_set: Mapping[Any, Any], label: str, report: ReadReport
) -> dict[str, tuple[str, Any]]:
    """Choose the splits that become the parts of the end task.

    Args:
        name: what messages call the data set.
        data_set: its splits by name.
        label: column of the label.
        report: where to note splits that are left out.

    Returns:
        For each part of :data:`.places.PARTS` that there is, its split's name and rows.

    Raises:
        DataError: there is no split ``train``.
    """
    splits = {str(split): rows for split, rows in data_set.items()}
    if "train" not in splits:
        raise DataError(
            f"{name}: the data set has no split 'train', only {', '.join(map(repr, splits))}."
        )
    dev = next((split for split in _DEV_NAMES if split in splits), "")
    chosen = {"train": "train", "dev": dev, "test": "test"}
    for split in sorted(set(splits) - set(chosen.values())):
        report.note(f"{name}: split {split!r} is not used")
    if "test" in splits and _labels_hidden(splits["test"], label):
        report.note(f"{name}: split 'test' is left out, its labels are not public")
        del chosen["test"]
    return {part: (split, splits[split]) for part, split in chosen.items() if split in splits}


def _load(name: str, config: str | None) -> Any:
    from datasets import Dataset, DatasetDict, load_dataset
    from datasets.exceptions import DatasetsError

    saved = Path(name)
    try:
        if (saved / "dataset_dict.json").is_file():
            return DatasetDict.load_from_disk(saved)
        if (saved / "state.json").is_file():
            return DatasetDict(train=Dataset.load_from_disk(saved))
        return load_dataset(name, config)
    # A missing configuration, unknown splits, no network, broken files: each has its own class.
    except (DatasetsError, OSError, ValueError, RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(
            f"--dataset {name}: the data set cannot be loaded: {reason}. "
            "Check the name and the network, or download it and name its files with --train."
        ) from error


def _labels_hidden(split: Any, label: str) -> bool:
    if label not in split.column_names or not len(split):
        return False
    column = split.with_format("numpy")[label][:]
    return bool((column == HIDDEN).all()) if column.dtype.kind == "i" else False
