"""The command line, ``aang``. Nothing heavier than this module is imported to find a command."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``aang`` with the arguments given, by default those of the process, and exit.

    Exit status: 0, 1 where a check failed, 2 for a mistake in the arguments, the files or the
    environment, told in one line without a traceback unless ``--debug`` is given.
    """
    from aang_core.cli.app import aang

    # A path or a plug-in's summary may hold what the terminal's encoding does not.
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")
    aang.main(args=None if arguments is None else list(arguments), prog_name="aang")
