"""What the layouts have in common: a paper and its texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]

Note = Callable[[str], None]
"""Counts one fault of the record that is being read."""


@dataclass(frozen=True, slots=True)
class Paper:
    """One record, whatever layout it came in.

    key: id of the paper, by which metadata and full text find each other; None if the layout has
        none.
    full_text: whether the record holds the paper's text, or only what is known about it.
    fields, title: fields of study and title; of metadata only, full texts do not say.
    abstract, body: paragraphs in reading order, as they stand in the record.
    """

    key: str | None
    full_text: bool
    fields: tuple[str, ...] = ()
    title: str | None = None
    abstract: Sequence[str] = ()
    body: Sequence[str] = ()


def paper_key(value: object, note: Note) -> str | None:
    """The id of a paper as a string; releases disagree on whether it is a number."""
    if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
        return str(value)
    note("record without an id, skipped")
    return None


def text_or_none(value: object) -> str | None:
    """``value`` if it is text, None for nulls and everything else."""
    return value if isinstance(value, str) and value.strip() else None
