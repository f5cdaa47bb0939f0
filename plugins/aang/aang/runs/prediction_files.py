"""Predictions as JSON Lines, CSV or Parquet, with the columns of the input."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TextIO

from aang.corpora.text_files import well_formed_value
from aang.runs.predictor import Prediction
from aang.runs.texts_to_predict import Row
from aang_core.errors import ConfigError, DataError
from aang_core.printable import ACTING, one_line, printable
from aang_core.storage.csv_lines import csv_line
from aang_core.storage.durable import whole_file, writing

Format = Literal["jsonl", "csv", "parquet"]
Found = Iterable[tuple[Row, Prediction]]

PREDICTED = "predicted"
PROBABILITIES = "probabilities"

_AT_ONCE = 4096  # rows of a group of Parquet

_ESCAPED = re.compile(f"{ACTING.pattern[:-1]}\ud800-\udfff]")
"""What JSON Lines write as an escape: what a terminal acts upon, and halves of surrogate pairs."""


def format_of(out: Path | None, chosen: Format | None) -> Format:
    """The format of the output: as chosen, else by the extension of the file, else JSON Lines.

    Raises:
        ConfigError: the extension names no format, or Parquet would go to standard output.
    """
    if out is None:
        if chosen == "parquet":
            raise ConfigError("--format parquet: needs a file; give --out FILE.parquet")
        return chosen or "jsonl"
    kinds: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl"}
    kinds |= {".csv": "csv", ".parquet": "parquet"}
    found = chosen or kinds.get(out.suffix.lower())
    if found is None:
        raise ConfigError(
            f"--out {out}: the format is not clear from the extension; end the name in .jsonl, "
            ".csv or .parquet, or give --format"
        )
    return found


def write_predictions(
    found: Found,
    out: Path | None,
    kind: Format | None,
    labels: Sequence[str],
    *,
    columns: Sequence[str] = (),
    source: Path | None = None,
) -> None:
    """Write predictions to a file, completely or not at all, or to standard output as they come.

    Args:
        found: the rows with their predictions.
        out: the file; None for standard output.
        kind: the format; None writes the labels alone.
        labels: the classes.
        columns: the columns of a table without rows; otherwise those of the first row count.
        source: the file that the rows come from, whose columns keep their types in Parquet.

    Raises:
        DataError: a row does not fit the format, or has a column that predictions have too.
        StorageError: the file cannot be written.
    """
    if out is None:
        _write_text(found, sys.stdout, kind, labels, columns)
        return
    with writing(out), whole_file(out, shared=True) as draft:
        if kind == "parquet":
            _write_parquet(found, draft, labels, columns, source)
            return
        with draft.open("w", encoding="utf-8", newline="") as stream:
            _write_text(found, stream, kind, labels, columns)


def _write_text(
    found: Found,
    out: TextIO,
    kind: Format | None,
    labels: Sequence[str],
    columns: Sequence[str],
) -> None:
    if kind is None:
        lines: Iterator[str] = (
            one_line(_alone(prediction.label)) + "\n" for _, prediction in found
        )
    elif kind == "csv":
        # Behind "> out.csv" or a pipe, the same as --out writes.
        lines = _csv_lines(found, labels, columns, printable if out.isatty() else str)
    else:
        lines = _json_lines(found)
    for line in lines:
        out.write(line)
        if out is sys.stdout:
            out.flush()


def check_output(path: Path) -> None:
    """Refuse an output file that cannot be written, before anything is computed.

    Raises:
        ConfigError: it is a folder, or the folder that it would be in does not exist.
    """
    if path.is_dir():
        raise ConfigError(f"--out {path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ConfigError(f"--out {path}: there is no folder {path.parent}; create it first")


def _alone(label: Any) -> str:
    """A label on a line of its own: a class as it is, anything else as JSON."""
    return label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)


def _json_lines(found: Found) -> Iterator[str]:
    """An object per row: the columns of the input, then the prediction.

    Characters that a terminal acts upon, and those that UTF-8 cannot hold, are escaped; parsing
    gives them back.
    """
    for row, prediction in found:
        _refuse_taken(row.columns, (PREDICTED, PROBABILITIES), row.where)
        record = {
            **row.columns,
            PREDICTED: prediction.label,
            PROBABILITIES: dict(prediction.probabilities),
        }
        document = json.dumps(_finite(record), ensure_ascii=False, default=str)
        yield _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", document) + "\n"


def _csv_lines(
    found: Found, labels: Sequence[str], columns: Sequence[str], show: Callable[[str], str]
) -> Iterator[str]:
    """A header and a record per row, with a column for the probability of each class.

    Args:
        found: the rows with their predictions.
        labels: the classes.
        columns: the columns of a table without rows.
        show: what is done to every text; it escapes what a terminal acts upon.
    """
    header, rows = _flat(found, labels, columns)
    yield csv_line(map(show, header))
    for values in rows:
        yield csv_line(_cell(value, show) for value in values)


def _write_parquet(
    found: Found, out: Path, labels: Sequence[str], columns: Sequence[str], source: Path | None
) -> None:
    """Write a table, a group of rows at a time; without types in the source the first decides.

    Objects of JSON are written as text, as in CSV: a type made of the first group's fields would
    lose those that only later rows have.
    """
    import pyarrow as pa
    from pyarrow import parquet

    kept = {}
    if source is not None and source.suffix.lower() == ".parquet":
        kept = {field.name: field for field in parquet.read_schema(source)}
    header, values_of_rows = _flat(found, labels, columns)
    rows = (
        {
            name: value if name in kept or not _has_objects(value) else _cell(value, str)
            for name, value in zip(header, values, strict=True)
        }
        for values in values_of_rows
    )
    first = list(islice(rows, _AT_ONCE))
    schema = _schema(first or [dict.fromkeys(header)], kept)
    with parquet.ParquetWriter(out, schema) as writer:
        number = 0
        for group in chain([first], iter(lambda: list(islice(rows, _AT_ONCE)), [])):
            try:
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
            except (pa.ArrowException, OverflowError) as error:
                raise DataError(
                    f"after row {number}: a column changes its type ({error}). "
                    "Parquet has one type a column; write JSON Lines instead"
                ) from error
            number += len(group)


def _has_objects(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_objects, value))
    return isinstance(value, dict)


def _schema(rows: Sequence[Mapping[str, Any]], kept: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    try:
        found = pa.Table.from_pylist(rows).schema
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"a column has no type that Parquet knows ({error}). It has one type a column, and "
            "whole numbers of at most 64 bits; write JSON Lines instead"
        ) from error
    # A column that is null so far may hold anything later, most likely text.
    typed = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in found]
    return pa.schema([kept.get(field.name, field) for field in typed])


def _flat(
    found: Found, labels: Sequence[str], columns: Sequence[str]
) -> tuple[tuple[str, ...], Iterator[list[Any]]]:
    """The header of a table and the values of each row; the first row names the input's columns.

    Halves of surrogate pairs, which no table can hold, are replaced by U+FFFD.
    """
    rows = iter(found)
    first = list(islice(rows, 1))
    names = tuple(first[0][0].columns if first else columns)
    added = (PREDICTED, *(f"probability:{label}" for label in labels))
    _refuse_taken(names, added, first[0][0].where if first else "the header")
    return tuple(map(well_formed_value, (*names, *added))), _values(
        chain(first, rows), names, labels
    )


def _values(found: Found, names: Sequence[str], labels: Sequence[str]) -> Iterator[list[Any]]:
    for row, prediction in found:
        if further := [name for name in row.columns if name not in names]:
            raise DataError(
                f"{row.where}: has a column {further[0]!r} that the first row does not have. A "
                "table has the same columns in every row; write JSON Lines instead"
            )
        values = [well_formed_value(row.columns.get(name)) for name in names]
        shares = [prediction.probabilities[label] for label in labels]
        yield [*values, prediction.label, *shares]


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
