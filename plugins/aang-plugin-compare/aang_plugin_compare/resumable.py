"""Commands that go on where an interrupt has stopped them."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import click
from aang.runs import Interrupted, interruptible

from aang_core.cli import echo, given_arguments


@contextmanager
def resumable() -> Iterator[None]:
    """Print the command that goes on, and exit, if an interrupt stops what is inside the ``with``.

    Raises:
        SystemExit: with the status of a process that the signal has ended.
    """
    again = shlex.join(["aang", *given_arguments(click.get_current_context())])
    try:
        with interruptible():
            yield
    except Interrupted as stopped:
        echo(f"{stopped}; to go on:\n    {again}", err=True)
        raise SystemExit(stopped.status) from None
