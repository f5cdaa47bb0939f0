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
    described: whether the record is the one that tells fields, year and title; full texts do not,
        and neither do those of abstracts alone.
    fields, year, title: what such a record says, as far as it does.
    abstract, body: paragraphs in reading order, as they stand in the record.
    """

    key: str | None
    full_text: bool
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
    """The year of publication, a number or its digits; None for nulls and everything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:5])
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10_000:
        return value
    return None
