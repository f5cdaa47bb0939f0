"""The command line, ``aang``. Finding a command imports nothing heavier than this module."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``aang`` and exit.

    The exit status is 0, 1 if a check failed, or 2 for a mistake in the arguments, the files or the
    environment, which is reported in one line, without a traceback unless ``--debug`` is given.

    Args:
        arguments: by default those of the process.
    """
    from aang_core.cli.app import aang

    # A path or a plug-in's summary may contain characters that the terminal cannot encode.
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")
    aang.main(args=None if arguments is None else list(arguments), prog_name="aang")
