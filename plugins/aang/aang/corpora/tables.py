"""Files of records, and data in memory, as rows of named values.

:data:`READERS` has a reader for each extension: a new format is one more function there.
:mod:`aang.corpora.labelled` interprets the values.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from aang.corpora.places import require_file
from aang.corpora.separated_values import check_header, open_separated
from aang.corpora.text_files import begins_with, text_lines
from aang_core.errors import DataError

Row = tuple[int, Mapping[str, object]]

_PARQUET_ROWS = 64
"""Rows of a Parquet file that are unpacked at once. A text that occurs many times is stored once,
so that a few kilobytes can unpack to gigabytes."""


HIDDEN = -1
"""Value of a ``ClassLabel`` column whose labels are not public, as in GLUE's test sets."""


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
        columns: the names of its columns; None if every record has its own.
        rows: makes the rows of the given columns, with plain Python values.
        first: the number of the first row.
    """

    source: str
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

    def copy(self, wanted: Sequence[str], *, array: bool = False) -> str:
        """The wanted columns as JSON Lines or a JSON array, which :func:`read_table` reads."""
        lines = []
        for number, values in self.table(wanted).rows:
            record = {name: values[name] for name in wanted if name in values}
            try:
                lines.append(json.dumps(record))
            except (TypeError, ValueError) as error:
                raise DataError(f"{self.source}, row {number}: cannot be kept: {error}") from error
        return f"[{','.join(lines)}]" if array else "".join(f"{line}\n" for line in lines)


NOTHING_IN_MEMORY: Mapping[Path, TableInMemory] = MappingProxyType({})
"""Tables in memory by the path of their copy, when all data is in files."""


def read_table(source: Path | TableInMemory, wanted: Sequence[str]) -> Table:
    """Open a file, as :func:`stream_table` does, or a table in memory."""
    return stream_table(source, wanted) if isinstance(source, Path) else source.table(wanted)


def stream_table(path: Path, wanted: Sequence[str] | None = None) -> Table:
    """Open a file whose rows are read when they are asked for.

    Memory does not grow with the file, except for a JSON array, which is read whole.

    Args:
        path: the file.
        wanted: columns that the caller uses, others may be left out of the rows; None for all.

    Raises:
        DataError: the file is missing, of an unknown format or damaged, or a name occurs twice
            among the columns. Damage further down is raised while the rows are read.
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


def _separated(path: Path, wanted: Sequence[str] | None, *, tabs: bool = False) -> Table:
    return Table(str(path), "line", *open_separated(path, wanted, tabs=tabs))


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
                yield number, _object(record, f"{path}:{number}")

    return Table(str(path), "line", None, rows())


def _json_array(path: Path) -> Iterator[Row]:
    with _json_told(str(path)):
        records = json.loads("".join(text_lines(path, longest=sys.maxsize - 1)))
    for number, record in enumerate(records, start=1):
        yield number, _object(record, f"{path}, record {number}")


def _object(record: object, where: str) -> Mapping[str, object]:
    if isinstance(record, dict):
        return record
    raise DataError(
        f'{where}: expected a JSON object, such as {{"text": "...", "label": "..."}}, '
        f"found {json.dumps(record):.40}."
    )


@contextmanager
def _json_told(where: str) -> Iterator[None]:
    try:
        yield
    except json.JSONDecodeError as error:
        line = f" of line {error.lineno}" if error.lineno > 1 else ""
        # Some of Python's messages end with it, as "Unterminated string starting at" does.
        what = error.msg.removesuffix(" at")
        raise DataError(
            f"{where}: this is not valid JSON: {what} at column {error.colno}{line}."
        ) from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; deep nesting
        raise DataError(f"{where}: this JSON cannot be read: {error}.") from error


def _parquet(path: Path, wanted: Sequence[str] | None) -> Table:
    from pyarrow import ArrowException, parquet

    # ValueError: names or values that are not UTF-8.
    damage = (ArrowException, OSError, ValueError)
    try:
        file = parquet.ParquetFile(path)
        names = tuple(file.schema_arrow.names)
    except damage as error:
        raise DataError(f"{path}: this Parquet file cannot be read: {error}") from error
    check_header(path, names, wanted)
    kept = [name for name in names if wanted is None or name in wanted]
    classes = _class_names((file.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))

    def rows() -> Iterator[Row]:
        number = 0
        batches = file.iter_batches(_PARQUET_ROWS, columns=kept)
        try:
            for batch in batches:
                for record in batch.to_pylist():
                    number += 1
                    yield number, {n: named(v, classes.get(n)) for n, v in record.items()}
        except damage as error:
            raise DataError(
                f"{path}: a value after row {number} cannot be read: {error}"
            ) from error

    return Table(str(path), "row", names, rows())


def _class_names(metadata: bytes) -> Mapping[str, Sequence[str]]:
    """Class names by column, which Hugging Face datasets stores beside a file's class ids."""
    try:
        features = json.loads(metadata)["info"]["features"]
        of_items = {name: feature.get("feature", feature) for name, feature in features.items()}
        return {name: of["names"] for name, of in of_items.items() if of.get("names")}
    except (ValueError, LookupError, AttributeError, TypeError):
        return {}  # from an older version, or something else


def named(value: object, names: Sequence[str] | None) -> object:
    """The value with names in place of class ids, also in lists.

    Raises:
        DataError: a class id has no name.
    """
    if not names:
        return value
    if isinstance(value, list):
        return [named(item, names) for item in value]
    if isinstance(value, int):
        if not HIDDEN <= value < len(names):
            raise DataError(
                f"a label of the data set is {value}, and its features name the classes 0 to "
                f"{len(names) - 1}; -1 stands for none"
            )
        return None if value == HIDDEN else names[value]
    return value


READERS: Mapping[str, Callable[[Path, Sequence[str] | None], Table]] = MappingProxyType(
    {
        ".jsonl": _json_lines,
        ".ndjson": _json_lines,
        ".json": _json,
        ".csv": _separated,
        ".tsv": partial(_separated, tabs=True),
        ".parquet": _parquet,
    }
)
"""The readers by file extension; all but Parquet may be followed by ``.gz``.

A reader gets the path and the columns that are wanted, or None for all. A file with any other
extension is read if it holds JSON Lines.
"""
