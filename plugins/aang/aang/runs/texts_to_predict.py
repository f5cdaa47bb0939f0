"""Texts to predict, from files, standard input or the command line, with all that is with them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aang.corpora.labelled import Columns, require_columns, texts_of
from aang.corpora.memory_limit import memory_of
from aang.corpora.tables import stream_table
from aang.corpora.text_files import LONGEST_LINE, well_formed
from aang.runs.predictor import Prediction, Predictor, Text
from aang_core.errors import DataError
from aang_core.objectives.stages import ReadReport

_WINDOW_MEMORY = 2**26


@dataclass(frozen=True)
class Row:
    """A text to predict.

    Attributes:
        text: the text and, for pairs, the second one.
        columns: what the prediction is written with: every column of the file.
        where: what messages call its place.
    """

    text: Text
    columns: Mapping[str, object]
    where: str


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
    require_columns(header, columns.texts(), columns, str(path))
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
                f"{where}: this line is over {LONGEST_LINE >> 20} MB, which is no text to predict. "
                "Write one text a line"
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
    first, second = (None if part is None else well_formed(part) for part in text)
    assert first is not None
    if not first.strip() or (second is not None and not second.strip()):
        raise DataError(f"{where}: is empty. There is nothing to predict.")
    pair = {} if second is None else {"text_pair": second}
    return Row((first, second), {"text": first} | pair, where)


def predicted(
    rows: Iterable[Row], predictor: Predictor, *, batch_size: int, window: int
) -> Iterator[tuple[Row, Prediction]]:
    """Each row with its prediction, in order; one window of rows is in memory at a time."""
    for part in _windows(rows, batch_size * window):
        texts = (row.text for row in part)
        found = predictor.predict(texts, batch_size=batch_size, window=window)
        yield from zip(part, found, strict=True)


def _windows(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """The rows, ``most`` at a time, or fewer if they are large."""
    part: list[Row] = []
    used = 0
    for row in rows:
        part.append(row)
        used += sum(map(memory_of, row.columns.values()))
        if len(part) == most or used > _WINDOW_MEMORY:
            yield part
            part, used = [], 0
    if part:
        yield part


def columns_to_read(
    predictor: Predictor,
    source: Path,
    text: str | None,
    text_pair: str | None,
    label: str | None = None,
) -> Columns:
    """The columns of the texts: those that the user names, else those of the run.

    Raises:
        DataError: a second text is named, and the run was trained on single texts.
    """
    own = predictor.columns
    if text_pair is not None:
        check_pairs(predictor, source, pairs=True)
    return Columns(text or own.text, text_pair or own.text_pair, label or own.label)


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
