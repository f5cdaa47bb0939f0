"""Cells of a table as texts, names of classes and numbers; checks of the names of classes."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from aang.task_types.written_lists import list_in, looks_like_list
from aang_core.errors import DataError
from aang_core.objectives.stages.data import ReadReport

_INTEGRAL = re.compile(r"([+-]?\d+)\.0+")

MOST_CLASSES = 10_000
"""A column with more distinct values does not hold classes."""

_MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"})
"""How programs write a missing value, in small letters."""


@dataclass(frozen=True)
class Cell:
    """A value of a table and its place.

    Attributes:
        value: the value.
        column: its column.
        where: ``file:line`` or similar.
        option: the option that names the column.
    """

    value: object
    column: str
    where: str
    option: str

    def fault(self, what: str) -> DataError:
        """An error, for the caller to raise, that names the place."""
        return DataError(f"{self.where}: column {self.column!r} {what}")

    def inner(self, value: object) -> "Cell":
        """A part of the value, at the same place."""
        return Cell(value, self.column, self.where, self.option)

    def with_list(self) -> "Cell":
        """The cell with the list that its text spells; itself if it holds anything else.

        Raises:
            DataError: its text looks like a list but is not one.
        """
        if not isinstance(self.value, str):
            return self
        found = list_in(self.value)
        if found is not None:
            return self.inner(found)
        if looks_like_list(self.value):
            raise self.fault(
                f"holds {self.value!r:.60}, which looks like a list but cannot be read as one. "
                'Write ["a", "b"], with quotes around each part and commas between them; '
                "training with --task-type single-label takes it for the name of a class."
            )
        return self


def is_null(value: object) -> bool:
    """Whether a value is None or NaN."""
    return value is None or (isinstance(value, float | Decimal) and math.isnan(value))


def text_of(cell: Cell) -> str:
    """The text in a cell.

    Raises:
        DataError: it is missing, empty or not text.
    """
    if is_null(cell.value):
        raise cell.fault("is null. Fill it in or remove the example.")
    if not isinstance(cell.value, str):
        raise cell.fault(
            f"holds {cell.value!r:.60}, which is not text. "
            "Write it as a string, or name another column."
        )
    if not cell.value.strip():
        raise cell.fault("is empty. Fill it in or remove the example.")
    return cell.value


def class_name(cell: Cell, report: ReadReport) -> str:
    """The name of the class in a cell.

    ``1``, ``1.0`` and ``"1.0"`` are all ``"1"``, and true is ``"True"``, as pandas writes it to
    CSV, so that the formats agree. Space around a name is dropped.

    Raises:
        DataError: it is missing, empty or not a class.
    """
    name = _as_text(cell)
    if not name.strip():
        raise cell.fault("is empty. Every example needs a label.")
    if name != name.strip():
        report.add("label with space around it, read without", cell.where)
    name = name.strip()
    if spells_missing(name):
        report.add(
            f"label {name!r}, which often stands for a missing value, read as a class", cell.where
        )
    if len(name) > 1 and name[0] == name[-1] == '"':
        report.add("label in quotes, which are read as part of its name", cell.where)
    if list_in(name) is not None:
        report.add("label that looks like a list, read as the name of one class", cell.where)
    read = without_zeros(name)
    if read != name:
        report.add(f"label {name!r} read as {read!r}", cell.where)
    return read


def _as_text(cell: Cell) -> str:
    value = cell.value
    if isinstance(value, str):
        return value
    if is_null(value):
        raise cell.fault("is null. Every example needs a label.")
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float | Decimal):
        raise cell.fault(
            f"holds {value!r:.60}, which is not one class. A single-label task has one label an "
            f"example; train with --task-type for another kind, or name another column with "
            f"{cell.option}."
        )
    if not math.isfinite(value):
        raise cell.fault(f"holds {value}, which is no class. Correct it or remove the example.")
    if value % 1 == 0:
        return f"{value:.1f}"
    raise cell.fault(
        f"holds the number {value}, which is a score and not a class. Train with --task-type "
        "regression if every label is a number, put the scores into classes first, or name another "
        f"column with {cell.option}."
    )


def without_zeros(name: str) -> str:
    """The name ``"1"`` for ``"1.0"``, ``"0"`` for ``"-0.0"``, and any other name as it is.

    CSV and Parquet written from a column that once had nulls hold 1 as 1.0, and the same class or
    group must not become two.
    """
    integral = _INTEGRAL.fullmatch(name)
    if integral is None:
        return name
    return "0" if integral[1] == "-0" else integral[1]  # rounding makes -0.0 of -0.3


def spells_missing(name: str) -> bool:
    """Whether a text is what programs write for a missing value, such as ``NA`` or nothing."""
    return name.strip().casefold() in _MISSING


def refuse_alike(names: Iterable[str], where: str, *, spaces: bool = True) -> None:
    """Raise DataError if two names of classes would be read as one, such as 1 and 1.0.

    Args:
        names: the names.
        where: what messages call the column.
        spaces: whether names that differ only in the space around them are refused too.
    """
    known: dict[str, str] = {}
    for name in names:
        read = without_zeros(name.strip())
        other = known.setdefault(read, name)
        if other != name and (spaces or other.strip() != name.strip()):
            raise DataError(
                f"{where}: the classes {other!r} and {name!r} would both be read as {read!r}. "
                "Rename one of them, or write them alike if they are one class."
            )


def number(value: object) -> float | None:
    """The number that a value is or spells; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    if isinstance(value, str) and "_" in value:  # 1_000, a number only to Python
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def mostly_fractions(labels: Sequence[object]) -> list[float]:
    """The numbers among labels, if most are numbers and not all of those whole; else none."""
    numbers = [found for found in map(number, labels) if found is not None]
    fractions = 2 * len(numbers) > len(labels) and any(found % 1 for found in numbers)
    return numbers if fractions else []


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
