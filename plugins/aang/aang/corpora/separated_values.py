"""Comma-separated and tab-separated files: a header, then records of one or several lines."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain, islice
from pathlib import Path

from aang.corpora.text_files import LONGEST_LINE, text_lines
from aang_core.errors import DataError

_Records = Iterator[tuple[int, list[str]]]
"""The fields of each record, with the number of its first line."""

_CSV_ADVICE = 'Put a text that contains a comma, a quote or a line break in "quotes".'
_TSV_ADVICE = "A text must not contain a tab or a line break; quotes do not help in TSV."

_SEPARATOR_LINE = re.compile(r'"?sep=([^"\r\n])"?\s*', re.IGNORECASE)
"""A first line that tells Excel what separates the fields."""

_SAMPLE = 50
"""Lines of a CSV file that are looked at before it is read."""


def open_separated(
    path: Path, wanted: Sequence[str] | None, *, tabs: bool = False
) -> tuple[tuple[str, ...], Iterator[tuple[int, Mapping[str, object]]]]:
    """The columns of a file, and its rows with the number of their first line.

    Args:
        path: the file.
        wanted: the columns that must occur once; None for all.
        tabs: whether tabs separate the fields, without any quoting: in GLUE's files a quote is part
            of a text. Otherwise commas do, or what a first line such as ``sep=;`` names.

    Raises:
        DataError: the file is empty, or a column occurs twice. While rows are read: a row is
            broken, is of another width than the header, or repeats it.
    """
    records = _tsv_records(path) if tabs else _csv_records(path)
    _, header = next(records, (1, []))
    columns = check_header(path, header, wanted)

    def rows() -> Iterator[tuple[int, Mapping[str, object]]]:
        for number, fields in records:
            if len(fields) != len(columns):
                found = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
                raise DataError(
                    f"{path}:{number}: {found}, but the header has {len(columns)} columns. "
                    f"{_TSV_ADVICE if tabs else _CSV_ADVICE}"
                )
            if len(columns) > 1 and _repeats(columns, fields):
                raise DataError(
                    f"{path}:{number}: this line repeats the header, as where two files were put "
                    "together. Remove it, and see that the columns after it have the same order."
                )
            yield number, dict(zip(columns, fields, strict=True))

    return columns, rows()


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


def _repeats(columns: Sequence[str], fields: Sequence[str]) -> bool:
    """Whether a row has the names of the columns, in any order."""
    first = fields[0].strip("\ufeff ")
    return first in columns and sorted([first, *map(str.strip, fields[1:])]) == sorted(columns)


def _tsv_records(path: Path) -> _Records:
    for number, line in enumerate(text_lines(path), start=1):
        if record := line.removesuffix("\n").removesuffix("\r"):
            yield number, record.split("\t")


def _csv_records(path: Path) -> _Records:
    # The csv module refuses fields over 128 KiB, and its only switch is global. Without any limit,
    # a quote that is never closed would take the rest of the file into memory.
    csv.field_size_limit(LONGEST_LINE)
    lines = (part for line in text_lines(path) for part in StringIO(line, newline=""))
    start = list(islice(lines, _SAMPLE))
    named = _SEPARATOR_LINE.fullmatch(start[0]) if start else None
    comma, before = (named[1], 1) if named else (",", 0)
    spaced = _has_spaces_before_quotes(start[before:], comma)
    reader = csv.reader(
        chain(start[before:], lines), strict=True, delimiter=comma, skipinitialspace=spaced
    )
    number = before + 1
    try:
        for fields in reader:
            if fields:
                yield number, fields
            number = before + reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{number}: broken CSV: {error}. {_CSV_ADVICE}") from error


def _has_spaces_before_quotes(start: Sequence[str], comma: str) -> bool:
    """Whether fields are separated by a comma and a space, so that quotes come after a space.

    By RFC 4180 the space and the quotes would be part of the field.
    """
    try:
        records = [fields for fields in csv.reader(start, delimiter=comma) if fields]
    except csv.Error:  # raised again, with its line, when the file is read
        return False
    names = records[0][1:] if records else []
    further = (field for fields in records for field in fields[1:])
    if not any(field.startswith(" ") and field.lstrip(" ")[:1] == '"' for field in further):
        return bool(names) and all(name.startswith(" ") for name in names)
    try:
        list(csv.reader(start, strict=True, delimiter=comma, skipinitialspace=True))
    except csv.Error as error:
        # These quotes do not enclose fields, unless a field is only cut off by the sample.
        return "unexpected end of data" in str(error)
    return True
