"""Texts to predict, and their predictions in files, with all the columns of the input."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any, BinaryIO, Literal

from aang.corpora.columns import Columns
from aang.corpora.labelled import texts_of
from aang.corpora.tables import stream_table
from aang.corpora.text_files import LONGEST_LINE, well_formed, well_formed_value
from aang.runs.predict import PREDICTED, Predictor, Text
from aang.task_types.task_type import Decoded
from aang_core.cli.output import ACTING, one_line, printable
from aang_core.errors import ConfigError, DataError
from aang_core.objectives.stages import ReadReport
from aang_core.storage.durable import csv_line, whole_file, writing

Format = Literal["jsonl", "csv"]

PROBABILITIES = "probabilities"

_ESCAPED = re.compile(f"{ACTING.pattern[:-1]}\ud800-\udfff]")
"""Characters that JSON Lines escape: those a terminal acts upon, and halves of surrogate pairs."""


@dataclass(frozen=True)
class Row:
    """A text to predict.

    Attributes:
        text: the text and, for pairs, the second one.
        columns: every column of the file, to be written with the prediction.
        where: what messages call its place.
    """

    text: Text
    columns: Mapping[str, object]
    where: str


Found = Iterable[tuple[Row, Decoded]]


def rows_of_file(path: Path, columns: Columns, report: ReadReport) -> Iterator[Row]:
    """The rows of a file in any format that training reads; labels are not needed.

    Rows are read when they are asked for.

    Args:
        path: the file.
        columns: names of the columns of the texts.
        report: collects notes about the texts.

    Raises:
        DataError: the file cannot be read, a column is missing, or a text is missing, empty or of
            the wrong type; the message names the line.
    """
    table = stream_table(path)
    for number, values in table.rows:
        where = table.where(number)
        yield Row(texts_of(values, columns, where, report), values, where)


def columns_of_file(path: Path, columns: Columns) -> tuple[str, ...]:
    """The columns in the header of a file; without a header, those of the texts.

    Raises:
        DataError: the file cannot be read, or a column of texts is missing.
    """
    header = stream_table(path).columns
    if header is None:
        return columns.texts()
    columns.require(header, columns.texts(), str(path))
    return header


def rows_of_texts(texts: Iterable[Text]) -> Iterator[Row]:
    """A row for each text of the command line.

    Raises:
        DataError: a text is empty.
    """
    for number, text in enumerate(texts, start=1):
        yield _row(text, f"text {number}")


def rows_of_lines(stream: BinaryIO, *, pairs: bool) -> Iterator[Row]:
    """The lines of standard input as they arrive: one text each, or two with a tab between them.

    Raises:
        DataError: a line is not UTF-8, is blank, too long, or holds the wrong number of texts.
    """
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        where = f"standard input:{number}"
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"{where}: this line is longer than {LONGEST_LINE >> 20} MB. Write one text per "
                "line"
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{where}: not UTF-8 text (byte {error.start} of the line). "
                "Convert it, for example with: iconv -f LATIN1 -t UTF-8"
            ) from error
        parts = text.split("\t") if pairs else [text]
        if len(parts) != (2 if pairs else 1):
            raise DataError(
                f"{where}: {len(parts)} texts, and the classifier reads pairs: write two in each "
                "line, with a tab between them"
            )
        yield _row((parts[0], parts[1] if pairs else None), where)


def _row(text: Text, where: str) -> Row:
    named = zip(("text", "text_pair"), text, strict=True)
    columns = {name: well_formed(part) for name, part in named if part is not None}
    if not all(map(str.strip, columns.values())):
        raise DataError(f"{where}: is empty. There is nothing to predict.")
    return Row((columns["text"], columns.get("text_pair")), columns, where)


def predicted(
    rows: Iterable[Row], predictor: Predictor, *, batch_size: int, window: int, report: ReadReport
) -> Iterator[tuple[Row, Decoded]]:
    """Each row with its prediction, in order; one window of rows is in memory at a time."""
    kept, read = tee(rows)
    texts = (row.text for row in read)
    found = predictor.predict(texts, batch_size=batch_size, window=window, report=report)
    # The prediction comes first: a row that cannot be read ends both.
    yield from ((next(kept), prediction) for prediction in found)


def check_pairs(predictor: Predictor, source: Path, *, pairs: bool) -> None:
    """Refuse single texts for a classifier of pairs, and pairs for one of single texts.

    Raises:
        DataError: the run was trained on the other.
    """
    if predictor.pairs is None or predictor.pairs == pairs:
        return
    if predictor.pairs:
        raise DataError(
            f"{source}: was trained on pairs of texts; give two texts with --pair TEXT TEXT, or a "
            "file with both"
        )
    raise DataError(f"{source}: was trained on single texts; leave the second text out")


def format_of(out: Path | None, chosen: Format | None) -> Format:
    """The format of the output: as chosen, else by the extension of the file, else JSON Lines.

    Raises:
        ConfigError: the extension names no format.
    """
    kinds: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
    found = chosen or ("jsonl" if out is None else kinds.get(out.suffix.lower()))
    if found is None:
        raise ConfigError(
            f"--out {out}: the format is not clear from the extension; end the name in .jsonl or "
            ".csv, or give --format"
        )
    return found


def write_predictions(
    found: Found,
    out: Path | None,
    kind: Format | None,
    labels: Sequence[str],
    *,
    columns: Sequence[str] = (),
) -> None:
    """Write predictions to a file, completely or not at all, or to standard output as they come.

    Args:
        found: the rows with their predictions.
        out: the file; None for standard output.
        kind: the format; None writes the labels alone.
        labels: the classes.
        columns: the columns of a table without rows; otherwise those of the first row count.

    Raises:
        DataError: a row does not fit the format, or has a column that predictions have too.
        StorageError: the file cannot be written.
    """
    if out is None:
        # To a file or a pipe, write the same as --out does.
        show = printable if sys.stdout.isatty() else str
        for line in _lines(found, kind, labels, columns, show):
            sys.stdout.write(line)
            sys.stdout.flush()
        return
    with (
        writing(out),
        whole_file(out, shared=True) as draft,
        draft.open("w", encoding="utf-8", newline="") as stream,
    ):
        stream.writelines(_lines(found, kind, labels, columns, str))


def check_output(path: Path) -> None:
    """Refuse an output file that cannot be written, before anything is computed.

    Raises:
        ConfigError: it is a folder, or the folder that it would be in does not exist.
    """
    if path.is_dir():
        raise ConfigError(f"--out {path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ConfigError(f"--out {path}: there is no folder {path.parent}; create it first")


def _lines(
    found: Found,
    kind: Format | None,
    labels: Sequence[str],
    columns: Sequence[str],
    show: Callable[[str], str],
) -> Iterator[str]:
    """The lines of a text file; ``show`` escapes in CSV what a terminal acts upon."""
    if kind == "csv":
        for values in _table(found, labels, columns):
            yield csv_line(_cell(value, show) for value in values)
        return
    for row, prediction in found:
        if kind is None:
            # A class as it is, anything else as JSON.
            label = prediction.label
            text = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
            yield one_line(text) + "\n"
            continue
        _refuse_taken(row.columns, (PREDICTED, PROBABILITIES), row.where)
        record = {**row.columns, PREDICTED: prediction.label}
        if prediction.probabilities:
            record[PROBABILITIES] = dict(prediction.probabilities)
        document = json.dumps(_finite(record), ensure_ascii=False, default=str)
        # Escape what a terminal acts upon and what UTF-8 cannot hold; parsing restores both.
        yield _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", document) + "\n"


def _table(found: Found, labels: Sequence[str], columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Predictions as a table: the header, and a row for each of them.

    The first row names the columns of the input. Halves of surrogate pairs, which no table can
    hold, are replaced by U+FFFD.

    Args:
        found: the rows with their predictions.
        labels: the classes, each with a column for its probability.
        columns: the columns of a table without rows.
    """
    rows = iter(found)
    first = list(islice(rows, 1))
    names = tuple(first[0][0].columns if first else columns)
    added = (PREDICTED, *(f"probability:{label}" for label in labels))
    _refuse_taken(names, added, first[0][0].where if first else "the header")
    yield [well_formed_value(name) for name in (*names, *added)]
    for row, prediction in chain(first, rows):
        if further := [name for name in row.columns if name not in names]:
            raise DataError(
                f"{row.where}: has a column {further[0]!r} that the first row does not have. A "
                "table has the same columns in every row; write JSON Lines instead"
            )
        values = [well_formed_value(row.columns.get(name)) for name in names]
        yield [*values, prediction.label, *(prediction.probabilities[label] for label in labels)]


def _refuse_taken(present: Iterable[str], added: Sequence[str], where: str) -> None:
    taken = [name for name in present if name in added]
    if taken:
        raise DataError(
            f"{where}: there is a column {taken[0]!r} already, which is what the prediction is "
            "written to. Rename it, or print the labels alone with --label-only"
        )


def _cell(value: Any, show: Callable[[str], str]) -> Any:
    if value is None or isinstance(value, float | int):
        return value
    if isinstance(value, dict | list):
        return show(json.dumps(value, ensure_ascii=False, default=str))
    return show(str(value))


def _finite(value: Any) -> Any:
    """The value with null for NaN and infinity, at any depth: JSON has neither."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
