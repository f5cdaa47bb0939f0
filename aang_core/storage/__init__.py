"""Files on disk: durable writes, locks, run folders, checkpoints and YAML with line numbers.

Public, for commands of plug-ins that write folders or read files of their own:

- :func:`locked` lets one process write into a folder. :func:`holder_of` returns that process, a
  :class:`Holder`, and :func:`take_from` removes its lock if it is known to be gone.
- :func:`writing` turns errors of the disk into errors for the user; :func:`write_file` writes a
  text completely or not at all, and :func:`whole_file` any file. :func:`csv_line` makes records of
  CSV that every reader gives back.
  :class:`RunFolder` writes the files of a run.
- :func:`parse_yaml` reads YAML and returns a :class:`Source`, which knows the line of every value.
  A :class:`NumberLoader` reads ``1e-4`` as a number.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang_core.storage.durable import csv_line, whole_file, write_file, writing
    from aang_core.storage.lock import Holder, holder_of, locked, take_from
    from aang_core.storage.run_folder import RunFolder
    from aang_core.storage.yaml_source import NumberLoader, Source, parse_yaml

__all__ = [
    "Holder",
    "NumberLoader",
    "RunFolder",
    "Source",
    "csv_line",
    "holder_of",
    "locked",
    "parse_yaml",
    "take_from",
    "whole_file",
    "write_file",
    "writing",
]

_HOMES = {
    "aang_core.storage.durable": "csv_line whole_file write_file writing",
    "aang_core.storage.lock": "Holder holder_of locked take_from",
    "aang_core.storage.run_folder": "RunFolder",
    "aang_core.storage.yaml_source": "NumberLoader Source parse_yaml",
}

# Hidden from type checkers: otherwise they would accept any misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
