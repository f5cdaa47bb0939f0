"""Parquet files, a few rows at a time: a few kilobytes can unpack to gigabytes.

A text that occurs many times is stored once, with its places, so a reader that unpacks whole row
groups, or a fixed number of rows, may need any amount of memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aang_core.errors import DataError

_ROWS = 4096
LARGEST_ROW = 2**26
"""Largest row, in bytes, and the most that is unpacked at once."""


def open_parquet(
    path: Path, wanted: Sequence[str] | None
) -> tuple[tuple[str, ...], Iterator[tuple[int, Mapping[str, object]]]]:
    """The names of all columns, and the rows as they are read, numbered from 1.

    Args:
        path: the file.
        wanted: the columns of the rows, as far as the file has them; None for all.

    Raises:
        DataError: the file is damaged, or a row is larger than :data:`LARGEST_ROW`. Damage further
            down is raised while the rows are read.
    """
    from pyarrow import parquet

    with _damage_told(path):
        with parquet.ParquetFile(path) as file:
            metadata, columns = file.metadata, tuple(file.schema_arrow.names)
        kept = [name for name in columns if wanted is None or name in wanted]
        leaves = [metadata.schema.column(i) for i in range(len(metadata.schema))]
        # Kept as in the file: each different text once.
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        opened = parquet.ParquetFile(path, read_dictionary=texts)
    return columns, _rows(path, opened, kept)


def _rows(path: Path, file: Any, kept: list[str]) -> Iterator[tuple[int, Mapping[str, object]]]:
    number = 0
    with file:
        for group in range(file.num_row_groups):
            at_once = _rows_at_once(file.metadata.row_group(group))
            batches = file.iter_batches(at_once, row_groups=[group], columns=kept)
            while True:
                with _damage_told(path, number):
                    batch = next(batches, None)
                if batch is None:
                    break
                for part in _parts(path, batch, number):
                    with _damage_told(path, number):
                        records = part.to_pylist()
                    for record in records:
                        number += 1
                        yield number, record


def _rows_at_once(group: Any) -> int:
    """Rows of a row group that need about :data:`LARGEST_ROW` bytes, by what the file says.

    Each column says its size too, but in a damaged file pyarrow ends the process when it is asked.
    """
    average: int = group.total_byte_size // max(1, group.num_rows)
    return max(1, min(_ROWS, LARGEST_ROW // max(1, average)))


def _parts(path: Path, batch: Any, number: int) -> Iterator[Any]:
    """The batch, halved until each part unpacks to at most :data:`LARGEST_ROW` bytes."""
    if sum(map(_unpacked, batch.columns)) <= LARGEST_ROW:
        yield batch
    elif batch.num_rows == 1:
        raise _too_large(path, number)
    else:
        half = batch.num_rows // 2
        yield from _parts(path, batch.slice(0, half), number)
        yield from _parts(path, batch.slice(half), number + half)


def _unpacked(array: Any) -> int:
    """At most so many bytes do the values of an array take, where each text counts in full."""
    import pyarrow as pa
    from pyarrow import compute

    kind = array.type
    if pa.types.is_dictionary(kind):
        longest = compute.max(compute.binary_length(array.dictionary)).as_py()
        return len(array) * ((longest or 0) + 4)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return int(array.nbytes) + _unpacked(array.flatten())
    if pa.types.is_struct(kind):
        return sum(map(_unpacked, array.flatten()))
    return int(array.nbytes)


def _too_large(path: Path, number: int) -> DataError:
    return DataError(
        f"{path}, row {number + 1} or soon after it: a row is over {LARGEST_ROW >> 20} MB "
        "unpacked, which is no record of a text"
    )


@contextmanager
def _damage_told(path: Path, number: int | None = None) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise
    # ValueError: names or values that are not UTF-8.
    except (pa.ArrowException, OSError, ValueError) as error:
        if number is None:
            raise DataError(f"{path}: this Parquet file cannot be read: {error}") from error
        raise DataError(f"{path}: a value after row {number} cannot be read: {error}") from error
