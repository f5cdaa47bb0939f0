"""Lines of a command's output; control characters in quoted text are made visible."""

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
    click.echo(f"note: {one_line(sentence)}", err=True)


def note_once() -> Callable[[str], None]:
    """A function like :func:`note` that prints each sentence only once.

    What was noticed in the data is printed before training begins, and the finished run has it too.
    """
    return cache(note)
