"""Lines of a command's output: whatever they quote, a terminal does nothing but show them."""

from typing import Any

import click

from aang_core.printable import one_line, printable


def echo(text: str = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text of one or more lines; ``style`` is what :func:`click.style` takes.

    Args:
        err: to standard error instead of standard output.
    """
    click.secho(printable(text), err=err, nl=nl, **style)


def note(sentence: str) -> None:
    """Print a line of its own to standard error that begins with ``note:``."""
    click.echo(f"note: {one_line(sentence)}", err=True)
