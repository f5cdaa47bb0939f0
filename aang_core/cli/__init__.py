"""The command line, ``aang``. Finding a command imports nothing heavier than this module.

Public, for commands of plug-ins:

- :func:`echo` and :func:`note` print lines, :func:`print_table` prints a table. :func:`printable`
  makes text from files safe to show on a terminal.
- :class:`RareOption` is an option that ``--help-all`` shows, and ``--help`` does not.
- :func:`plugin_options` and :func:`given_arguments` say how ``aang`` was called, so that another
  process can be started in the same way.
- :func:`main` is ``aang`` itself.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_core.cli.app import given_arguments as given_arguments
    from aang_core.cli.app import plugin_options as plugin_options
    from aang_core.cli.output import echo as echo
    from aang_core.cli.output import note as note
    from aang_core.cli.output import print_table as print_table
    from aang_core.cli.output import printable as printable
    from aang_core.cli.rare_options import RareOption as RareOption
    from aang_core.cli.standard_streams import main as main
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
