"""What a file contains: papers' full texts, their metadata, a table, or one text per line."""

import json
from collections.abc import Iterator
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path

import orjson
from aang import read_lines, read_text_lines
from aang.corpora import stream_table

from aang_core import DataError, ReadReport
from aang_plugin_s2orc.layouts import Paper, Record, reader_of

_LOOK_AT = 20

Found = tuple[int, Paper, str]
"""The number of a record in its file, in ascending order, the record, and its place."""


class Contents(Enum):
    """Kinds of files."""

    FULL_TEXT = "full texts of papers"
    METADATA = "metadata of papers"
    LINES = "text file"
    TABLE = "table"
    BINARY = "file that is not text"


def look_into(path: Path) -> Contents:
    """Decide what a file contains by its first lines, ignoring broken ones.

    Raises:
        DataError: it is CSV or TSV without a column ``text``, whose lines are not texts either.
    """
    if _is_table(path):
        return Contents.TABLE
    unknown = lines = 0
    for _, line in islice(read_lines(path, ReadReport()), _LOOK_AT):
        if b"\0" in line:
            return Contents.BINARY
        record = _parse(line)
        if record is None:
            lines += not line.lstrip().startswith(b"{")
            continue
        reader = reader_of(record)
        if paper := reader and reader(record, lambda fault: None):
            return Contents.FULL_TEXT if paper.full_text else Contents.METADATA
        unknown += 1
    # Records of an unknown layout and broken ones are reported when they are read.
    claims_json = _named(path, ".jsonl", ".ndjson", ".json")
    return Contents.FULL_TEXT if claims_json or unknown >= lines else Contents.LINES


def read(path: Path, contents: Contents, report: ReadReport, after: int = 0) -> Iterator[Found]:
    """The records of a file; a line of text or a row is a paper without metadata.

    Args:
        path: the file.
        contents: what it contains.
        report: where faults are reported.
        after: the number of the last record that is skipped unread.
    """
    if contents is Contents.BINARY:
        report.add(f"{contents.value}, skipped", str(path))
    elif contents in (Contents.LINES, Contents.TABLE):
        texts = read_text_lines if contents is Contents.LINES else _rows
        for number, (text, where) in islice(enumerate(texts(path, report), 1), after, None):
            yield number, Paper(None, full_text=True, body=(text,)), where
    else:
        for number, line in read_lines(path, report):
            if number > after and (paper := _paper(line, f"{path}:{number}", report)):
                yield number, paper, f"{path}:{number}"


def _paper(line: bytes, where: str, report: ReadReport) -> Paper | None:
    record = _parse(line)
    if record is None:
        report.add("line that is not a JSON object, skipped", where)
        return None
    reader = reader_of(record)
    if reader is None:
        report.add('record without "text" or the fields of a paper, skipped', where)
        return None
    return reader(record, partial(report.add, where=where))


def _rows(path: Path, report: ReadReport) -> Iterator[tuple[str, str]]:
    """The column ``text`` of Parquet, CSV, TSV or an array in JSON, each text with its place."""
    try:
        path.open("rb").close()
        table = stream_table(path, ("text",))
        if table.columns is not None and "text" not in table.columns:
            report.add("table without a column 'text', skipped", str(path))
            return
        for number, values in table.rows:
            text = values.get("text")
            if isinstance(text, str):
                yield text, table.where(number)
            else:
                report.add("row without a text, skipped", table.where(number))
    except DataError as error:
        # The error names the file and the place.
        report.add("table damaged or cut off, rest skipped", str(error))
    except OSError as error:
        report.add(f"file that cannot be read ({error.strerror}), skipped", str(path))


def _is_table(path: Path) -> bool:
    """Whether a file is Parquet, whatever its name, CSV, TSV or an array in JSON."""
    separated = _named(path, ".csv", ".tsv")
    try:
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                return True
        if not separated and not _named(path, ".json"):
            return False
        table = stream_table(path, ("text",))
    except (DataError, OSError):
        return separated  # reading reports it
    if separated and "text" not in (table.columns or ()):
        raise DataError(
            f"{path}: has no column 'text', from which texts are read; its columns are "
            f"{', '.join(map(repr, table.columns or ()))}. Name one of them 'text', or if each "
            "line is a text, let the file's name end in .txt."
        )
    return separated or table.unit == "record"


def _named(path: Path, *extensions: str) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(extensions)


def _parse(line: bytes) -> Record | None:
    try:
        record = orjson.loads(line)
    except ValueError:
        # Python's json also accepts half surrogate pairs and NaN.
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return record if isinstance(record, dict) else None
