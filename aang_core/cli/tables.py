"""Tables for people: aligned if they fit, otherwise one record after the other."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from aang_core.cli.output import echo
from aang_core.printable import one_line

_GAP = "  "
_LEAST_TEXT = 24  # running text broken into a narrower column than this is hard to read


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, lead: int = 1) -> None:
    """Print a table to standard output; no cell is truncated, no word broken.

    On a terminal, cells are broken between words to fit its width. If that is not enough, each row
    is printed as a record with its first ``lead`` cells as the heading. In a file or a pipe every
    row is one line, unless ``COLUMNS`` is set.
    """
    rows = [[one_line(cell) for cell in row] for row in rows]
    columns = list(zip(header, *rows, strict=True))
    natural = [max(map(_width, column)) for column in columns]
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        _print_aligned(header, rows, natural)
        return
    least = [
        min(full, max([_LEAST_TEXT, *(_width(word) for cell in column for word in cell.split())]))
        for column, full in zip(columns, natural, strict=True)
    ]
    spare = shutil.get_terminal_size().columns - len(_GAP) * (len(columns) - 1) - sum(least)
    if spare < 0:
        _print_records(header, rows, lead)
    else:
        _print_aligned(header, rows, _share(spare, least, natural))


def _width(text: str) -> int:
    """Width of a text on a terminal, where some letters take two columns."""
    from rich.cells import cell_len

    return cell_len(text)


def _share(spare: int, least: Sequence[int], natural: Sequence[int]) -> list[int]:
    """Widen columns towards their natural width, those that need the least first."""
    widths = list(least)
    for index in sorted(range(len(widths)), key=lambda i: natural[i] - least[i]):
        more = min(spare, natural[index] - least[index])
        widths[index] += more
        spare -= more
    return widths


def _print_aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> None:
    for row in (header, *rows):
        broken = [list(_break(cell, width)) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*broken, fillvalue=""):
            padded = [
                part + " " * (width - _width(part))
                for part, width in zip(parts, widths, strict=True)
            ]
            echo(_GAP.join(padded).rstrip(), bold=row is header)


def _break(cell: str, width: int) -> Iterator[str]:
    """Break a cell into lines of at most ``width``; no word is longer than that.

    Rich would break words of two-column letters that fit, and crop the rest of the line.
    """
    if _width(cell) <= width:
        yield cell
        return
    line = ""
    for word in cell.split():
        longer = f"{line} {word}" if line else word
        if _width(longer) > width:
            yield line
            line = word
        else:
            line = longer
    yield line


def _print_records(header: Sequence[str], rows: Sequence[Sequence[str]], lead: int) -> None:
    for row in rows:
        # The terminal wraps it, so that a copied line is complete.
        echo(" ".join(row[:lead]), bold=True)
        for title, cell in zip(header[lead:], row[lead:], strict=True):
            if cell:
                echo(f"{_GAP}{title}: {cell}")
