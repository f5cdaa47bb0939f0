"""Texts like the end task's own, without labels: from files, or left out by a draw."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from aang.corpora.columns import Columns
from aang.corpora.labelled_task import LabelledTask
from aang.corpora.places import REST, find_files
from aang.corpora.tables import READERS, Row, Table, TableInMemory, stream_table
from aang.corpora.text_files import read_lines, read_text_lines, well_formed
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, ReadReport

OPTION = "--unlabelled"

_JSON_LINES = (".jsonl", ".ndjson")
_EXTENSIONS = (*READERS, ".txt", ".text", ".gz")

_Found = tuple[Example, str]
"""An example and its place, ``file:line``."""


class UnlabelledTexts:
    """The texts that ``--unlabelled`` names, without labels and without dev and test examples.

    Files are read each time that the texts are iterated over, JSON Lines and plain text line by
    line. Tables have the end task's columns; a plain text file holds one text per line.

    Texts that are also in dev or test are left out; see :meth:`.LabelledTask.part_with`.

    Args:
        places: files, folders and globs, or tables in memory; :data:`.places.REST` stands for the
            training rows that a draw has left out.
        columns: names of the columns. The label's is not read.
        task: the end task.
        report: where to count what was left out. Another pass does not count it again.
    """

    def __init__(
        self,
        places: Sequence[str | TableInMemory],
        columns: Columns,
        task: LabelledTask,
        report: ReadReport,
    ) -> None:
        self._tables = [place for place in places if isinstance(place, TableInMemory)]
        self._places = tuple(dict.fromkeys(place for place in places if isinstance(place, str)))
        self._columns = columns
        self._task = task
        self._report = report

    def __iter__(self) -> Iterator[Example]:
        """The texts: the rows that a draw left out, then the files by sorted paths and lines.

        Raises:
            DataError: a place does not exist, a file has another format or lacks a column, or no
                text is left.
        """
        report, count = ReadReport(), 0
        try:
            for example, where in self._found(report):
                if part := self._task.part_with(example):
                    report.add(f"unlabelled text that is also in {part}, left out", where)
                else:
                    count += 1
                    yield example
        finally:
            self._report.include(report)
        if not count:
            met = "; ".join(report.lines()) or "nothing in it"
            named = [*self._places, *(table.source for table in self._tables)]
            raise DataError(f"{OPTION} {' '.join(named)}: no usable text: {met}.")

    def _found(self, report: ReadReport) -> Iterator[_Found]:
        if REST in self._places:
            yield from self._rest()
        for source in self._tables:
            yield from self._rows(source.table(self._columns.texts()), report)
        places = [Path(place) for place in self._places if place != REST]
        for path in find_files(places, _EXTENSIONS, OPTION, report):
            name = path.name.lower().removesuffix(".gz")
            if name.endswith(_JSON_LINES):
                # Broken lines are only counted: a corpus may be too large to mend.
                table = Table(str(path), "line", None, _json_lines(path, report))
                yield from self._rows(table, report)
            elif name.endswith(tuple(READERS)):
                yield from self._rows(stream_table(path, self._columns.texts()), report)
            else:
                yield from self._lines(path, report)

    def _rest(self) -> Iterator[_Found]:
        if not self._task.rest:
            raise DataError(
                f"{OPTION} {REST}: --train-rows takes all {len(self._task.train)} training rows, "
                "so none is left; draw fewer, or name a file"
            )
        for number, example in enumerate(self._task.rest, start=1):
            yield Example(example.text, example.text_pair), f"{REST}, row {number}"

    def _rows(self, table: Table, report: ReadReport) -> Iterator[_Found]:
        wanted = self._columns.texts()
        for number, values in table.rows:
            where = table.where(number)
            self._columns.require(values, wanted, where)
            texts = [values[column] for column in wanted]
            if all(isinstance(text, str) and text.strip() for text in texts):
                yield Example(*map(well_formed, map(str, texts))), where
            else:
                report.add("unlabelled row without a text, skipped", where)

    def _lines(self, path: Path, report: ReadReport) -> Iterator[_Found]:
        if self._columns.text_pair is not None:
            raise DataError(
                f"{OPTION} {path}: holds one text per line, and the end task has two texts per "
                f"example; give a table with the columns {' and '.join(self._columns.texts())}"
            )
        for line, where in read_text_lines(path, report):
            # The line may still be blank by Unicode; only bytes have been checked so far.
            if text := line.strip():
                yield Example(text), where


def _json_lines(path: Path, report: ReadReport) -> Iterator[Row]:
    for number, line in read_lines(path, report):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield number, record
        else:
            report.add("unlabelled line that is not a JSON object, skipped", f"{path}:{number}")
