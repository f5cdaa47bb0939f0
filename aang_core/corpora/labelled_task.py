"""The end task: its examples in three parts, and its classes."""

import difflib
import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from aang_core.corpora.dev_split import split_dev
from aang_core.corpora.labelled import Columns, LabelledRows, read_rows
from aang_core.corpora.names import task_name
from aang_core.corpora.tables import TableSource
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, ReadReport

MOST_CLASSES = 10_000
"""A column with more distinct values does not hold classes."""


@dataclass(frozen=True)
class LabelledTask:
    """A classification task over texts or pairs of texts.

    Attributes:
        name: the task's name.
        train: training examples in file order; never empty.
        dev: dev examples in file order; never empty.
        test: test examples in file order; may be empty.
        labels: the classes of train, sorted; a class's index here is its id. Every example has one
            of them.
        rest: training examples that a draw of training rows left out; nothing trains on them.
    """

    name: str
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
    labels: tuple[str, ...]
    rest: tuple[Example, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Fingerprint of all three parts: the same 32 hexadecimal digits for the same content."""
        content = hashlib.sha256()
        for part in (self.train, self.dev, self.test):
            content.update(b"part %d " % len(part))
            for example in part:
                for value in (example.text, example.text_pair, example.label):
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
    seed: int = 0,
    dev_fraction: float = 0.1,
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
        seed: of the dev split.
        dev_fraction: the share of train that becomes the dev set.
        report: where to count what was skipped or changed.

    Raises:
        DataError: a file cannot be used, train or a given part is empty, train has only one class,
            or dev or test contain a class that train lacks.
        ConfigError: ``dev_fraction`` is not above 0 and at most 0.5.
    """
    report = ReadReport() if report is None else report
    columns = Columns(text, text_pair, label, task)
    return assemble_task(
        task or task_name(train if isinstance(train, Path) else train.path),
        read_rows(train, columns, report),
        None if dev is None else read_rows(dev, columns, report),
        None if test is None else read_rows(test, columns, report),
        seed=seed,
        dev_fraction=dev_fraction,
        report=report,
        label_option=columns.option_of("label"),
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
    """
    for part in (train, dev, test):
        if part is not None and not part.examples:
            raise DataError(f"{part.source}: it contains no examples.")
    labels = classes_of(train, label_option)
    note_look_alikes(train.source, labels, report)
    for part in (dev, test):
        if part is not None:
            _require_known_labels(part, labels, train.source)
    if dev is None:
        train, dev = split_dev(train, dev_fraction, seed, report)
    _count_overlap(train, dev, "dev", report)
    if test is not None:
        _count_overlap(train, test, "test", report)
    return LabelledTask(
        name, train.examples, dev.examples, () if test is None else test.examples, labels
    )


def classes_of(train: LabelledRows, option: str) -> tuple[str, ...]:
    """The classes of a training set, sorted.

    Args:
        train: the training examples.
        option: the option that names the column of the label, for messages.

    Raises:
        DataError: there are fewer than two classes, or more than :data:`MOST_CLASSES`.
    """
    labels = tuple(sorted(set(_labels(train.examples))))
    if len(labels) < 2:
        raise DataError(
            f"{train.source}: every example has the label {labels[0]!r}. A classifier needs "
            f"examples of at least two classes; does {option} name the right column?"
        )
    if len(labels) > MOST_CLASSES:
        raise DataError(
            f"{train.source}: there are {len(labels)} different labels in {len(train.examples)} "
            f"examples, such as {_listed([label[:40] for label in labels], 3)}. The maximum is "
            f"{MOST_CLASSES} classes; does {option} name the right column?"
        )
    return labels


def note_look_alikes(source: str, labels: Iterable[str], report: ReadReport) -> None:
    """Note labels that differ only in case, spaces or invisible characters."""
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(_skeleton(label), []).append(label)
    groups = [" and ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    if groups:
        more = f"; so do {len(groups) - 3} more groups" if len(groups) > 3 else ""
        report.note(
            f"{source}: the labels {'; '.join(groups[:3])} differ only in case, space or invisible "
            f"characters{more}. Each is a class of its own; write them alike if they are meant to "
            "be one"
        )


def _skeleton(label: str) -> str:
    folded = unicodedata.normalize("NFKC", label).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c) != "Cf")


def _require_known_labels(part: LabelledRows, labels: Sequence[str], source: str) -> None:
    known = set(labels)
    for name, where in zip(_labels(part.examples), part.places, strict=True):
        if name not in known:
            close = difflib.get_close_matches(name, labels, n=1)
            meant = f" Is {close[0]!r} meant?" if close else ""
            raise DataError(
                f"{where}: label {name!r} does not occur in the training data ({source}), so it "
                f"cannot be learned.{meant} The classes there are {_listed(labels)}. "
                "Correct the label, or move examples of that class to the training data."
            )


def _count_overlap(train: LabelledRows, part: LabelledRows, name: str, report: ReadReport) -> None:
    """Count texts that are also in train: they make scores too good, and nobody notices."""
    seen = {(example.text, example.text_pair) for example in train.examples}
    for example, where in zip(part.examples, part.places, strict=True):
        if (example.text, example.text_pair) in seen:
            report.add(f"{name} text that is also in the training data", where)


def _labels(examples: Iterable[Example]) -> list[str]:
    return [example.label for example in examples if example.label is not None]


def _listed(labels: Sequence[str], most: int = 20) -> str:
    counted = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(repr(label) for label in labels[:most]) + counted
