"""Lines and tables of a command's output; control characters in quoted text are made visible."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

import click

_GAP = "  "
_LEAST_TEXT = 24  # running text broken into a narrower column than this is hard to read

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 controls except tab and line feed, delete, and overrides of the writing direction.

The marks U+200E, U+200F and U+061C and the joiners stay: Arabic, Hebrew and emoji need them.
"""


def printable(text: str) -> str:
    """Escape every character that a terminal acts upon, such as ``\\x1b``.

    Line feeds and tabs stay as they are, so that whole paragraphs can be passed through.
    """
    return ACTING.sub(_written_out, text)


def one_line(text: str) -> str:
    """Like :func:`printable`, but escape line breaks too, so that text cannot fake another line."""
    return printable(text.replace("\n", r"\n"))


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def echo(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text of one or more lines.

    Args:
        text: the text.
        err: print to standard error instead of standard output.
        nl: end with a newline.
        **style: what :func:`click.style` takes.
    """
    # Without a style, style() would end the text with a code, which notebooks keep.
    shown = click.style(printable(text), **style) if style else printable(text)
    click.echo(shown, err=err, nl=nl)


def note(sentence: str) -> None:
    """Print one line to standard error that begins with ``note:``."""
    click.echo(folded(f"note: {one_line(sentence)}", indent=6, err=True), err=True)


def folded(line: str, *, indent: int = 0, err: bool = False) -> str:
    """A line that is broken between words where it would be wider than the terminal.

    In a file or a pipe it stays one line.

    Args:
        line: the line.
        indent: spaces before each part after the first.
        err: whether it goes to standard error instead of standard output.
    """
    if not (sys.stderr if err else sys.stdout).isatty():
        return line
    return textwrap.fill(
        line,
        width=shutil.get_terminal_size().columns,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def note_once() -> Callable[[str], None]:
    """A function like :func:`note` that prints each sentence only once.

    Notes about the data are printed before training begins, and are part of the finished run, too.
    """
    return cache(note)


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
        # Left to the terminal to wrap, so that a copied line is complete.
        echo(" ".join(row[:lead]), bold=True)
        for title, cell in zip(header[lead:], row[lead:], strict=True):
            if cell:
                echo(f"{_GAP}{title}: {cell}")
