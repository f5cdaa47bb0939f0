"""The ``aang`` program, with closed or full standard streams and interrupts at any moment."""

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``aang`` and exit.

    The exit status is 0, 1 if a check failed, or 2 for a mistake in the arguments, the files or the
    environment, which is reported in one line, without a traceback unless ``--debug`` is given.

    OpenMP's threads sleep while they wait, unless ``OMP_WAIT_POLICY`` says otherwise. By default
    they spin, which, beside another job on the same cores, keeps a core from the thread waited for.

    Args:
        arguments: by default those of the process.
    """
    # Read when torch is loaded, so it cannot be set later.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with lasting_streams():
        from aang_core.cli.app import aang

        aang.main(args=None if arguments is None else list(arguments), prog_name="aang")


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Run a command whose output may have nowhere to go.

    What is written to a stream that was closed from the beginning is dropped. Output that cannot be
    written because the disk is full is an error, with exit status 2. Python itself would print a
    traceback for the first, and another line after the command's own error for the second.

    Raises:
        SystemExit: as the block; or the output was lost, or an interrupt ended the block.
    """
    _open_closed()
    # A path or a plug-in's summary may contain characters that the terminal cannot encode.
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")
    try:
        yield
    except KeyboardInterrupt:
        _say("interrupted")
        status: object = 128 + signal.SIGINT
    except SystemExit as end:
        status = end.code
    else:
        status = 0
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if not status:
            # The reader has gone, as behind "| head"; that is not a mistake.
            status = 1 if error.errno == errno.EPIPE else 2
            if status == 2:
                _say(f"Error: the output cannot be written: {error.strerror or error}")
    raise SystemExit(status)


def _open_closed() -> None:
    """Open the null device in place of standard streams that are closed.

    Otherwise the next file that is opened would get the number of such a stream, and receive what
    other programs write to it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, this one
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _drop_output() -> None:
    """Discard what is still in Python's buffer; Python would retry it at the end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _say(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # then there is nowhere to report it
