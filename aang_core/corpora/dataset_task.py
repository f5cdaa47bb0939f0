"""The end task from a data set of the Hugging Face hub, or a local folder laid out like one."""

from collections.abc import Iterator, Mapping
from typing import Any

from aang_core.corpora.labelled import Columns
from aang_core.corpora.labelled_task import LabelledTask, task_of_tables
from aang_core.corpora.tables import Row, Table
from aang_core.errors import DataError
from aang_core.objectives.stages.data import ReadReport
from aang_core.task_types.names import TaskTypeName

_DEV_NAMES = ("validation", "valid", "dev")

_HIDDEN = -1
"""Value of a ``ClassLabel`` column whose labels are not public, as in GLUE's test sets."""


def load_dataset_task(
    name: str,
    *,
    config: str | None = None,
    text: str = "text",
    text_pair: str | None = None,
    label: str = "label",
    task_type: TaskTypeName | None = None,
    seed: int = 0,
    dev_fraction: float = 0.1,
    report: ReadReport | None = None,
) -> LabelledTask:
    """Read the end task with ``datasets.load_dataset``.

    Its splits ``train``, ``validation`` (or ``valid``, ``dev``) and ``test`` become the parts of
    the task. Class ids become class names. A test split whose labels are not public is left out and
    counted in the report.

    Args:
        name: a data set of the hub (``imdb``) or a local folder that ``load_dataset`` understands.
        config: configuration of the data set, such as ``rte`` of ``nyu-mll/glue``.
        text: column of the text.
        text_pair: column of the second text; None for single texts.
        label: column of the label.
        task_type: what kind of task it is; None to choose it from the labels of train.
        seed: of the dev split.
        dev_fraction: see :func:`.labelled_task.load_task`.
        report: where to count what was skipped or changed.

    Raises:
        DataError: the data set cannot be loaded or used.
    """
    report = ReadReport() if report is None else report
    columns = Columns(text, text_pair, label)
    splits = _load(name, config)
    if "train" not in splits:
        raise DataError(
            f"{name}: the data set has no split 'train', only {', '.join(map(repr, splits))}."
        )
    dev_name = next((split for split in _DEV_NAMES if split in splits), None)
    ignored = set(splits) - {"train", "test", dev_name}
    for split in sorted(ignored):
        report.note(f"{name}: split {split!r} is not used")
    test = splits.get("test")
    if test is not None and _labels_hidden(test, label):
        report.note(f"{name}: split 'test' is left out, its labels are not public")
        test = None
    return task_of_tables(
        f"{name.rstrip('/').rsplit('/')[-1]}" + (f"-{config}" if config else ""),
        _table(name, "train", splits["train"], columns),
        _table(name, dev_name, splits[dev_name], columns) if dev_name else None,
        None if test is None else _table(name, "test", test, columns),
        columns=columns,
        task_type=task_type,
        seed=seed,
        dev_fraction=dev_fraction,
        report=report,
    )


def _load(name: str, config: str | None) -> Mapping[str, Any]:
    from datasets import DatasetDict, load_dataset
    from datasets.exceptions import DatasetsError

    try:
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
    return bool((column == _HIDDEN).all()) if column.dtype.kind == "i" else False


def _table(name: str, split_name: str, split: Any, columns: Columns) -> Table:
    present = tuple(split.column_names)
    wanted = [column for column in columns.names() if column in present]
    return Table(f"{name}, split {split_name!r}", "row", present, _values(split, wanted, columns))


def _values(split: Any, wanted: list[str], columns: Columns) -> Iterator[Row]:
    """Rows in which names of classes replace their ids, if the data set declares classes."""
    feature = split.features.get(columns.label)
    # A list of class ids is a list feature of them.
    names = getattr(getattr(feature, "feature", feature), "names", None)
    for number, row in enumerate(split.select_columns(wanted), start=1):
        if names:
            row[columns.label] = _named(row.get(columns.label), names)
        yield number, row


def _named(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_named(part, names) for part in value]
    if isinstance(value, int):
        return None if value == _HIDDEN else names[value]
    return value
