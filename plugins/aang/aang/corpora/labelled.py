"""Labelled examples from one of the user's files, or from data in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aang.corpora.columns import Columns
from aang.corpora.tables import Row, Table, TableInMemory, read_table
from aang.task_types.cells import is_null, listed, note_look_alikes, text_of
from aang.task_types.single_label import ONE_CLASS
from aang.task_types.task_type import TaskType
from aang.task_types.written_lists import list_in
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, Label, ReadReport

_NO_CLASS = " A text without any class has an empty list, []."

_NAMED = 3
"""Most rows without a text or label that a message names."""


@dataclass(frozen=True)
class LabelledRows:
    """Examples and the place of each, so that later checks can still name the line.

    Attributes:
        source: what messages call the file.
        examples: in file order.
        places: ``file:line`` or similar, of each example.
        left_out: how many rows were left out because they lack a text or label.
    """

    source: str
    examples: tuple[Example, ...]
    places: tuple[str, ...]
    left_out: int = 0

    @property
    def labels(self) -> list[Label]:
        """The labels of the examples."""
        return [example.label for example in self.examples if example.label is not None]

    def part(self, indices: Sequence[int]) -> "LabelledRows":
        """Some of the rows."""
        return replace(
            self,
            examples=tuple(self.examples[index] for index in indices),
            places=tuple(self.places[index] for index in indices),
        )


def read_rows(
    source: Path | TableInMemory,
    columns: Columns,
    report: ReadReport,
    task_type: TaskType = ONE_CLASS,
    *,
    skip_bad_rows: bool = False,
) -> LabelledRows:
    """The examples of a table, in its order, each row checked.

    Args:
        source: A file in any format of :data:`.tables.READERS`, or a table in memory.
        columns: Names of its columns.
        report: Where to count what was read differently from how it is written.
        task_type: What a label is; see :meth:`.task_type.TaskType.read`.
        skip_bad_rows: Leave out rows that lack a text or a label, and count them in the report.

    Raises:
        DataError: The file cannot be read or has no example, a column is missing, a text or label
            is missing or of the wrong type; the message names the line.
    """
    table = read_table(source, columns.names())
    blank = task_type.empty_is_label
    complete = complete_rows(table, columns, report, skip_bad_rows=skip_bad_rows, blank_label=blank)
    return examples_of(complete, columns, report, task_type)


def complete_rows(
    table: Table, columns: Columns, report: ReadReport, *, skip_bad_rows: bool, blank_label: bool
) -> Table:
    """A table in memory with the rows that have their texts and their label.

    Args:
        table: The table.
        columns: Names of its columns.
        report: Where to count incomplete rows, if they are left out.
        skip_bad_rows: Leave incomplete rows out; otherwise they are an error.
        blank_label: Whether an empty cell is a label.

    Raises:
        DataError: A column is missing; or some rows lack a text or label, which the message counts,
            or all of them do.
    """
    if table.columns is not None:
        columns.require(table.columns, columns.names(), table.source)
    complete: list[Row] = []
    bad: list[int] = []
    first = ""
    for number, values in table.rows:
        lacking = _lacking(values, columns, blank_label)
        if lacking is None:
            complete.append((number, values))
            continue
        where, (what, fault) = table.where(number), lacking
        if not (complete or bad or skip_bad_rows):
            # A name that the first record does not have is most likely misspelled.
            columns.require(values, columns.names(), where)
        first = first or f"{where}: {fault}"
        bad.append(number)
        report.add(f"row without {what}, left out", where)
    if bad and not complete:
        options = " and ".join(map(columns.option, ("text", "label")))
        raise DataError(
            f"{first}. Every row lacks a text or a label: do {options} name the right columns?"
        )
    if bad and not skip_bad_rows:
        counted = ""
        if len(bad) > 1:
            counted = (
                f" {len(bad)} of {len(bad) + len(complete)} rows lack a text or a label, the first "
                f"in {table.unit}s {', '.join(map(str, bad[:_NAMED]))}."
            )
        raise DataError(
            f"{first}.{counted} Fill it in or remove the example; --skip-bad-rows leaves "
            f"such rows out.{_NO_CLASS if _is_list(complete[-1][1][columns.label]) else ''}"
        )
    return replace(table, rows=complete, left_out=len(bad))


def examples_of(
    table: Table, columns: Columns, report: ReadReport, task_type: TaskType
) -> LabelledRows:
    """Turn the complete rows of a table into examples; see :func:`read_rows`."""
    examples: list[Example] = []
    places: list[str] = []
    for number, values in table.rows:
        where = table.where(number)
        if columns.text_pair is None and "text_pair" in values:
            option = columns.option("text_pair")
            report.add(f"column 'text_pair' left unread: {option} text_pair reads it", where)
        cells = {name: columns.cell(values, name, where, report) for name in columns.names()}
        text, label = task_type.read(cells[columns.text], cells[columns.label], report)
        pair = None if columns.text_pair is None else text_of(cells[columns.text_pair])
        examples.append(Example(text, pair, label))
        places.append(where)
    if not examples:
        raise DataError(f"{table.source}: it contains no examples.")
    return LabelledRows(table.source, tuple(examples), tuple(places), table.left_out)


def texts_of(
    values: Mapping[str, object], columns: Columns, where: str, report: ReadReport
) -> tuple[str, str | None]:
    """The text of a row and, if ``columns`` names one, the second, checked as for training.

    Raises:
        DataError: As for :func:`read_rows`, but only for texts.
    """
    columns.require(values, columns.texts(), where)
    first, *second = (text_of(columns.cell(values, n, where, report)) for n in columns.texts())
    return first, second[0] if second else None


def know_unseen(
    task_type: TaskType,
    parts: Sequence[tuple[str, LabelledRows]],
    report: ReadReport,
    option: str,
    lacking: str = "train lacks",
) -> TaskType:
    """Extend the kind of task by classes that these parts have and train lacks.

    This is common with few labels. Such rows stay: without them the data would be easier.

    Args:
        task_type: the kind of task, fitted to its training data.
        parts: the rows to score, and what messages call them.
        report: where to note how many rows have such a class, and which.
        option: the option that names the column of the label.
        lacking: what messages say about such a class.

    Raises:
        DataError: a part has classes, but none that can be predicted.
    """
    known, unseen = set(task_type.labels), set[str]()
    for name, rows in parts:
        named = [set(task_type.names(e.label)) for e in rows.examples if e.label is not None]
        every = set().union(*named)
        if every and not every & known:
            raise DataError(
                f"{rows.source}: no row has a class that can be predicted. The classes are "
                f"{listed(task_type.labels)}; here they are {listed(sorted(every))}. Does {option} "
                "name the right column?"
            )
        if found := sorted(every - known):
            count = sum(not classes <= known for classes in named)
            rows_of = f"{count} row{'' if count == 1 else 's'} of {name}"
            # In a text with several classes or tags, only these are wrong.
            wrong = "missed" if task_type.several_classes else "wrong"
            loss = "; the loss on dev leaves them out" if name == "dev" else ""
            report.note(
                f"{rows_of} with a class that {lacking} ({listed(found, 5)}), counted as "
                f"{wrong}{loss}"
            )
            note_look_alikes(rows.source, [*task_type.labels, *found], report)
        unseen.update(found)
    return replace(task_type, unseen=tuple(sorted(unseen))) if unseen else task_type


def can_be_learned(example: Example, task_type: TaskType) -> bool:
    """Whether an example has a class of train, or none at all."""
    names = () if example.label is None else task_type.names(example.label)
    return not names or any(name in task_type.labels for name in names)


def hashable(example: Example) -> bytes:
    """An example as bytes, for fingerprints: different ones for different examples."""
    label = example.label if isinstance(example.label, str | None) else repr(example.label)
    parts = (example.text, example.text_pair, label)
    content = [None if part is None else part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(b"-1:" if part is None else b"%d:" % len(part) + part for part in content)


def _is_list(label: object) -> bool:
    return isinstance(label, list) or (isinstance(label, str) and list_in(label) is not None)


def _lacking(
    values: Mapping[str, object], columns: Columns, blank_label: bool
) -> tuple[str, str] | None:
    """What a row lacks, and how; None if it is complete."""
    for name in columns.names():
        value, is_label = values.get(name), name == columns.label
        blank = isinstance(value, str) and not value.strip()
        if name not in values:
            found = ", ".join(map(repr, values)) or "none"
            fault = f"there is no column {name!r}; the columns are {found}"
        elif is_null(value):
            fault = f"column {name!r} is null"
        elif (blank and not (is_label and blank_label)) or (value == [] and not is_label):
            fault = f"column {name!r} is empty"
        else:
            continue
        return "a label" if is_label else "a text", fault
    return None
