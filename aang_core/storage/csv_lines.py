"""Records of CSV that come back as they were written."""

import re
from collections.abc import Iterable
from typing import Any

_QUOTED = re.compile(r'[",\r\n]|^[\s\ufeff]|\s\Z')
"""What quotes protect: separators, line ends of any system, blanks that some readers strip."""


def csv_line(cells: Iterable[Any]) -> str:
    """One record of CSV with its line feed; None is an empty cell.

    Every reader finds as many records as were written, whatever the cells hold. ``csv.writer`` does
    not promise that: before Python 3.13 it quotes a carriage return only if its own lines end in
    one. A null character, which many readers refuse, is replaced by U+FFFD.

    Examples:
        >>> from aang_core.storage import csv_line
        >>> csv_line(["a\\rb", 'a "no" too', " c", 0.5, None])
        '"a\\rb","a ""no"" too"," c",0.5,\\n'
    """
    # A record of one empty cell would be a blank line, which readers skip.
    return (",".join(map(_field, cells)) or '""') + "\n"


def _field(cell: Any) -> str:
    text = "" if cell is None else str(cell).replace("\0", "\ufffd")
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text
