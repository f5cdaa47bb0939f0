"""The end task: its examples in three parts, and its classes."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from aang.corpora.columns import Columns
from aang.corpora.labelled import (
    LabelledRows,
    complete_rows,
    examples_of,
    hashable,
    know_unseen,
    read_rows,
)
from aang.corpora.tables import TableInMemory, read_table
from aang.task_types.choose import choose_task_type, task_type_named
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import LabelColumn, TaskType
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, Label, ReadReport
from aang_core.plugins.registry import Registry

_BLANK_LINES = re.compile(r"\n\s*\n")
_TELLING = 40
"""A part of a held-out text with at least this many characters gives it away."""


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
                content.update(hashable(example))
        return content.hexdigest()[:32]

    def part_with(self, example: Example) -> str | None:
        """``dev`` or ``test``, if the text is in one of them, ignoring case and spaces.

        An objective that had seen such a text would inflate the score. In tasks over pairs, both
        texts have to be the same, and a single text has to be one of the two. A paragraph or line
        of such a text counts, too, because readers of text without labels divide texts; one of
        fewer than 40 characters, such as a greeting, may be in any text.

        Examples:
            >>> from aang_core import Example
            >>> from aang.corpora import LabelledTask
            >>> train = (Example("It rains.", label="bad"),)
            >>> dev = (Example("It snows.", label="good"),)
            >>> task = LabelledTask("mood", train, dev, (), ("bad", "good"))
            >>> task.part_with(Example("it  snows.")), task.part_with(Example("It rains."))
            ('dev', None)
            >>> pairs = LabelledTask("mood", train, (Example("It snows.", "Yes."),), (), ("bad",))
            >>> [pairs.part_with(Example(*of)) for of in (["Yes."], ["It snows.", "No."])]
            ['dev', None]
        """
        return self._held_out.get(text_key(example))

    @cached_property
    def _held_out(self) -> dict[tuple[str, str | None], str]:
        found: dict[tuple[str, str | None], str] = {}
        for part, examples in {"dev": self.dev, "test": self.test}.items():
            for example in examples:
                texts = [text for text in _texts(example) if text is not None]
                whole = [example, *map(Example, texts)] if len(texts) > 1 else [example]
                found |= dict.fromkeys(map(text_key, whole), part)
                for text in texts:
                    for piece in (*_BLANK_LINES.split(text), *text.splitlines()):
                        if len(piece) >= _TELLING:
                            found.setdefault(text_key(Example(piece)), part)
        return found


def new_texts(
    found: Iterable[tuple[Example, str]],
    held_out: Callable[[Example], str | None],
    name: str,
    source: str,
    report: ReadReport,
) -> Iterator[Example]:
    """The examples that are neither in dev nor in test of the end task.

    Args:
        found: examples, each with its place.
        held_out: returns ``dev`` or ``test`` for a text in that part, else None.
        name: the data that they belong to.
        source: where they come from, for the error.
        report: counts those that are left out.

    Raises:
        DataError: all of them are left out.
    """
    left_out = kept = 0
    for example, where in found:
        if part := held_out(example):
            left_out += 1
            report.add(f"text of {name} that is also in the end task's {part}, left out", where)
        else:
            kept += 1
            yield example
    if left_out and not kept:
        raise DataError(
            f"{source}: every text is also in dev or test of the end task. Nothing may train on "
            "those; give other texts."
        )


@dataclass(frozen=True)
class TaskWithTexts:
    """An end task and the texts beside it.

    Attributes:
        task: its texts and labels.
        domain: files of in-domain text.
        out_of_domain: files of generic text.
        unlabelled: texts like its own, without labels; none of them is in dev or test.
        fine_tuning: scores of plain fine-tuning, if they are known beforehand: those of
            ``--weighter single-task`` and no other option.
    """

    task: LabelledTask
    domain: tuple[Path, ...] = ()
    out_of_domain: tuple[Path, ...] = ()
    unlabelled: Iterable[Example] | None = None
    fine_tuning: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TaskReading:
    """How the end task is read.

    Attributes:
        columns: names of the columns.
        task_type: what kind of task it is; None to choose it from the labels of train.
        label_names: the names of the classes, for labels that are a zero or one for each class.
        seed: of the dev split.
        dev_fraction: the share of train that becomes the dev set where none is given.
        skip_bad_rows: leave out rows that lack a text or a label; otherwise they are an error.
        registry: where kinds of end task are looked up; None for the installed ones.
    """

    columns: Columns = field(default_factory=Columns)
    task_type: str | None = None
    label_names: Sequence[str] = ()
    seed: int = 0
    dev_fraction: float = 0.1
    skip_bad_rows: bool = False
    registry: Registry | None = None

    @property
    def empty_is_label(self) -> bool:
        """Whether an empty cell is a label of the kind that was asked for."""
        asked = self.task_type
        return asked is not None and task_type_named(asked, self.registry).empty_is_label


def load_task(
    parts: Mapping[str, Path | TableInMemory],
    reading: TaskReading,
    report: ReadReport,
    name: str,
) -> LabelledTask:
    """Read the end task from the user's files or from data in memory.

    Args:
        parts: ``train`` and, where there are any, ``dev`` and ``test``. Without dev, a part of
            train is split off, stratified by class, which the report notes.
        reading: how to read them.
        report: where to count what was skipped or changed.
        name: the task's name.

    Raises:
        DataError: a file cannot be used, a part is empty, train has only one class or number, or
            dev or test has no class of train.
    """
    columns, skip = reading.columns, reading.skip_bad_rows
    # First of all, because missing values must not decide the kind of task.
    train = complete_rows(
        read_table(parts["train"], columns.names()),
        columns,
        report,
        skip_bad_rows=skip,
        blank_label=reading.empty_is_label,
    )
    column = LabelColumn(
        columns.label,
        [values[columns.label] for _, values in train.rows],
        [values[columns.text] for _, values in train.rows],
        typed=train.typed,
        source=train.source,
    )
    kind = choose_task_type(
        reading.task_type, column, report, reading.label_names, reading.registry
    )
    rows = {"train": examples_of(train, columns, report, kind)} | {
        part: read_rows(parts[part], columns, report, kind, skip_bad_rows=skip)
        for part in ("dev", "test")
        if part in parts
    }
    option = columns.option("label")
    kind = kind.fitted(rows["train"].labels, rows["train"].source, option, report)
    kind = know_unseen(kind, [(n, rows[n]) for n in rows if n != "train"], report, option)
    left_out = {part: read.left_out for part, read in rows.items() if read.left_out}
    if "dev" not in rows:
        rows["train"], rows["dev"] = split_dev(
            rows["train"], reading.dev_fraction, reading.seed, report, kind
        )
    for part in ("dev", "test"):
        if part in rows:
            _count_overlap(rows["train"], rows[part], part, report)
            _note_constant(kind, rows[part].labels, part, report)
    return LabelledTask(
        name,
        rows["train"].examples,
        rows["dev"].examples,
        rows["test"].examples if "test" in rows else (),
        labels=kind.labels,
        of_type=kind,
        left_out=left_out,
    )


def split_dev(
    train: LabelledRows, fraction: float, seed: int, report: ReadReport, task_type: TaskType
) -> tuple[LabelledRows, LabelledRows]:
    """Split off ``fraction`` of the examples, stratified by class.

    Both parts keep the order of the file. A class with a single example stays in train; every other
    class keeps at least one example there. Dev has at least one example of each class that has two,
    or as close to that as stratification allows. Kinds of task without classes have other groups;
    see :meth:`.task_type.TaskType.strata`.

    Args:
        train: the training examples.
        fraction: the share that becomes the dev set, above 0 and at most 0.5.
        seed: of the draw.
        report: where to note the split.
        task_type: says what the classes are.

    Returns:
        The remaining training examples, and the dev set.

    Raises:
        DataError: no class has two examples, so there is nothing to split.
    """
    labels = task_type.strata(train.labels)
    sizes = Counter(labels)
    splittable = [index for index, label in enumerate(labels) if sizes[label] > 1]
    if not splittable:
        raise DataError(
            f"{train.source}: no class has two examples, so no dev set can be split off. "
            "Name a dev set with --dev."
        )
    # Imported here: scikit-learn takes a second, and most tasks bring a dev set.
    from sklearn.model_selection import train_test_split

    classes = len({labels[index] for index in splittable})
    wanted = max(classes, round(fraction * len(labels)))
    kept, drawn = train_test_split(
        splittable,
        test_size=min(wanted, len(splittable) // 2),
        random_state=seed % 2**32,  # scikit-learn's limit
        stratify=[labels[index] for index in splittable],
    )
    singles = [index for index, label in enumerate(labels) if sizes[label] == 1]
    report.note(
        f"{train.source}: {len(drawn)} of {len(labels)} examples split off as the dev set, "
        f"{task_type.draws}, seed {seed}; --dev names one of your own"
    )
    for index in singles:
        report.add("class with a single example, so absent from dev", train.places[index])
    return train.part(sorted([*kept, *singles])), train.part(sorted(drawn))


def overlaps(parts: Mapping[str, Sequence[Example]]) -> dict[tuple[str, str], int]:
    """For every two parts, how many examples of the later one have a text of the earlier one.

    Args:
        parts: the examples of each part, by its name.

    Returns:
        The counts by (later part, earlier part), without zeros.

    Examples:
        >>> from aang_core import Example
        >>> seen, new = Example("It rains.", label="wet"), Example("It snows.", label="wet")
        >>> overlaps({"train": [seen], "dev": [seen, seen, new], "test": [new]})
        {('dev', 'train'): 2, ('test', 'dev'): 1}
    """
    texts = {name: set(map(_texts, part)) for name, part in parts.items()}
    counts = {
        (later, earlier): sum(_texts(example) in texts[earlier] for example in parts[later])
        for earlier, later in combinations(parts, 2)
    }
    return {pair: count for pair, count in counts.items() if count}


def contradictions(examples: Iterable[Example]) -> dict[tuple[str, str | None], Counter[str]]:
    """The texts that occur with different labels, and how often with each.

    Examples:
        >>> from aang_core import Example
        >>> texts = [("Fine.", "good"), ("Dull.", "bad"), ("Fine.", "bad")]
        >>> contradictions(Example(text, label=label) for text, label in texts)
        {('Fine.', None): Counter({'good': 1, 'bad': 1})}
    """
    labels: dict[tuple[str, str | None], Counter[str]] = {}
    for example in examples:
        # A label of another kind of task, such as a list of classes, is compared as it is written.
        labels.setdefault(_texts(example), Counter())[str(example.label)] += 1
    return {text: counts for text, counts in labels.items() if len(counts) > 1}


def _note_constant(kind: TaskType, labels: Sequence[Label], part: str, report: ReadReport) -> None:
    """Note labels that are all the same: no span, number or class to tell from another."""
    tags = {tag for label in labels for tag in kind.names(label)}
    if len(tags if kind.reads_every_token else set(labels)) < 2:
        report.note(
            f"Every label of {part} is the same, so its score hardly tells a better model from a "
            "worse one."
        )


def _count_overlap(train: LabelledRows, part: LabelledRows, name: str, report: ReadReport) -> None:
    """Count texts that are also in train: they inflate scores unnoticed."""
    seen = set(map(_texts, train.examples))
    for example, where in zip(part.examples, part.places, strict=True):
        if _texts(example) in seen:
            report.add(f"{name} text that is also in the training data", where)


def _texts(example: Example) -> tuple[str, str | None]:
    return example.text, example.text_pair


def text_key(example: Example) -> tuple[str, str | None]:
    """A key for comparing texts, which ignores blanks and case."""
    first, second = (t if t is None else " ".join(t.split()).casefold() for t in _texts(example))
    return first or "", second
