"""The end task: its examples in three parts, and its classes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from aang.corpora.dev_split import split_dev
from aang.corpora.labelled import Columns, LabelledRows, complete_rows, examples_of, written
from aang.corpora.names import task_name
from aang.corpora.tables import Table, TableSource, read_table
from aang.corpora.unseen_classes import know_unseen
from aang.task_types.choose import LabelColumn, choose_task_type
from aang.task_types.names import TaskTypeName
from aang.task_types.single_label import ONE_CLASS, SingleLabel
from aang.task_types.task_type import TaskType
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, ReadReport


@dataclass(frozen=True)
class LabelledTask:
    """A labelled task over texts or pairs of texts.

    Attributes:
        name: the task's name.
        train: training examples in file order; never empty.
        dev: dev examples in file order; never empty.
        test: test examples in file order; may be empty.
        labels: the names of what the end task's head computes. For a single-label task: the
            classes of train, sorted; a class's index here is its id. Every example of train has one
            of them; dev and test may have others, which only ``task_type`` knows.
        rest: training examples that a draw of training rows left out; nothing trains on them.
        of_type: what kind of task it is; None for a single-label task with these labels.
        left_out: how many rows of a part were left out because they lack a text or label; parts
            without any are not in it.
    """

    name: str
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
    labels: tuple[str, ...]
    rest: tuple[Example, ...] = ()
    of_type: TaskType | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def task_type(self) -> TaskType:
        """What kind of task it is."""
        return self.of_type or SingleLabel(self.labels)

    @cached_property
    def digest(self) -> str:
        """Fingerprint of all three parts: the same 32 hexadecimal digits for the same content."""
        content = hashlib.sha256()
        for part in (self.train, self.dev, self.test):
            content.update(b"part %d " % len(part))
            for example in part:
                for value in (example.text, example.text_pair, written(example.label)):
                    data = b"" if value is None else value.encode("utf-8", "surrogatepass")
                    content.update(b"%d:" % (-1 if value is None else len(data)) + data)
        return content.hexdigest()[:32]


def load_task(
    train: Path | TableSource,
    dev: Path | TableSource | None = None,
    test: Path | TableSource | None = None,
    *,
    text: str = "text",
    text_pair: str | None = None,
    label: str = "label",
    task: str | None = None,
    task_type: TaskTypeName | None = None,
    label_names: Sequence[str] = (),
    seed: int = 0,
    dev_fraction: float = 0.1,
    skip_bad_rows: bool = False,
    report: ReadReport | None = None,
) -> LabelledTask:
    """Read the end task from the user's files; formats as :func:`.labelled.read_rows`.

    Args:
        train: the training file, or a table in memory, as for the others.
        dev: the dev file; None to split ``dev_fraction`` of train off, stratified by class and
            drawn with ``seed``, which the report notes.
        test: the test file; None for a task without test examples.
        text: column of the text.
        text_pair: column of the second text; None for single texts.
        label: column of the label.
        task: name of the task, if it is one of several; None to name it after its training file.
        task_type: what kind of task it is; None to choose it from the labels of train.
        label_names: the names of the classes where labels are zeros and ones by their place.
        seed: of the dev split.
        dev_fraction: the share of train that becomes the dev set.
        skip_bad_rows: leave out rows that lack a text or a label; otherwise they are an error.
        report: where to count what was skipped or changed.

    Raises:
        DataError: a file cannot be used, train or a given part is empty, train has only one class
            or number, or dev or test has no class of train.
        ConfigError: ``dev_fraction`` is not above 0 and at most 0.5.
    """
    report = ReadReport() if report is None else report
    columns = Columns(text, text_pair, label, task)
    return task_of_tables(
        task or task_name(train if isinstance(train, Path) else train.path),
        read_table(train, columns.names()),
        *(None if part is None else read_table(part, columns.names()) for part in (dev, test)),
        columns=columns,
        task_type=task_type,
        label_names=label_names,
        seed=seed,
        dev_fraction=dev_fraction,
        skip_bad_rows=skip_bad_rows,
        report=report,
    )


def task_of_tables(
    name: str,
    train: Table,
    dev: Table | None,
    test: Table | None,
    *,
    columns: Columns,
    task_type: TaskTypeName | None,
    label_names: Sequence[str],
    seed: int,
    dev_fraction: float,
    skip_bad_rows: bool,
    report: ReadReport,
) -> LabelledTask:
    """Read the end task from tables; see :func:`load_task`.

    Args:
        name: the task's name.
        train: its training rows.
        dev: its dev rows; None to split them off.
        test: its test rows, if any.
        columns: names of the columns.
        task_type: what kind of task it is; None to choose it from the labels of train.
        label_names: the names of the classes where labels are zeros and ones by their place.
        seed: of the dev split.
        dev_fraction: the share of train that becomes the dev set.
        skip_bad_rows: see :func:`load_task`.
        report: where to count what was skipped or changed.
    """
    # Before anything else: what is missing must not decide the kind of task.
    left_out = ReadReport()
    blank_label = task_type == "multi-label"
    rows = list(
        complete_rows(
            train, columns, left_out, skip_bad_rows=skip_bad_rows, blank_label=blank_label
        )
    )
    report.add_all(left_out)
    column = LabelColumn(
        columns.label,
        [values.get(columns.label) for _, values in rows],
        [values.get(columns.text) for _, values in rows],
        typed=train.typed,
        source=train.source,
    )
    chosen = choose_task_type(task_type, column, report, label_names)
    read = examples_of(replace(train, rows=iter(rows)), columns, report, chosen)
    return assemble_task(
        name,
        replace(read, left_out=left_out.counts.total()),
        *(
            None
            if part is None
            else examples_of(part, columns, report, chosen, skip_bad_rows=skip_bad_rows)
            for part in (dev, test)
        ),
        seed=seed,
        dev_fraction=dev_fraction,
        report=report,
        label_option=columns.option_of("label"),
        task_type=chosen,
    )


def assemble_task(
    name: str,
    train: LabelledRows,
    dev: LabelledRows | None,
    test: LabelledRows | None,
    *,
    seed: int,
    dev_fraction: float,
    report: ReadReport,
    label_option: str = "--label",
    task_type: TaskType = ONE_CLASS,
) -> LabelledTask:
    """Check the parts against each other and combine them into a task; see :func:`load_task`.

    Args:
        name: the task's name.
        train: its training examples.
        dev: its dev examples; None to split them off.
        test: its test examples, if any.
        seed: of the dev split.
        dev_fraction: the share of train that becomes the dev set.
        report: where to count what was skipped or changed.
        label_option: the option that names the column of the label, for messages.
        task_type: the kind of task that the examples were read for.
    """
    for part in (train, dev, test):
        if part is not None and not part.examples:
            raise DataError(f"{part.source}: it contains no examples.")
    given = [(part, rows) for part, rows in (("dev", dev), ("test", test)) if rows is not None]
    left_out = {part: rows.left_out for part, rows in (("train", train), *given) if rows.left_out}
    fitted = fit_to(train, label_option, report, task_type)
    fitted = know_unseen(fitted, given, report, label_option)
    if dev is None:
        train, dev = split_dev(train, dev_fraction, seed, report, fitted)
    _count_overlap(train, dev, "dev", report)
    if test is not None:
        _count_overlap(train, test, "test", report)
    return LabelledTask(
        *(name, train.examples, dev.examples, () if test is None else test.examples),
        labels=fitted.labels,
        of_type=fitted,
        left_out=left_out,
    )


def fit_to(
    train: LabelledRows, option: str, report: ReadReport, task_type: TaskType = ONE_CLASS
) -> TaskType:
    """The kind of task, with the classes or the scale of a training set.

    Args:
        train: the training examples; at least one.
        option: the option that names the column of the label, for messages.
        report: where to note what is odd about the labels.
        task_type: the kind of task.

    Raises:
        DataError: nothing can be learned from the labels.
    """
    labels = [example.label for example in train.examples if example.label is not None]
    return task_type.fitted(labels, train.source, option, report)


def _count_overlap(train: LabelledRows, part: LabelledRows, name: str, report: ReadReport) -> None:
    """Count texts that are also in train: they make scores too good, and nobody notices."""
    seen = {(example.text, example.text_pair) for example in train.examples}
    for example, where in zip(part.examples, part.places, strict=True):
        if (example.text, example.text_pair) in seen:
            report.add(f"{name} text that is also in the training data", where)
