"""The command line, ``aang``. Finding a command imports nothing heavier than this module.

Public, for commands of plug-ins:

- :func:`echo` and :func:`note` print lines, :func:`print_table` prints a table. :func:`printable`
  makes text from files safe to show on a terminal.
- :func:`plugin_options` and :func:`given_arguments` say how ``aang`` was called, so that another
  process can be started in the same way.
- :func:`training_options` and :func:`parse_settings` read options as ``aang train`` does.
- :func:`main` is ``aang`` itself.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.cli.schema_options import training_options
    from aang.config.files import parse_settings

    from aang_core.cli.app import given_arguments
    from aang_core.cli.loaded import plugin_options
    from aang_core.cli.output import echo, note
    from aang_core.cli.tables import print_table
    from aang_core.printable import printable

__all__ = [
    "echo",
    "given_arguments",
    "main",
    "note",
    "parse_settings",
    "plugin_options",
    "print_table",
    "printable",
    "training_options",
]

_HOMES = {
    "aang_core.cli.app": "given_arguments",
    "aang_core.cli.loaded": "plugin_options",
    "aang_core.cli.output": "echo note",
    "aang_core.cli.tables": "print_table",
    "aang.cli.schema_options": "training_options",
    "aang.config.files": "parse_settings",
    "aang_core.printable": "printable",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``aang`` and exit.

    The exit status is 0, 1 if a check failed, or 2 for a mistake in the arguments, the files or the
    environment, which is reported in one line, without a traceback unless ``--debug`` is given.

    OpenMP's threads sleep while they wait, unless ``OMP_WAIT_POLICY`` says otherwise. They spin by
    default, and beside another job on the same cores that keeps a core from the thread waited for.

    Args:
        arguments: by default those of the process.
    """
    # Read when torch is loaded, so it cannot be set later.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from aang_core.cli.standard_streams import lasting_streams

    with lasting_streams():
        from aang_core.cli.app import aang

        aang.main(args=None if arguments is None else list(arguments), prog_name="aang")


# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
