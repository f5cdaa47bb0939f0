"""The end task from a data set of the Hugging Face hub, or a local folder laid out like one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aang.corpora.dataset_folder import refuse_files_elsewhere
from aang.corpora.in_memory import HIDDEN, dataset_table
from aang.corpora.labelled import Columns
from aang.corpora.labelled_task import LabelledTask, task_of_tables
from aang.corpora.tables import Table
from aang.task_types.names import TaskTypeName
from aang_core.errors import DataError
from aang_core.objectives.stages.data import ReadReport

_DEV_NAMES = ("validation", "valid", "dev")


def load_dataset_task(
    name: str,
    *,
    config: str | None = None,
    text: str = "text",
    text_pair: str | None = None,
    label: str = "label",
    task_type: TaskTypeName | None = None,
    label_names: Sequence[str] = (),
    seed: int = 0,
    dev_fraction: float = 0.1,
    skip_bad_rows: bool = False,
    report: ReadReport | None = None,
) -> LabelledTask:
    """Read the end task with ``datasets.load_dataset``.

    Its splits ``train``, ``validation`` (or ``valid``, ``dev``) and ``test`` become the parts of
    the task. Class ids become class names. A test split whose labels are not public is left out and
    counted in the report.

    Args:
        name: a data set of the hub (``imdb``), a local folder that ``load_dataset`` understands, or
            one that ``save_to_disk`` has written.
        config: configuration of the data set, such as ``rte`` of ``nyu-mll/glue``.
        text: column of the text.
        text_pair: column of the second text; None for single texts.
        label: column of the label.
        task_type: what kind of task it is; None to choose it from the labels of train.
        label_names: the names of the classes where labels are zeros and ones by their place.
        seed: of the dev split.
        dev_fraction: see :func:`.labelled_task.load_task`.
        skip_bad_rows: see :func:`.labelled_task.load_task`.
        report: where to count what was skipped or changed.

    Raises:
        DataError: the data set cannot be loaded or used.
    """
    report = ReadReport() if report is None else report
    columns = Columns(text, text_pair, label)
    parts = parts_of(name, _load(name, config), label, report)
    rows = {part: _table(name, *split, columns) for part, split in parts.items()}
    return task_of_tables(
        f"{name.rstrip('/').rsplit('/')[-1]}" + (f"-{config}" if config else ""),
        rows["train"],
        rows.get("dev"),
        rows.get("test"),
        columns=columns,
        task_type=task_type,
        label_names=label_names,
        seed=seed,
        dev_fraction=dev_fraction,
        skip_bad_rows=skip_bad_rows,
        report=report,
    )


def parts_of(
    name: str, splits: Mapping[str, Any], label: str, report: ReadReport
) -> dict[str, tuple[str, Any]]:
    """Choose the splits that become the parts of the end task.

    Args:
        name: what messages call the data set.
        splits: its splits.
        label: column of the label.
        report: where to note splits that are left out.

    Returns:
        The name and the rows of the split for each part that there is, by :data:`PARTS`.

    Raises:
        DataError: there is no split ``train``.
    """
    if "train" not in splits:
        raise DataError(
            f"{name}: the data set has no split 'train', only {', '.join(map(repr, splits))}."
        )
    dev_name = next((split for split in _DEV_NAMES if split in splits), None)
    chosen = {"train": "train", "dev": dev_name, "test": "test"}
    for split in sorted(set(splits) - set(chosen.values())):
        report.note(f"{name}: split {split!r} is not used")
    parts = {
        part: (split, splits[split])
        for part, split in chosen.items()
        if split is not None and split in splits
    }
    if "test" in parts and _labels_hidden(parts["test"][1], label):
        report.note(f"{name}: split 'test' is left out, its labels are not public")
        del parts["test"]
    return parts


def _load(name: str, config: str | None) -> Mapping[str, Any]:
    from datasets import Dataset, DatasetDict, load_dataset
    from datasets.exceptions import DatasetsError

    saved = Path(name)
    refuse_files_elsewhere(saved)
    try:
        if (saved / "dataset_dict.json").is_file():
            loaded = DatasetDict.load_from_disk(saved)
        elif (saved / "state.json").is_file():
            loaded = DatasetDict(train=Dataset.load_from_disk(saved))
        else:
            loaded = load_dataset(name, config)
    # A missing configuration, unknown splits, no network, broken files: each has its own class.
    except (DatasetsError, OSError, ValueError, RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(
            f"--dataset {name}: the data set cannot be loaded: {reason}. "
            "Check the name and the network, or download it and name its files with --train."
        ) from error
    if not isinstance(loaded, DatasetDict):
        raise DataError(f"--dataset {name}: the data set has no splits.")
    return {str(split): rows for split, rows in loaded.items()}


def _labels_hidden(split: Any, label: str) -> bool:
    if label not in split.column_names or not len(split):
        return False
    column = split.with_format("numpy")[label][:]
    return bool((column == HIDDEN).all()) if column.dtype.kind == "i" else False


def _table(name: str, split_name: str, split: Any, columns: Columns) -> Table:
    return dataset_table(split, f"{name}, split {split_name!r}", first=1).table(columns.names())
