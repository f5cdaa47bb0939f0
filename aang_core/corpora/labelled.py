"""Labelled examples from one of the user's files."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from aang_core.corpora.tables import Table, read_table
from aang_core.corpora.text_files import well_formed
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, ReadReport

_INTEGRAL = re.compile(r"([+-]?\d+)\.0+")


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


def read_rows(path: Path, columns: Columns, report: ReadReport) -> LabelledRows:
    """The examples of a JSON Lines, JSON, CSV, TSV or Parquet file, in file order.

    Labels become strings: ``1``, ``1.0`` and ``"1.0"`` are all ``"1"``, and true is ``"True"``,
    as pandas writes it to CSV, so that the formats agree. Spaces around a label is dropped.

    Args:
        path: The file.
        columns: Names of its columns.
        report: Where to count what was read differently from how it is written.

    Raises:
        DataError: The file cannot be read, a column is missing, a text or label is empty or of
            the wrong type; the message names the line.
    """
    return examples_of(read_table(path, columns.names()), columns, report)


def examples_of(table: Table, columns: Columns, report: ReadReport) -> LabelledRows:
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
        examples.append(_example(values, columns, where, report))
        places.append(where)
    return LabelledRows(table.source, tuple(examples), tuple(places))


def _example(
    values: Mapping[str, object], columns: Columns, where: str, report: ReadReport
) -> Example:
    pair = None
    if columns.text_pair is not None:
        pair = _text(values[columns.text_pair], columns.text_pair, where, report)
    return Example(
        text=_text(values[columns.text], columns.text, where, report),
        text_pair=pair,
        label=_label(values[columns.label], columns.label, where, report),
    )


def texts_of(
    values: Mapping[str, object], columns: Columns, where: str, report: ReadReport
) -> tuple[str, str | None]:
    """The text of a row and, if ``columns`` names one, the second, checked as for training.

    Raises:
        DataError: As for :func:`read_rows`, of texts.
    """
    require_columns(values, columns.texts(), columns, where)
    pair = None
    if columns.text_pair is not None:
        pair = _text(values[columns.text_pair], columns.text_pair, where, report)
    return _text(values[columns.text], columns.text, where, report), pair


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
            raise DataError(
                f"{where}: there is no column {name!r}; the columns are {found}. "
                f"Name the right one with {columns.option(name)}."
            )


def _text(value: object, column: str, where: str, report: ReadReport) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise DataError(f"{where}: column {column!r} is null. Fill it in or remove the example.")
    if not isinstance(value, str):
        raise DataError(
            f"{where}: column {column!r} holds {value!r:.60}, which is not text. "
            "Write it as a string, or name another column."
        )
    if not value.strip():
        raise DataError(f"{where}: column {column!r} is empty. Fill it in or remove the example.")
    text = well_formed(value)
    if text != value:
        report.add("text with half a surrogate pair, replaced by U+FFFD", where)
    return text


def _label(value: object, column: str, where: str, report: ReadReport) -> str:
    name = _label_name(value, column, where)
    if not name.strip():
        raise DataError(f"{where}: column {column!r} is empty. Every example needs a label.")
    if name != name.strip():
        report.add("label with space around it, read without", where)
    name = well_formed(name.strip())
    # CSV and Parquet written from a column that once had nulls hold 1 as 1.0, and the same
    # class must not be two.
    if integral := _INTEGRAL.fullmatch(name):
        report.add(f"label {name!r} read as {integral[1]!r}", where)
        return integral[1]
    return name


def _label_name(value: object, column: str, where: str) -> str:
    match value:
        case str():
            return value
        case None:
            raise DataError(f"{where}: column {column!r} is null. Every example needs a label.")
        case bool() | int():
            return str(value)
        case float() | Decimal():
            if math.isnan(value):
                raise DataError(f"{where}: column {column!r} is null. Every example needs a label.")
            if value % 1 == 0:
                return f"{value:.1f}"
            raise DataError(
                f"{where}: column {column!r} holds the number {value}, which is a score and not a "
                "class. Put the scores into classes first, or name another column with --label."
            )
    raise DataError(
        f"{where}: column {column!r} holds {value!r:.60}, which is not one class. AANG trains "
        "classifiers with one label an example; name another column with --label."
    )
