"""Files of records: JSON Lines, JSON, CSV, TSV and Parquet as rows of named values.

:mod:`aang.corpora.labelled` interprets the values.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from aang.corpora.memory_limit import within_limit
from aang.corpora.parquet_files import open_parquet
from aang.corpora.separated_values import check_header, open_csv, open_tsv
from aang.corpora.text_files import begins_with, read_text, require_file, text_lines
from aang_core.errors import DataError

Row = tuple[int, Mapping[str, object]]

FORMATS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""Supported file name extensions; all but the last may be followed by ``.gz``.

A file with any other extension is read if it holds JSON Lines.
"""


@dataclass(frozen=True)
class Table:
    """The rows of one file, or of one split of a data set.

    Attributes:
        source: what messages call it.
        unit: what the numbers count: ``line`` (from 1, including the header), or ``record`` and
            ``row`` (from 1) in files without lines. Rows in memory count from 0.
        columns: the header, or None if every record has its own names.
        rows: number and values of each row; can be read once.
    """

    source: str
    unit: str
    columns: tuple[str, ...] | None
    rows: Iterator[Row]

    @property
    def typed(self) -> bool:
        """Whether its values have types of their own; those of CSV and TSV are all text."""
        return self.unit != "line" or self.columns is None

    def where(self, number: int) -> str:
        """How a message refers to one row: ``train.csv:7`` or ``train.parquet, row 7``."""
        if self.unit == "line":
            return f"{self.source}:{number}"
        return f"{self.source}, {self.unit} {number}"


class TableSource(Protocol):
    """A table that is not a file."""

    @property
    def source(self) -> str:
        """What messages call it, such as ``train DataFrame``."""

    @property
    def path(self) -> Path:
        """The file that will hold its copy."""

    def table(self, wanted: Sequence[str]) -> Table:
        """The rows, as :func:`read_table` returns those of a file."""


NOTHING_IN_MEMORY: Mapping[Path, Any] = MappingProxyType({})
"""Tables in memory by the path of their copy, when all data is in files."""


def read_table(path: Path | TableSource, wanted: Sequence[str]) -> Table:
    """Open a file whose rows the caller keeps, in the format that its extension names.

    Args:
        path: the file, or a table in memory.
        wanted: columns that the caller keeps; others may be left out of the rows.

    Raises:
        DataError: the file is missing, of an unknown format or damaged. Damage further down is
            raised while the rows are read; and so it is if they take too much memory.
    """
    if not isinstance(path, Path):
        return path.table(wanted)
    table = stream_table(path, wanted)
    return replace(table, rows=within_limit(table.rows, wanted, table.source))


def stream_table(path: Path, wanted: Sequence[str] | None = None) -> Table:
    """Open a file whose rows are read when they are asked for.

    Memory does not grow with the file, except for a JSON array, which is read whole.

    Args:
        path: the file.
        wanted: columns that the caller uses, others may be left out of the rows; None for all.

    Raises:
        DataError: as :func:`read_table`; or a name occurs twice among the columns.
    """
    require_file(path)
    extension = _extension(path)
    match extension:
        case ".parquet":
            names, rows = open_parquet(path, wanted)
            columns = names if wanted is not None else check_header(path, names, None)
            return Table(str(path), "row", columns, rows)
        case ".csv":
            return Table(str(path), "line", *open_csv(path, wanted))
        case ".tsv":
            return Table(str(path), "line", *open_tsv(path, wanted))
        case ".jsonl" | ".ndjson":
            return Table(str(path), "line", None, _json_lines(path, text_lines(path)))
        case ".json":
            # An array of objects, or JSON Lines under another name.
            if begins_with(path, "["):
                return Table(str(path), "record", None, _json_array(path))
            return Table(str(path), "line", None, _json_lines(path, text_lines(path)))
    if begins_with(path, "{"):
        return Table(str(path), "line", None, _json_lines(path, text_lines(path)))
    raise _unknown_format(path, extension)


def _unknown_format(path: Path, extension: str) -> DataError:
    known = ", ".join(FORMATS)
    return DataError(
        f"{path}: the file format is not clear from the extension {extension or '(none)'!r}, and "
        f"the file does not begin as JSON Lines do. AANG reads {known} (also with .gz): rename the "
        "file or convert it."
    )


def _extension(path: Path) -> str:
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix


def _json_lines(path: Path, lines: Iterable[str]) -> Iterator[Row]:
    # Lines end at "\n" alone: a JSON string may contain U+2028 and similar characters unescaped.
    for number, line in enumerate(lines, start=1):
        if line.strip():
            record = _parse_json(line.removesuffix("\n"), f"{path}:{number}")
            if not isinstance(record, dict):
                raise DataError(
                    f"{path}:{number}: expected one JSON object a line, such as "
                    '{"text": "...", "label": "..."}, found ' + _json_type(record) + "."
                )
            yield number, record


def _json_array(path: Path) -> Iterator[Row]:
    """The objects of an array, each parsed when it is asked for."""
    text = read_text(path)
    decoder, number = json.JSONDecoder(), 0
    place = _after_blanks(text, text.index("[") + 1)
    with _json_told(str(path)):
        if text[place : place + 1] == "]":
            _require_end(text, place + 1)
            return
    while True:
        number += 1
        with _json_told(str(path)):
            record, place = decoder.raw_decode(text, place)
        if not isinstance(record, dict):
            raise DataError(
                f"{path}, record {number}: expected an object in the array, "
                f"found {_json_type(record)}."
            )
        yield number, record
        with _json_told(str(path)):
            place = _after_blanks(text, place)
            mark = text[place : place + 1]
            if mark == "]":
                _require_end(text, place + 1)
                return
            if mark != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, place)
            place = _after_blanks(text, place + 1)


_BLANKS = re.compile(r"[ \t\n\r]*")


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    assert found is not None
    return found.end()


def _require_end(text: str, place: int) -> None:
    if (end := _after_blanks(text, place)) < len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _parse_json(text: str, where: str) -> Any:
    with _json_told(where):
        return json.loads(text)


@contextmanager
def _json_told(where: str) -> Iterator[None]:
    try:
        yield
    except json.JSONDecodeError as error:
        line = f" of line {error.lineno}" if error.lineno > 1 else ""
        # Some of Python's messages end so, as in "Unterminated string starting at".
        what = error.msg.removesuffix(" at")
        raise DataError(
            f"{where}: this is not valid JSON: {what} at column {error.colno}{line}."
        ) from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; deep nesting
        raise DataError(f"{where}: this JSON cannot be read: {error}.") from error


def _json_type(value: object) -> str:
    match value:
        case list():
            return "an array"
        case str():
            return "a string"
        case None:
            return "null"
        case bool():
            return "a boolean"
    return "an object" if isinstance(value, dict) else "a number"
