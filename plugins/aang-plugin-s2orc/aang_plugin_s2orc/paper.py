"""A paper and its texts, the common form of all layouts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]

Note = Callable[[str], None]
"""Counts one fault of the record that is being read."""


@dataclass(frozen=True, slots=True)
class Paper:
    """One record of a paper, of any layout.

    Attributes:
        key: id of the paper, which joins metadata and full text; None if the layout has none.
        full_text: whether the record holds the paper's text instead of metadata.
        key_repeats: whether another paper may have the same key.
        described: whether the record is of the kind that has fields, year and title; full texts
            are not, nor are records with only an abstract.
        fields: fields of study, if known.
        year: year of publication, if known.
        title: title, if known.
        abstract: paragraphs of the abstract in reading order, unchanged.
        body: paragraphs of the body in reading order, unchanged.
    """

    key: str | None
    full_text: bool
    key_repeats: bool = False
    described: bool = False
    fields: tuple[str, ...] = ()
    year: int | None = None
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


def year_or_none(value: object) -> int | None:
    """The year of publication, from a number or its digits; None for everything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:5])
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10_000:
        return value
    return None
