"""Records that are little more than a text: peS2o, Dolma and similar data sets.

peS2o separates paragraphs by a blank line. Soldaini and Lo, peS2o (Pretraining Efficiently on
S2ORC) Dataset, 2023.
"""

import re
from collections.abc import Sequence

from aang_plugin_s2orc.paper import Note, Paper, Record, text_or_none

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


def read_plain(record: Record, note: Note) -> Paper | None:
    """Read ``{"text", "id", ...}``; the paper's id may be missing."""
    key = record.get("id")
    text = text_or_none(record["text"])
    if text is None:
        note("paper without text")
    return Paper(
        str(key) if isinstance(key, str | int) else None,
        full_text=True,
        # The ids of many data sets are line numbers, which begin anew in each file.
        key_repeats=True,
        body=() if text is None else paragraphs(text),
    )


def paragraphs(text: str) -> Sequence[str]:
    """The parts of a text between blank lines."""
    return [part for part in _BLANK_LINES.split(text) if part.strip()]
