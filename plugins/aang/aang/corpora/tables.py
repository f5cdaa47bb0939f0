"""Files of records, and data in memory, as rows of named values.

:data:`READERS` has a reader for each extension: a new format is one more function there.
:mod:`aang.corpora.labelled` interprets the values.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from aang.corpora.places import require_file
from aang.corpora.separated_values import check_header, open_separated
from aang.corpora.text_files import begins_with, text_lines
from aang_core.errors import ConfigError, DataError

Row = tuple[int, Mapping[str, object]]

MEMORY = "AANG_DATA_GB"
"""The environment variable for the gigabytes that the rows of one labelled file may take."""

_DEFAULT_GB = 4.0
"""Enough for four million labelled reviews."""

_ROW = 300
"""Bytes that a row takes besides its values: an example, its place, and entries in lists."""

_ARRAY = 8
"""Bytes of memory for each byte of a JSON array, which is parsed as a whole."""

_PARQUET_ROWS = 64
"""Rows of a Parquet file that are unpacked at once. A text that occurs many times is stored once,
so that a few kilobytes can unpack to gigabytes."""


@dataclass(frozen=True)
class Table:
    """The rows of one file, or of one split of a data set.

    Attributes:
        source: what messages call it.
        unit: what the numbers count: ``line`` (from 1, including the header), or ``record`` and
            ``row`` (from 1) in files without lines. Rows in memory count from 0.
        columns: the header, or None if every record has its own names.
        rows: number and values of each row; those of a file can be read once.
        left_out: how many rows are not among them because they lack a text or label.
    """

    source: str
    unit: str
    columns: tuple[str, ...] | None
    rows: Iterable[Row]
    left_out: int = 0

    @property
    def typed(self) -> bool:
        """Whether its values have types of their own; those of CSV and TSV are all text."""
        return self.unit != "line" or self.columns is None

    def where(self, number: int) -> str:
        """How a message refers to one row: ``train.csv:7`` or ``train.parquet, row 7``."""
        if self.unit == "line":
            return f"{self.source}:{number}"
        return f"{self.source}, {self.unit} {number}"


@dataclass(frozen=True)
class TableInMemory:
    """Data in memory that is read like a file; see :func:`.in_memory.table_in_memory`.

    Attributes:
        source: what messages call it, such as ``train DataFrame``.
        path: the file that will hold its copy; the task is named after it.
        columns: the names of its columns; None if every record has its own.
        rows: makes the rows of the given columns, with plain Python values.
        first: the number of the first row.
    """

    source: str
    path: Path
    columns: tuple[str, ...] | None
    rows: Callable[[Sequence[str]], Iterator[Mapping[str, object]]]
    first: int = 0

    def table(self, wanted: Sequence[str]) -> Table:
        """The rows; columns that are not wanted may be left out.

        Raises:
            DataError: a wanted column occurs twice.
        """
        if self.columns is not None:
            twice = [name for name in wanted if self.columns.count(name) > 1]
            if twice:
                raise DataError(
                    f"{self.source}: column {twice[0]!r} occurs twice. Rename one of them."
                )
            wanted = [name for name in wanted if name in self.columns]
        return Table(self.source, "row", self.columns, enumerate(self.rows(wanted), self.first))

    def copy(self, wanted: Sequence[str]) -> str:
        """The wanted columns as JSON Lines, which :func:`read_table` reads."""
        lines = []
        for number, values in self.table(wanted).rows:
            record = {name: values[name] for name in wanted if name in values}
            try:
                lines.append(json.dumps(record) + "\n")
            except (TypeError, ValueError) as error:
                raise DataError(f"{self.source}, row {number}: cannot be kept: {error}") from error
        return "".join(lines)


NOTHING_IN_MEMORY: Mapping[Path, TableInMemory] = MappingProxyType({})
"""Tables in memory by the path of their copy, when all data is in files."""


def read_table(source: Path | TableInMemory, wanted: Sequence[str]) -> Table:
    """Open a table whose rows the caller keeps; a file in the format that its extension names.

    Args:
        source: a file, or a table in memory.
        wanted: columns that the caller keeps; others may be left out of the rows.

    Raises:
        DataError: the file is missing, of an unknown format or damaged. Damage further down is
            raised while the rows are read; and so it is if they take too much memory.
    """
    if isinstance(source, TableInMemory):
        return source.table(wanted)
    table = stream_table(source, wanted)
    return replace(table, rows=_within_limit(table, wanted))


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
    extension = Path(path.name.lower().removesuffix(".gz")).suffix
    reader = READERS.get(extension)
    if reader is None and begins_with(path, b"{"):
        reader = _json_lines
    if reader is None:
        raise DataError(
            f"{path}: the file format is not clear from the extension {extension or '(none)'!r}, "
            f"and the file does not begin as JSON Lines do. AANG reads {', '.join(READERS)} (also "
            "with .gz): rename the file or convert it."
        )
    return reader(path, wanted)


def _csv(path: Path, wanted: Sequence[str] | None) -> Table:
    return Table(str(path), "line", *open_separated(path, wanted))


def _tsv(path: Path, wanted: Sequence[str] | None) -> Table:
    return Table(str(path), "line", *open_separated(path, wanted, tabs=True))


def _json(path: Path, wanted: Sequence[str] | None) -> Table:
    """An array of objects, or JSON Lines under another name."""
    if begins_with(path, b"["):
        return Table(str(path), "record", None, _json_array(path))
    return _json_lines(path, wanted)


def _json_lines(path: Path, wanted: Sequence[str] | None) -> Table:
    def rows() -> Iterator[Row]:
        # Lines end at "\n" alone: a JSON string may contain U+2028 and similar characters.
        for number, line in enumerate(text_lines(path), start=1):
            if line.strip():
                with _json_told(f"{path}:{number}"):
                    record = json.loads(line.removesuffix("\n"))
                if not isinstance(record, dict):
                    raise DataError(
                        f"{path}:{number}: expected one JSON object a line, such as "
                        f'{{"text": "...", "label": "..."}}, found {_json_type(record)}.'
                    )
                yield number, record

    return Table(str(path), "line", None, rows())


def _json_array(path: Path) -> Iterator[Row]:
    limit = memory_limit() // _ARRAY
    text, size = [], 0
    for line in text_lines(path, limit, _large_array):
        text.append(line)
        size += len(line)
        if size > limit:
            raise _large_array(path)
    with _json_told(str(path)):
        records = json.loads("".join(text))
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise DataError(
                f"{path}, record {number}: expected an object in the array, "
                f"found {_json_type(record)}."
            )
        yield number, record


def _large_array(path: Path, line: int = 1) -> DataError:
    return DataError(
        f"{path}: is larger than {_gigabytes(memory_limit() // _ARRAY)} unpacked, and a JSON array "
        "is read as a whole. Write one record a line, for example with "
        f"jq -c '.[]' {path.name} > {path.name.split('.')[0]}.jsonl, or set {MEMORY} to {_ARRAY} "
        "times the gigabytes of the file"
    )


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
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
    return "a string" if isinstance(value, str) else "an array"


def _parquet(path: Path, wanted: Sequence[str] | None) -> Table:
    from pyarrow import ArrowException, parquet

    # ValueError: names or values that are not UTF-8.
    damage = (ArrowException, OSError, ValueError)
    try:
        file = parquet.ParquetFile(path)
        names = tuple(file.schema_arrow.names)
    except damage as error:
        raise DataError(f"{path}: this Parquet file cannot be read: {error}") from error
    kept = [name for name in names if wanted is None or name in wanted]

    def rows() -> Iterator[Row]:
        number = 0
        batches = file.iter_batches(_PARQUET_ROWS, columns=kept)
        try:
            for batch in batches:
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
        except damage as error:
            raise DataError(
                f"{path}: a value after row {number} cannot be read: {error}"
            ) from error

    columns = names if wanted is not None else check_header(path, names, None)
    return Table(str(path), "row", columns, rows())


READERS: Mapping[str, Callable[[Path, Sequence[str] | None], Table]] = MappingProxyType(
    {
        ".jsonl": _json_lines,
        ".ndjson": _json_lines,
        ".json": _json,
        ".csv": _csv,
        ".tsv": _tsv,
        ".parquet": _parquet,
    }
)
"""What reads a file, by its extension; all but Parquet may be followed by ``.gz``.

A reader gets the path and the columns that are wanted, or None for all. A file with any other
extension is read if it holds JSON Lines.
"""


def memory_limit() -> int:
    """Bytes of memory that the rows of one file may take.

    Raises:
        ConfigError: ``AANG_DATA_GB`` is no number above 0.
    """
    chosen = os.environ.get(MEMORY) or str(_DEFAULT_GB)
    try:
        gigabytes = float(chosen)
    except ValueError:
        gigabytes = math.nan
    if not 0 < gigabytes < 2**20:
        raise ConfigError(
            f"{MEMORY}={chosen}: give the gigabytes of memory that the rows of one file may "
            f"take, such as {2 * _DEFAULT_GB:g}"
        )
    return int(gigabytes * 2**30)


def _within_limit(table: Table, wanted: Sequence[str]) -> Iterator[Row]:
    """The rows, until those so far need more memory than they may, which is a DataError."""
    limit, used = memory_limit(), 0
    for number, values in table.rows:
        used += _ROW + sum(memory_of(values[name]) for name in wanted if name in values)
        if used > limit:
            raise DataError(
                f"{table.source}: its first {number} rows take over {_gigabytes(limit)} of memory, "
                "where the whole labelled file must fit. Use a part of it, or set "
                f"{MEMORY} to the gigabytes that it may take; text without labels has no limit"
            )
        yield number, values


def memory_of(value: object) -> int:
    """Bytes that a value takes, with all that is in it."""
    size = sys.getsizeof(value)
    if isinstance(value, list | tuple):
        size += sum(map(memory_of, value))
    elif isinstance(value, dict):
        size += sum(memory_of(key) + memory_of(part) for key, part in value.items())
    return size


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:g} GB" if size >= 2**30 else f"{size >> 20} MB"
