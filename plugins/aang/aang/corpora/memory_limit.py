"""How much memory the rows of a file may take, whatever the file unpacks to."""

import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aang_core.errors import ConfigError, DataError

VARIABLE = "AANG_DATA_GB"
DEFAULT_GB = 4.0
"""Enough for four million labelled reviews."""

_ROW = 300
"""Bytes that a row takes besides its values: an example, its place, and entries in lists."""


def memory_limit() -> int:
    """Bytes of memory that the rows of one file may take.

    Raises:
        ConfigError: ``AANG_DATA_GB`` is no number above 0.
    """
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        return int(DEFAULT_GB * 2**30)
    try:
        gigabytes = float(chosen)
    except ValueError:
        gigabytes = math.nan
    if not 0 < gigabytes < 2**20:
        raise ConfigError(
            f"{VARIABLE}={chosen}: give the gigabytes of memory that the rows of one file may "
            f"take, such as {2 * DEFAULT_GB:g}"
        )
    return int(gigabytes * 2**30)


def within_limit(
    rows: Iterable[tuple[int, Mapping[str, object]]], wanted: Sequence[str], source: str
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The rows, until those so far need more memory than they may.

    Args:
        rows: number and values of each row.
        wanted: the columns that are kept.
        source: what the message calls the file.

    Raises:
        DataError: the limit is reached.
        ConfigError: as :func:`memory_limit`.
    """
    limit, used = memory_limit(), 0
    for row in rows:
        number, values = row
        used += _ROW + sum(memory_of(values[name]) for name in wanted if name in values)
        if used > limit:
            raise DataError(
                f"{source}: its first {number} rows take over {gigabytes(limit)} of memory, where "
                "the whole labelled file must fit. Use a part of it, or set "
                f"{VARIABLE} to the gigabytes that it may take; text without labels has no limit"
            )
        yield row


def memory_of(value: object) -> int:
    """Bytes that a value takes, with all that is in it."""
    size = sys.getsizeof(value)
    if isinstance(value, list | tuple):
        size += sum(map(memory_of, value))
    elif isinstance(value, dict):
        size += sum(memory_of(key) + memory_of(part) for key, part in value.items())
    return size


def gigabytes(size: int) -> str:
    """A size for people, such as ``4 GB`` or ``512 MB``."""
    return f"{size / 2**30:g} GB" if size >= 2**30 else f"{size >> 20} MB"
