"""Comma-separated and tab-separated files: a header, then a record a line or over several."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

from aang.corpora.text_files import LONGEST_LINE, text_lines
from aang_core.errors import DataError

_Rows = Iterator[tuple[int, Mapping[str, object]]]


def open_csv(path: Path, wanted: Sequence[str] | None) -> tuple[tuple[str, ...], _Rows]:
    """The columns of a CSV file, and its rows with the number of their first line.

    Fields are separated by commas, or by what a first line such as ``sep=;`` names.

    Raises:
        DataError: the file is empty, or a column occurs twice. While rows are read: a row is
            broken, is of another width than the header, or repeats it.
    """
    lines = (part for line in text_lines(path) for part in StringIO(line, newline=""))
    start = _first_of(lines)
    named = _SEPARATOR_LINE.fullmatch(start[0]) if start else None
    comma = named[1] if named else ","
    reader = csv.reader(
        chain(start, lines),
        strict=True,
        delimiter=comma,
        skipinitialspace=_has_spaces_before_quotes(start[1:] if named else start, comma),
    )
    records = _csv_records(path, reader)
    if named:
        next(records)
    _, header = next(records, (0, [""]))
    columns = check_header(path, header, wanted)

    def rows() -> _Rows:
        for number, fields in records:
            if len(fields) != len(columns):
                raise _wrong_width(path, number, len(fields), len(columns), _CSV_ADVICE)
            _refuse_second_header(path, number, fields, columns)
            yield number, dict(zip(columns, fields, strict=True))

    return columns, rows()


_SAMPLE = 50
"""Lines of a CSV file that are looked at before it is read, unless they are very long."""
_LONG = 2**20


def _first_of(lines: Iterator[str]) -> list[str]:
    """The first lines, to look at; few of them if they would take much memory."""
    start: list[str] = []
    size = 0
    for line in islice(lines, _SAMPLE):
        start.append(line)
        size += len(line)
        if size > _LONG:
            break
    return start


_SEPARATOR_LINE = re.compile(r'"?sep=([^"\r\n])"?\s*', re.IGNORECASE)
"""The first line by which Excel is told what separates the fields."""


def _has_spaces_before_quotes(start: Sequence[str], comma: str) -> bool:
    """Whether fields are separated by a comma and a space, so that quotes come after a space.

    By RFC 4180 the space and the quotes would be part of the field.
    """
    with _no_field_limit():
        try:
            records = [fields for fields in csv.reader(start, delimiter=comma) if fields]
        except csv.Error:  # raised again, with its line, when the file is read
            return False
        further = [field for fields in records for field in fields[1:]]
        names = records[0][1:] if records else []
        quoted = any(field.startswith(" ") and field.lstrip(" ")[:1] == '"' for field in further)
        if not quoted:
            return bool(names) and all(name.startswith(" ") for name in names)
        try:
            list(csv.reader(start, strict=True, delimiter=comma, skipinitialspace=True))
        except csv.Error as error:
            # These quotes do not enclose fields, unless a field is only cut off by the sample.
            return "unexpected end of data" in str(error)
    return True


def _refuse_second_header(
    path: Path, number: int, fields: Sequence[str], columns: Sequence[str]
) -> None:
    """Raise DataError if a row repeats the names of the columns, in whatever order."""
    first = fields[0].strip("\ufeff ")
    if len(columns) > 1 and first in columns:
        names = sorted([first, *(field.strip() for field in fields[1:])])
        if names == sorted(columns):
            raise DataError(
                f"{path}:{number}: this line repeats the header, as where two files were put "
                "together. Remove it, and see that the columns after it have the same order."
            )


_CSV_ADVICE = 'Put a text that contains a comma, a quote or a line break in "quotes".'


def _csv_records(path: Path, lines: Any) -> Iterator[tuple[int, list[str]]]:
    """Fields of each record that is not blank, with the number of its first line."""
    while True:
        number = lines.line_num + 1
        try:
            with _no_field_limit():
                fields = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}:{number}: broken CSV: {error}. {_CSV_ADVICE}") from error
        if fields:
            yield number, fields


@contextmanager
def _no_field_limit() -> Iterator[None]:
    # The csv module refuses fields over 128 KiB, and its only switch is global. Without any limit,
    # a quote that is never closed would take the rest of the file into memory.
    before = csv.field_size_limit(LONGEST_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def open_tsv(path: Path, wanted: Sequence[str] | None) -> tuple[tuple[str, ...], _Rows]:
    """As :func:`open_csv`, of tabs without any quoting: in GLUE's files a quote is part of a text.

    Raises:
        DataError: as :func:`open_csv`.
    """
    remaining = (line.removesuffix("\n").removesuffix("\r") for line in text_lines(path))
    columns = check_header(path, next(remaining, "").split("\t"), wanted)

    def rows() -> _Rows:
        for number, line in enumerate(remaining, start=2):
            if not line:
                continue
            fields = line.split("\t")
            if len(fields) != len(columns):
                advice = "A text must not contain a tab or a line break; quotes do not help in TSV."
                raise _wrong_width(path, number, len(fields), len(columns), advice)
            _refuse_second_header(path, number, fields, columns)
            yield number, dict(zip(columns, fields, strict=True))

    return columns, rows()


def _wrong_width(path: Path, number: int, found: int, expected: int, advice: str) -> DataError:
    return DataError(
        f"{path}:{number}: {found} field{'' if found == 1 else 's'}, but the header has "
        f"{expected} columns. {advice}"
    )


def check_header(
    path: Path, header: Sequence[str], wanted: Sequence[str] | None
) -> tuple[str, ...]:
    """The names in the header; those in ``wanted``, or all, must occur once."""
    columns = tuple(name.strip() for name in header)
    if columns in ((), ("",)):
        raise DataError(f"{path}: the file is empty. Its first line must name the columns.")
    once = columns if wanted is None else wanted
    twice = sorted(name for name in set(once) if columns.count(name) > 1)
    if twice:
        raise DataError(f"{path}:1: column {twice[0]!r} occurs twice. Rename one of them.")
    return columns
