"""Lines of a command's output; control characters in quoted text are made visible."""

import shutil
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any

import click

from aang_core.printable import one_line, printable


def echo(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text of one or more lines.

    Args:
        text: the text.
        err: print to standard error instead of standard output.
        nl: end with a newline.
        **style: what :func:`click.style` takes.
    """
    click.secho(printable(text), err=err, nl=nl, **style)


def note(sentence: str) -> None:
    """Print one line to standard error that begins with ``note:``."""
    click.echo(folded(f"note: {one_line(sentence)}", indent=6, err=True), err=True)


def folded(line: str, *, indent: int = 0, err: bool = False) -> str:
    """A line that is broken between words where it would leave the terminal.

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

    What was noticed in the data is printed before training begins, and the finished run has it too.
    """
    return cache(note)
