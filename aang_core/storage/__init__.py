"""Files on disk: durable writes, locks, run folders, checkpoints and YAML with line numbers.

Public, for commands of plug-ins that write folders or read files of their own:

- :func:`locked` lets one process write into a folder. :func:`holder_of` returns that process, a
  :class:`Holder`, and :func:`take_from` removes its lock if it is known to be gone.
- :func:`writing` turns errors of the disk into errors for the user; :func:`write_file` writes a
  text completely or not at all, :func:`whole_file` any file, and :func:`write_folder` a folder.
  :func:`csv_line` makes CSV records that every reader reads back unchanged. :class:`RunFolder`
  writes the files of a run.
- :func:`parse_yaml` reads YAML and returns a :class:`Source`, which knows the line of every value.
  A :class:`NumberLoader` reads ``1e-4`` as a number.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_core.storage.durable import csv_line as csv_line
    from aang_core.storage.durable import whole_file as whole_file
    from aang_core.storage.durable import write_file as write_file
    from aang_core.storage.durable import write_folder as write_folder
    from aang_core.storage.durable import writing as writing
    from aang_core.storage.lock import Holder as Holder
    from aang_core.storage.lock import holder_of as holder_of
    from aang_core.storage.lock import locked as locked
    from aang_core.storage.lock import take_from as take_from
    from aang_core.storage.run_folder import RunFolder as RunFolder
    from aang_core.storage.yaml_source import NumberLoader as NumberLoader
    from aang_core.storage.yaml_source import Source as Source
    from aang_core.storage.yaml_source import parse_yaml as parse_yaml
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
