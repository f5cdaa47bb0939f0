"""Checks of the names of classes, for all kinds of end task that have some."""

import unicodedata
from collections.abc import Iterable, Sequence

from aang_core.errors import DataError
from aang_core.objectives.stages.data import ReadReport

MOST_CLASSES = 10_000
"""A column with more distinct values does not hold classes."""


def refuse_too_many(labels: Sequence[str], examples: int, source: str, option: str) -> None:
    """Raise DataError if there are more than :data:`MOST_CLASSES` classes."""
    if len(labels) > MOST_CLASSES:
        raise DataError(
            f"{source}: there are {len(labels)} different labels in {examples} "
            f"examples, such as {listed([label[:40] for label in labels], 3)}. The maximum is "
            f"{MOST_CLASSES} classes; does {option} name the right column?"
        )


def note_look_alikes(source: str, labels: Iterable[str], report: ReadReport) -> None:
    """Note labels that differ only in case, spaces or invisible characters."""
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(_skeleton(label), []).append(label)
    groups = [" and ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    if groups:
        more = f"; so do {len(groups) - 3} more groups" if len(groups) > 3 else ""
        report.note(
            f"{source}: the labels {'; '.join(groups[:3])} differ only in case, space or invisible "
            f"characters{more}. Each is a class of its own; write them alike if they are meant to "
            "be one"
        )


def _skeleton(label: str) -> str:
    folded = unicodedata.normalize("NFKC", label).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c) != "Cf")


def listed(labels: Sequence[str], most: int = 20) -> str:
    """Names in quotes, the first ``most`` of them."""
    counted = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(repr(label) for label in labels[:most]) + counted


def unknown_class(label: object, labels: Iterable[str], source: str) -> DataError:
    """The error for a label that is not one of the classes."""
    known = ", ".join(map(repr, labels))
    return DataError(f"{source}: an example has the label {label!r}; the classes are {known}.")
