"""Labelled examples from one of the user's files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aang.corpora.tables import Row, Table, TableSource, read_table
from aang.corpora.text_files import well_formed_value
from aang.task_types.cells import Cell, is_null, text_of
from aang.task_types.single_label import ONE_CLASS
from aang.task_types.task_type import TaskType
from aang.task_types.written_lists import list_in
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, Label, ReadReport


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read.

    Attributes:
        text: column of the text.
        text_pair: column of the second text; None for tasks over single texts.
        label: column of the label.
        task: name of the auxiliary task that the columns belong to; None for the end task.
    """

    text: str = "text"
    text_pair: str | None = None
    label: str = "label"
    task: str | None = None

    def texts(self) -> tuple[str, ...]:
        """The columns of texts."""
        return (self.text,) if self.text_pair is None else (self.text, self.text_pair)

    def names(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.texts(), self.label)

    def option(self, name: str) -> str:
        """The command-line option that names this column."""
        if name == self.label:
            return self.option_of("label")
        return self.option_of("text" if name == self.text else "text_pair")

    def option_of(self, role: str) -> str:
        """The option that names the column in this role: ``--label``, or ``--set wnli.label``."""
        if self.task is None:
            return f"--{role.replace('_', '-')}"
        return f"--set {self.task}.{role}"


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


def read_rows(
    path: Path | TableSource,
    columns: Columns,
    report: ReadReport,
    task_type: TaskType = ONE_CLASS,
    *,
    skip_bad_rows: bool = False,
) -> LabelledRows:
    """The examples of a JSON Lines, JSON, CSV, TSV or Parquet file, in file order.

    Args:
        path: The file, or a table in memory.
        columns: Names of its columns.
        report: Where to count what was read differently from how it is written.
        task_type: What a label is; see :meth:`.task_type.TaskType.read`.
        skip_bad_rows: Leave out rows that lack a text or a label, and count them in the report.

    Raises:
        DataError: The file cannot be read, a column is missing, a text or label is missing or of
            the wrong type; the message names the line.
    """
    table = read_table(path, columns.names())
    return examples_of(table, columns, report, task_type, skip_bad_rows=skip_bad_rows)


def examples_of(
    table: Table,
    columns: Columns,
    report: ReadReport,
    task_type: TaskType = ONE_CLASS,
    *,
    skip_bad_rows: bool = False,
) -> LabelledRows:
    """Check every row of a table and turn it into an example.

    Raises:
        DataError: As for :func:`read_rows`.
    """
    examples: list[Example] = []
    places: list[str] = []
    left_out = ReadReport()
    complete = complete_rows(
        table,
        columns,
        left_out,
        skip_bad_rows=skip_bad_rows,
        blank_label=task_type.name == "multi-label",
    )
    for number, values in complete:
        where = table.where(number)
        if columns.text_pair is None and "text_pair" in values:
            option = columns.option_of("text_pair")
            report.add(f"column 'text_pair' left unread: {option} text_pair reads it", where)
        cells = {name: _cell(values, name, columns, where, report) for name in columns.names()}
        text, label = task_type.read(cells[columns.text], cells[columns.label], report)
        pair = None if columns.text_pair is None else text_of(cells[columns.text_pair])
        examples.append(Example(text, pair, label))
        places.append(where)
    report.add_all(left_out)
    return LabelledRows(table.source, tuple(examples), tuple(places), left_out.counts.total())


def complete_rows(
    table: Table, columns: Columns, report: ReadReport, *, skip_bad_rows: bool, blank_label: bool
) -> Iterator[Row]:
    """The rows of a table that have their texts and their label.

    Args:
        table: The table.
        columns: Names of its columns.
        report: Where to count the others, if they are left out.
        skip_bad_rows: Leave the others out; otherwise they are an error.
        blank_label: Whether an empty cell is a label, as in multi-label tasks.

    Raises:
        DataError: A column is missing; or, after the last row, some rows lack a text or label,
            which the message counts, or all of them do.
    """
    if table.columns is not None:
        require_columns(table.columns, columns.names(), columns, table.source)
    rows, bad, first, numbers = 0, 0, "", list[int]()
    whole: Mapping[str, object] = {}
    for number, values in table.rows:
        rows += 1
        lacking = _lacking(values, columns, blank_label)
        if lacking is None:
            whole = values
            yield number, values
            continue
        where, (what, fault) = table.where(number), lacking
        if rows == 1 and not skip_bad_rows:
            # A name that the first record does not have is misspelled, most likely.
            require_columns(values, columns.names(), columns, where)
        bad += 1
        first = first or f"{where}: {fault}"
        if len(numbers) < _NAMED:
            numbers.append(number)
        report.add(f"row without {what}, left out", where)
    if bad and bad == rows:
        options = " and ".join(map(columns.option_of, ("text", "label")))
        raise DataError(
            f"{first}. Every row lacks a text or a label: do {options} name the right columns?"
        )
    if bad == 1 and not skip_bad_rows:
        raise DataError(
            f"{first}. Fill it in or remove the example; --skip-bad-rows leaves such rows out."
            f"{_none_of(whole, columns)}"
        )
    if bad and not skip_bad_rows:
        raise DataError(
            f"{first}. {bad} of {rows} rows lack a text or a label, the first in {table.unit}s "
            f"{', '.join(map(str, numbers))}. Fill them in or remove them; --skip-bad-rows leaves "
            f"them out.{_none_of(whole, columns)}"
        )


_NAMED = 3


def _none_of(whole: Mapping[str, object], columns: Columns) -> str:
    """How to write that a text has no label at all, where another row has a list of labels."""
    label, text = whole.get(columns.label), whole.get(columns.text)
    as_list = list_in(label) if isinstance(label, str) else label
    lists = isinstance(as_list, list) and isinstance(text, str)
    return " A text without any class has an empty list, []." if lists else ""


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


def written(label: Label | None) -> str | None:
    """A label as text, for fingerprints: a class's name as it is."""
    return label if label is None or isinstance(label, str) else repr(label)


def texts_of(
    values: Mapping[str, object], columns: Columns, where: str, report: ReadReport
) -> tuple[str, str | None]:
    """The text of a row and, if ``columns`` names one, the second, checked as for training.

    Raises:
        DataError: As for :func:`read_rows`, of texts.
    """
    require_columns(values, columns.texts(), columns, where)
    cells = [_cell(values, name, columns, where, report) for name in columns.texts()]
    first, *second = (text_of(cell) for cell in cells)
    return first, second[0] if second else None


def require_columns(
    present: Iterable[str], wanted: Iterable[str], columns: Columns, where: str
) -> None:
    """Raise DataError if a column is missing.

    Args:
        present: the columns that are there.
        wanted: those of ``columns`` that are read.
        columns: all columns, for the option that names each.
        where: what messages call the place.
    """
    present = list(present)
    for name in wanted:
        if name not in present:
            found = ", ".join(repr(column) for column in present[:20]) or "none"
            if separator := _other_separator(present):
                raise DataError(
                    f"{where}: the header is one column, {found}, because its names are separated "
                    f"by {separator}. AANG reads commas in .csv files and tabs in .tsv files: "
                    "export the file so, or name the separator in a first line such as sep=;"
                )
            raise DataError(
                f"{where}: there is no column {name!r}; the columns are {found}. "
                f"Name the right one with {columns.option(name)}."
            )


_SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars"}


def _other_separator(present: Sequence[str]) -> str | None:
    """What separates the names in a header that was read as a single column; None if nothing."""
    if len(present) != 1:
        return None
    return next((word for mark, word in _SEPARATORS.items() if mark in present[0]), None)


def _cell(
    values: Mapping[str, object], name: str, columns: Columns, where: str, report: ReadReport
) -> Cell:
    value = well_formed_value(values[name])
    if name != columns.label and value != values[name] and isinstance(value, str | list):
        report.add("text with half a surrogate pair, replaced by U+FFFD", where)
    return Cell(value, name, where, columns.option(name))
