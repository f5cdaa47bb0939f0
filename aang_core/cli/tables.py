"""Tables for people: aligned where they fit, one record below the other where they do not."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2
_LEAST_TEXT = 24  # running text broken into a narrower column than this is hard to read


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, lead: int = 1) -> None:
    """Print a table to standard output; no cell is ever cut short, no word broken.

    A terminal's width is kept to, by breaking cells between words, or else by writing records of
    which the first ``lead`` cells are the heading. Into a file or a pipe every row is one line.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    columns = list(zip(header, *rows, strict=True))
    natural = [max(_width(cell) for cell in column) for column in columns]
    gaps = _GAP * (len(columns) - 1)
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        console.width = sum(natural) + gaps
    least = [
        min(full, max([_LEAST_TEXT, *(_width(word) for cell in column for word in cell.split())]))
        for column, full in zip(columns, natural, strict=True)
    ]
    spare = console.width - gaps - sum(least)
    if spare < 0:
        _print_records(console, header, rows, lead)
    else:
        _print_aligned(console, header, rows, _share(spare, least, natural))


def _width(text: str) -> int:
    """Columns that a text takes on a terminal, where some letters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def _share(spare: int, least: Sequence[int], natural: Sequence[int]) -> list[int]:
    """Widen columns towards their natural width, those that lack least first."""
    widths = list(least)
    for index in sorted(range(len(widths)), key=lambda i: natural[i] - least[i]):
        more = min(spare, natural[index] - least[index])
        widths[index] += more
        spare -= more
    return widths


def _print_aligned(
    console: "Console", header: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> None:
    from rich.table import Table
    from rich.text import Text

    # Rich would shrink columns evenly, and then crop what no longer fits: the widths are ours.
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for title, width in zip(header, widths, strict=True):
        table.add_column(title, width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    with console.capture() as drawn:
        console.print(table)
    # Rich fills the last column with blanks, of which one long cell makes a great many.
    click.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def _print_records(
    console: "Console", header: Sequence[str], rows: Sequence[Sequence[str]], lead: int
) -> None:
    for row in rows:
        # Left to the terminal to wrap, so that a copied line is whole.
        console.print(" ".join(row[:lead]), style="bold", soft_wrap=True)
        for title, cell in zip(header[lead:], row[lead:], strict=True):
            if cell:
                console.print(f"  {title}: {cell}", soft_wrap=True)
