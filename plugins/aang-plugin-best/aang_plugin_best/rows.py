"""The labelled rows, and the folds in which every row is predicted once."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from aang.assembly import read_end_task
from aang.assembly.labelled_tasks import end_task_files
from aang.config import TrainConfig
from aang.corpora.labelled import read_rows
from aang.corpora.labelled_task import LabelledTask, text_key
from aang.corpora.tables import read_table
from aang.task_types.cells import is_null, without_zeros
from aang.task_types.single_label import ONE_CLASS, SingleLabel
from numpy.typing import NDArray

from aang_core import ConfigError, DataError, Example, ReadReport, Registry
from aang_core.storage import write_file, writing

FOLDS = 5
FEWEST_ROWS = 20
"""With fewer rows, no two candidates can be told apart."""


@dataclass(frozen=True)
class Rows:
    """The N labelled rows, of C classes.

    Attributes:
        examples: the rows.
        places: where each of them is, such as ``data.csv:7``.
        groups: the group of each row, int64 ``[N]``; equal texts are always in one group.
        folds: the fold of each row, int64 ``[N]``.
        kind: the kind of task, which knows the classes.
        count: the number of folds that all labelled rows are divided into.
    """

    examples: tuple[Example, ...]
    places: tuple[str, ...]
    groups: NDArray[np.int64]
    folds: NDArray[np.int64]
    kind: SingleLabel
    count: int

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """The class of each row, int64 ``[N]``."""
        return np.array(self.kind.ids([e.label for e in self.examples], "the rows"))

    @cached_property
    def texts(self) -> "NDArray[np.object_] | list[str]":
        """What candidates are fitted to: N texts, or ``[N, 2]`` for pairs."""
        return texts_of(self.examples)

    def of_folds(self, count: int) -> "Rows":
        """The rows of the first folds."""
        kept = np.flatnonzero(self.folds < count)
        return Rows(
            tuple(self.examples[i] for i in kept),
            tuple(self.places[i] for i in kept),
            np.unique(self.groups[kept], return_inverse=True)[1],
            self.folds[kept],
            self.kind,
            self.count,
        )

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the rows and their folds."""
        pairs = zip(self.examples, self.folds, strict=True)
        content = [(*_columns(example).values(), int(fold)) for example, fold in pairs]
        return sha256(json.dumps(content).encode()).hexdigest()[:32]

    def write(self, folder: Path) -> None:
        """Write the rows of every training: ``rows.jsonl``, and two files for each fold.

        Raises:
            StorageError: a file cannot be written.
        """
        parts = {"rows.jsonl": np.ones(len(self.folds), dtype=bool)}
        for k in range(self.count):
            parts[f"fold-{k}/train.jsonl"] = self.folds != k
            parts[f"fold-{k}/held-out.jsonl"] = self.folds == k
        for name, chosen in parts.items():
            self.write_part(folder / name, chosen)

    def write_part(self, file: Path, chosen: NDArray[np.bool_]) -> None:
        """Write the chosen rows, a mask ``[N]``, as JSON Lines.

        Raises:
            StorageError: the file cannot be written.
        """
        write_examples(file, [self.examples[i] for i in np.flatnonzero(chosen)])


def write_examples(file: Path, examples: Sequence[Example]) -> None:
    """Write examples as JSON Lines.

    Raises:
        StorageError: the file cannot be written.
    """
    lines = [json.dumps(_columns(example), ensure_ascii=False) + "\n" for example in examples]
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, "".join(lines))


def texts_of(examples: Sequence[Example]) -> "NDArray[np.object_] | list[str]":
    """The texts as fitted candidates take them: N strings, or ``[N, 2]`` for pairs."""
    if examples and examples[0].text_pair is not None:
        return np.array([(e.text, e.text_pair) for e in examples], dtype=object)
    return [example.text for example in examples]


def read_labelled(
    config: TrainConfig, registry: Registry, report: ReadReport, group: str | None, keep_dev: bool
) -> tuple[Rows, LabelledTask]:
    """Read every labelled row, and divide all but those of test into folds.

    Args:
        config: names the data.
        registry: where kinds of end task are found.
        report: collects notes about the data.
        group: the column whose equal values stay in one fold.
        keep_dev: leave the dev set out.

    Returns:
        The rows, and the task with its dev and test.

    Raises:
        AangError: the data cannot be used, or there is too little.
    """
    # Its notes are about a dev set split off from train, which joins the rows again below.
    task, _ = read_end_task(config, ReadReport(), registry)
    if not isinstance(task.task_type, SingleLabel):
        raise ConfigError(
            f"aang best chooses among classifiers of one class a text, and {task.name} is "
            f"{task.task_type.name}; train it with aang train, and compare with aang compare"
        )
    files = end_task_files(config)
    if files is None:
        if group is not None:
            raise ConfigError("--group: goes with --train, a file that has the column")
        examples = (*task.train, *(() if keep_dev else task.dev))
        places = tuple(f"{task.name}, row {number}" for number in range(len(examples)))
        values: list[object] = list(range(len(examples)))
    else:
        paths = [p for p in (files.train, None if keep_dev else files.dev) if p is not None]
        if keep_dev and files.dev is None:
            raise ConfigError("--keep-dev: goes with --dev, the rows to keep out")
        parts = [
            read_rows(path, files.columns, report, ONE_CLASS, skip_bad_rows=config.skip_bad_rows)
            for path in paths
        ]
        examples = tuple(e for part in parts for e in part.examples)
        places = tuple(p for part in parts for p in part.places)
        values = list(range(len(examples)))
        if group is not None:
            named = {place: v for path in paths for place, v in _column(path, group).items()}
            values = [_group(named[place], place, group) for place in places]
    labels = tuple(sorted({str(e.label) for e in examples}))
    rows = Rows(
        examples,
        places,
        _joined(examples, values),
        np.zeros(len(examples), dtype=np.int64),
        replace(ONE_CLASS, labels=labels),
        count=1,
    )
    folds = _folds(rows, config.seed, group)
    return replace(rows, folds=folds, count=int(folds.max()) + 1), task


def _folds(rows: Rows, seed: int, group: str | None) -> NDArray[np.int64]:
    """The fold of each row, stratified by class, with each group in one fold.

    Scores are over all rows together, never means over folds, so a class may have fewer rows than
    there are folds: some folds then have no row of it, and none is copied.

    Raises:
        DataError: there are too few rows, or a fold would leave no row of a class to train on.
    """
    import warnings

    from sklearn.model_selection import StratifiedGroupKFold

    truth, groups = rows.truth, rows.groups
    classes = rows.kind.labels
    if len(truth) < FEWEST_ROWS:
        raise DataError(
            f"there are {len(truth)} labelled rows; aang best needs at least {FEWEST_ROWS}, and "
            "a few hundred to see a difference between candidates"
        )
    distinct = len(set(groups.tolist()))
    if group is not None and distinct < 2:
        raise DataError(f"--group {group}: every row is in one group; give a column with several")
    for number, name in enumerate(classes):
        of_class = groups[truth == number]
        if len(set(of_class.tolist())) < 2:
            same = "of one text" if group is None else "in one group"
            what = "row" if len(of_class) == 1 else f"{len(of_class)} rows {same}"
            raise DataError(
                f"class {name!r} has {'a single ' if len(of_class) == 1 else ''}{what}, which "
                "cannot be both trained on and predicted; label more texts of it, or leave it out"
            )
    count = min(FOLDS, distinct, int(np.bincount(truth).max()))
    folds = np.empty(len(truth), dtype=np.int64)
    splitter = StratifiedGroupKFold(count, shuffle=True, random_state=seed % 2**32)
    with warnings.catch_warnings():
        # It warns of classes with fewer rows than folds.
        warnings.filterwarnings("ignore", "The least populated class")
        for number, (_, held_out) in enumerate(splitter.split(truth, truth, groups)):
            folds[held_out] = number
    for number in range(count):
        lost = sorted(set(range(len(classes))) - set(truth[folds != number].tolist()))
        if lost or not (folds == number).any():
            which = f"class {classes[lost[0]]!r}" if lost else "every row"
            raise DataError(
                f"a fold would hold all of {which}; the groups, of equal texts or of --group, are "
                "too few or too unequal"
            )
    return folds


def _column(path: Path, name: str) -> dict[str, object]:
    """The values of a column by the places of their rows; None for missing cells."""
    table = read_table(path, [name])
    return {table.where(number): values.get(name) for number, values in table.rows}


def _group(value: object, where: str, name: str) -> str:
    """The name of a row's group; 7, 7.0 and "7 " are one, because files turn one into another.

    Raises:
        DataError: the cell is empty.
    """
    text = "" if is_null(value) else str(value).strip()
    if not text:
        raise DataError(f"{where}: --group {name}: there is no such value here")
    return without_zeros(text)


def _joined(examples: Sequence[Example], values: Sequence[object]) -> NDArray[np.int64]:
    """The group of each row: rows of one value, or with one text, are in one group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first: dict[object, int] = {}
    links = []
    for row, (example, value) in enumerate(zip(examples, values, strict=True)):
        links += [(row, first.setdefault(("value", str(value)), row))]
        links += [(row, first.setdefault(text_key(example), row))]
    ends = np.array(links).T
    graph = coo_array((np.ones(len(links)), (ends[0], ends[1])), shape=(len(examples),) * 2)
    groups: NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)
    return groups


def example_texts(example: Example) -> dict[str, str]:
    """The one or two texts of an example, by column."""
    pair = {} if example.text_pair is None else {"text_pair": example.text_pair}
    return {"text": example.text, **pair}


def _columns(example: Example) -> dict[str, object]:
    return {**example_texts(example), "label": example.label}
