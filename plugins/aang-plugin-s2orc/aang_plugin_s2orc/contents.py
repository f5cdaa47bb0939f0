"""What a file contains: papers' full texts, their metadata, a table, or one text a line."""

import json
from collections.abc import Iterator
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path

import orjson
from aang import read_lines
from aang.corpora import stream_table

from aang_core import DataError, ReadReport
from aang_plugin_s2orc.layouts import reader_of
from aang_plugin_s2orc.paper import Paper, Record

_LOOK_AT = 20


class Contents(Enum):
    """Kinds of files."""

    FULL_TEXT = "full texts of papers"
    METADATA = "metadata of papers"
    LINES = "one text a line"
    TABLE = "texts in a table"
    BINARY = "nothing that is text"


def look_into(path: Path) -> Contents:
    """Decide what a file contains by its first lines, ignoring broken ones.

    Raises:
        DataError: it is CSV or TSV without a column ``text``, whose lines are no texts either.
    """
    if is_parquet(path) or _is_array(path):
        return Contents.TABLE
    if _named(path, ".csv", ".tsv"):
        _require_text(path)
        return Contents.TABLE
    unknown = lines = 0
    for _, line in islice(read_lines(path, ReadReport()), _LOOK_AT):
        if b"\0" in line:
            return Contents.BINARY
        record = _parse(line)
        if record is None:
            lines += not line.lstrip().startswith(b"{")
        elif paper := _paper(record):
            return Contents.FULL_TEXT if paper.full_text else Contents.METADATA
        else:
            unknown += 1
    # Reading reports each record of an unknown layout and each broken one.
    claims_json = _named(path, ".jsonl", ".ndjson", ".json")
    return Contents.FULL_TEXT if claims_json or unknown >= lines else Contents.LINES


def read_papers(path: Path, report: ReadReport, after: int = 0) -> Iterator[tuple[Paper, str]]:
    """The papers of a JSON Lines file.

    Args:
        path: the file.
        report: where faults are reported.
        after: number of lines to skip unread.

    Yields:
        Each paper and its place, ``file:line``.
    """
    for number, line in read_lines(path, report):
        if number <= after:
            continue
        where = f"{path}:{number}"
        record = _parse(line)
        if record is None:
            report.add("line that is not a JSON object, skipped", where)
            continue
        reader = reader_of(record)
        if reader is None:
            report.add("record of an unknown layout, skipped", where)
            continue
        paper = reader(record, partial(report.add, where=where))
        if paper is not None:
            yield paper, where


def read_table(path: Path, report: ReadReport) -> Iterator[tuple[str, str]]:
    """The column ``text`` of Parquet, CSV, TSV or an array in JSON, in order.

    Memory does not grow with the file, except for a JSON array, which is read whole.

    Args:
        path: the file.
        report: where faults are reported.

    Yields:
        Each text and its place, ``file, row number`` or ``file:line``.
    """
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
        # It names the file and the place.
        report.add("table damaged or cut off, rest skipped", str(error))
    except OSError as error:
        report.add(f"file that cannot be read ({error.strerror}), skipped", str(path))


def is_parquet(path: Path) -> bool:
    """Whether a file starts with Parquet's magic number."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def _is_array(path: Path) -> bool:
    """Whether a JSON file holds an array instead of a record a line."""
    if not _named(path, ".json"):
        return False
    try:
        return stream_table(path, ("text",)).unit == "record"
    except DataError:
        return False


def _named(path: Path, *extensions: str) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(extensions)


def _require_text(path: Path) -> None:
    try:
        columns = stream_table(path, ("text",)).columns or ()
    except DataError:
        return  # reading reports it
    if "text" not in columns:
        raise DataError(
            f"{path}: has no column 'text', from which texts are read; its columns are "
            f"{', '.join(map(repr, columns))}. Name one of them 'text', or if each line is a text, "
            "let the file's name end in .txt."
        )


def _parse(line: bytes) -> Record | None:
    try:
        record = orjson.loads(line)
    except ValueError:
        # Python's json also accepts half surrogate pairs, NaN and a byte-order mark.
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return record if isinstance(record, dict) else None


def _paper(record: Record) -> Paper | None:
    reader = reader_of(record)
    return None if reader is None else reader(record, lambda fault: None)
