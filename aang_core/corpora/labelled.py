"""Labelled examples from one of the user's files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aang_core.corpora.tables import Table, TableSource, read_table
from aang_core.corpora.text_files import well_formed_value
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, Label, ReadReport
from aang_core.task_types.cells import Cell, text_of
from aang_core.task_types.single_label import ONE_CLASS
from aang_core.task_types.task_type import TaskType


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
    """

    source: str
    examples: tuple[Example, ...]
    places: tuple[str, ...]


def read_rows(
    path: Path | TableSource,
    columns: Columns,
    report: ReadReport,
    task_type: TaskType = ONE_CLASS,
) -> LabelledRows:
    """The examples of a JSON Lines, JSON, CSV, TSV or Parquet file, in file order.

    Args:
        path: The file, or a table in memory.
        columns: Names of its columns.
        report: Where to count what was read differently from how it is written.
        task_type: What a label is; see :meth:`.task_type.TaskType.read`.

    Raises:
        DataError: The file cannot be read, a column is missing, a text or label is empty or of
            the wrong type; the message names the line.
    """
    return examples_of(read_table(path, columns.names()), columns, report, task_type)


def examples_of(
    table: Table, columns: Columns, report: ReadReport, task_type: TaskType = ONE_CLASS
) -> LabelledRows:
    """Check every row of a table and turn it into an example.

    Raises:
        DataError: As for :func:`read_rows`.
    """
    if table.columns is not None:
        require_columns(table.columns, columns.names(), columns, table.source)
    examples: list[Example] = []
    places: list[str] = []
    for number, values in table.rows:
        where = table.where(number)
        require_columns(values, columns.names(), columns, where)
        if columns.text_pair is None and "text_pair" in values:
            option = columns.option_of("text_pair")
            report.add(f"column 'text_pair' left unread: {option} text_pair reads it", where)
        cells = {name: _cell(values, name, columns, where, report) for name in columns.names()}
        text, label = task_type.read(cells[columns.text], cells[columns.label], report)
        pair = None if columns.text_pair is None else text_of(cells[columns.text_pair])
        examples.append(Example(text, pair, label))
        places.append(where)
    return LabelledRows(table.source, tuple(examples), tuple(places))


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
                    "export the file so."
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
