"""Preparing in-domain text for a task: from a data primitive to a file that training reads."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow
from aang.corpora import read_table, well_formed
from pyarrow import parquet

from aang_core import DataError, Example, ReadReport
from aang_core.storage import whole_file, writing
from aang_plugin_s2orc.domain.overlap import Overlap
from aang_plugin_s2orc.domain.sampling import Sampler
from aang_plugin_s2orc.domain.seen import Seen

COLUMN = "text"
PROVENANCE = b"aang"
"""Key of the Parquet file's metadata that holds the origin of its texts, as JSON."""


@dataclass
class Counts:
    """How many texts of a source were read, left out and drawn.

    Attributes:
        read: texts that the source gave.
        duplicates: texts that had come before, word for word.
        overlapping: texts that overlap with the dev or test set.
        candidates: texts that were drawn from.
        written: texts that were drawn.
    """

    read: int = 0
    duplicates: int = 0
    overlapping: int = 0
    candidates: int = 0
    written: int = 0


def prepare(
    examples: Iterable[Example],
    sampler: Sampler,
    overlap: Overlap,
    out: Path,
    provenance: Mapping[str, Any],
    report: ReadReport,
) -> Counts:
    """Draw texts from ``examples`` and write them atomically to the Parquet file ``out``.

    Texts are read once. Only the sample and filters for repeated texts are kept in memory.

    Args:
        examples: the texts of the source.
        sampler: draws from them.
        overlap: decides which texts to leave out.
        out: the Parquet file.
        provenance: where the texts come from; it goes into the file's metadata.
        report: where texts that are changed are reported.

    Raises:
        DataError: no text is left to draw from.
        StorageError: the file cannot be written.
    """
    counts = Counts()
    texts = sampler(_usable(examples, overlap, counts, report))
    counts.written = len(texts)
    if not texts:
        raise DataError(
            f"no text is left to draw from: of {counts.read} texts {counts.duplicates} came twice "
            f"and {counts.overlapping} overlap with the dev or test set"
        )
    _write(texts, out, {**provenance, "counts": asdict(counts)})
    return counts


def _usable(
    examples: Iterable[Example], overlap: Overlap, counts: Counts, report: ReadReport
) -> Iterator[str]:
    seen = Seen()
    for example in examples:
        counts.read += 1
        text = well_formed(example.text)
        if text != example.text:
            event = "text with half a surrogate pair, replaced by U+FFFD"
            report.add(event, f"text {counts.read} of the source")
        if seen.add(text):
            counts.duplicates += 1
        elif overlap(text):
            counts.overlapping += 1
        else:
            counts.candidates += 1
            yield text


def _write(texts: Sequence[str], out: Path, provenance: Mapping[str, Any]) -> None:
    said = json.dumps(provenance, default=str).encode()
    schema = pyarrow.schema([(COLUMN, pyarrow.string())], metadata={PROVENANCE: said})
    table = pyarrow.table({COLUMN: list(texts)}, schema=schema)
    with writing(out), whole_file(out, shared=True) as draft:
        parquet.write_table(table, draft)


def read_texts(path: Path, columns: Sequence[str], report: ReadReport) -> list[str]:
    """The texts of a task's file; a pair counts as two texts.

    Args:
        path: the file.
        columns: the columns that hold text.
        report: where rows without a text are reported.

    Raises:
        DataError: the file cannot be read, or a column is missing.
    """
    table = read_table(path, tuple(columns))
    texts: list[str] = []
    for number, values in table.rows:
        for column in columns:
            if column not in values:
                raise DataError(
                    f"{table.where(number)}: there is no column {column!r}. Name the right one "
                    "with --text."
                )
            text = values[column]
            if isinstance(text, str) and text.strip():
                texts.append(text)
            else:
                report.add("row without a text, skipped", table.where(number))
    if not texts:
        raise DataError(f"{path}: there is no text in it.")
    return texts
