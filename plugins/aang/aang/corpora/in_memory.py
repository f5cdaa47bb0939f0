"""Data in memory as tables: pandas, Hugging Face datasets, and lists.

Rows are numbered from 0, as in ``frame.iloc[7]`` and ``texts[7]``.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aang.corpora.labelled import Columns
from aang.corpora.tables import Table
from aang.task_types.cells import refuse_alike
from aang_core.errors import DataError

DOMAIN_TEXT = "text"
"""The column of in-domain text, whatever the end task's is called."""

HIDDEN = -1
"""Value of a ``ClassLabel`` column whose labels are not public, as in GLUE's test sets."""

_TABLES = "a file, a pandas DataFrame, a datasets.Dataset, a list of records, a dict of columns"
LABELLED_FORMS = f"{_TABLES}, or a pair (texts, labels)"
TEXT_FORMS = f"{_TABLES}, or a list of texts"
"""What may be given, for messages."""

_Rows = Callable[[Sequence[str]], Iterator[Mapping[str, object]]]


@dataclass(frozen=True)
class TableInMemory:
    """Data in memory that is read like a file.

    Attributes:
        source: what messages call it, such as ``train DataFrame``.
        path: the file that will hold its copy; the task is named after it.
        columns: the names of its columns; None if every record has its own.
        rows: makes the rows of the given columns, with plain Python values.
        first: the number of the first row.
    """

    source: str
    path: Path
    columns: tuple[str, ...] | None
    rows: _Rows
    first: int = 0

    def table(self, wanted: Sequence[str]) -> Table:
        """The rows; columns that are not wanted may be left out.

        Raises:
            DataError: a wanted column occurs twice.
        """
        if self.columns is not None:
            twice = [name for name in wanted if self.columns.count(name) > 1]
            if twice:
                raise DataError(
                    f"{self.source}: column {twice[0]!r} occurs twice. Rename one of them."
                )
            wanted = [name for name in wanted if name in self.columns]
        return Table(self.source, "row", self.columns, enumerate(self.rows(wanted), self.first))

    def copy(self, wanted: Sequence[str]) -> str:
        """The wanted columns as JSON Lines, which :func:`.tables.read_table` reads."""
        lines = []
        for number, values in self.table(wanted).rows:
            record = {name: values[name] for name in wanted if name in values}
            try:
                lines.append(json.dumps(record, ensure_ascii=True) + "\n")
            except (TypeError, ValueError) as error:
                raise DataError(f"{self.source}, row {number}: cannot be kept: {error}") from error
        return "".join(lines)

    def require_one_type(self, column: str) -> None:
        """Check that a column of labels does not mix strings, numbers and booleans.

        In files these are told apart by how they are written; in memory a mixture is a mistake.

        Raises:
            DataError: it does; the message names the first two rows that differ.
        """
        if self.columns is not None and column not in self.columns:
            return
        first: tuple[int, object] | None = None
        for number, values in self.table([column]).rows:
            value = values.get(column)
            kind = _kind(value)
            if kind is None:
                continue
            if first is None:
                first = number, value
            elif kind != _kind(first[1]):
                raise DataError(
                    f"{self.source}: column {column!r} mixes {_kind(first[1])} (row {first[0]}: "
                    f"{first[1]!r:.40}) and {kind} (row {number}: {value!r:.40}). Convert all "
                    "labels to one type."
                )


def _kind(value: object) -> str | None:
    """The kind of a label; None for what other checks deal with."""
    match value:
        case str():
            return "strings"
        case bool():
            return "booleans"
        case float() if value != value:
            return None
        case int() | float():
            return "numbers"
    return None


def table_in_memory(
    value: object, role: str, path: Path, columns: Columns, *, labelled: bool = True
) -> TableInMemory:
    """Read data in memory as a table.

    Args:
        value: a DataFrame, a Dataset, a list of records, a mapping of columns; if labelled, a pair
            ``(texts, labels)``; if not, a list or Series of texts or of pairs of texts.
        role: the argument that it was given as, for messages.
        path: the file that will hold its copy.
        columns: the names of the columns. Lists have none of their own and get these.
        labelled: whether the data has labels.

    Raises:
        DataError: it is none of these, or its columns differ in length.
    """
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("datasets")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        names = tuple(str(name) for name in value.columns)
        if labelled and names.count(columns.label) == 1:
            labels = value.iloc[:, names.index(columns.label)]
            _refuse_alike_categories(labels, f"{role} DataFrame: column {columns.label!r}")
        return TableInMemory(f"{role} DataFrame", path, names, _frame_rows(value, names))
    if datasets is not None and isinstance(value, datasets.Dataset):
        return dataset_table(value, f"{role} Dataset", path)
    if datasets is not None and isinstance(value, datasets.IterableDataset):
        raise DataError(f"{role}: a streamed data set; load it without streaming=True")
    if isinstance(value, Mapping):
        if labelled:
            of_label = value.get(columns.label)
            _refuse_alike_categories(of_label, f"{role} columns: column {columns.label!r}")
        given = {str(name): plain_list(cells) for name, cells in value.items()}
        if all(cells is not None for cells in given.values()):
            source = f"{role} columns"
            return _columns_table({n: c for n, c in given.items() if c is not None}, source, path)
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        records: list[Mapping[str, object]] = value
        return TableInMemory(f"{role} list", path, None, lambda wanted: map(_plain_row, records))
    if not labelled and (texts := plain_list(value)) is not None:
        return _listed(texts, None, role, path, columns)
    if labelled and isinstance(value, tuple | list) and len(value) == 2:
        _refuse_alike_categories(value[1], f"{role} list: the labels")
        given_texts, labels = map(plain_list, value)
        if given_texts is not None and labels is not None:
            return _listed(given_texts, labels, role, path, columns)
    forms = LABELLED_FORMS if labelled else TEXT_FORMS
    raise DataError(
        f"{role}: this {type(value).__name__} is not data that AANG reads; give {forms}"
    )


def dataset_table(
    dataset: Any, source: str, path: Path = Path(), *, first: int = 0
) -> TableInMemory:
    """A ``datasets.Dataset`` as a table in which the names of classes replace their ids."""
    features = dataset.features

    def rows(wanted: Sequence[str]) -> Iterator[Mapping[str, object]]:
        names = {name: _class_names(features[name]) for name in wanted}
        for name, declared in names.items():
            refuse_alike(declared or (), f"{source}: column {name!r}")
        for row in dataset.with_format(None).select_columns(list(wanted)):
            yield {name: _named(_plain(row[name]), names[name]) for name in wanted}

    return TableInMemory(source, path, tuple(dataset.column_names), rows, first)


def _class_names(feature: Any) -> Sequence[str] | None:
    """The names of a column of class ids, or of lists of them; None for any other column."""
    names: Sequence[str] | None = getattr(getattr(feature, "feature", feature), "names", None)
    return names


def _named(value: object, names: Sequence[str] | None) -> object:
    if not names:
        return value
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, int):
        return None if value == HIDDEN else names[value]
    return value


def plain_list(value: object) -> list[object] | None:
    """The items of a list, tuple, Series or one-dimensional array; None for anything else."""
    if isinstance(value, str | bytes | Mapping | Path):
        return None
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "iloc") and hasattr(value, "columns"):  # a DataFrame
        return None
    if hasattr(value, "tolist"):
        items = _cells_of(value)
        return [_plain(item) for item in items] if isinstance(items, list) else None
    if type(value).__module__.startswith("datasets.") and isinstance(value, Sequence):
        return [_plain(item) for item in value]  # a column of a Dataset
    return None


def _listed(
    texts: list[object], labels: list[object] | None, role: str, path: Path, columns: Columns
) -> TableInMemory:
    """Lists of texts, or of pairs of texts, and labels under the names that the options give."""
    named: dict[str, list[object]] = {columns.text: texts}
    if columns.text_pair is not None:
        for number, pair in enumerate(texts):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise DataError(
                    f"{role} list, row {number}: holds {pair!r:.60}, which is not a pair of texts"
                )
        named = {
            columns.text: [pair[0] for pair in texts],  # type: ignore[index]
            columns.text_pair: [pair[1] for pair in texts],  # type: ignore[index]
        }
    if labels is not None:
        if len(labels) != len(texts):
            raise DataError(
                f"{role} lists: there are {len(texts)} texts and {len(labels)} labels; every text "
                "needs one"
            )
        named[columns.label] = labels
    return _columns_table(named, f"{role} list", path)


def _columns_table(
    columns: Mapping[str, Sequence[object]], source: str, path: Path
) -> TableInMemory:
    sizes = {name: len(cells) for name, cells in columns.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise DataError(f"{source}: the columns differ in length: {listed}")

    def rows(wanted: Sequence[str]) -> Iterator[Mapping[str, object]]:
        for cells in zip(*(columns[name] for name in wanted), strict=True):
            yield dict(zip(wanted, cells, strict=True))

    return TableInMemory(source, path, tuple(columns), rows)


def _frame_rows(frame: Any, names: tuple[str, ...]) -> _Rows:
    def rows(wanted: Sequence[str]) -> Iterator[Mapping[str, object]]:
        columns = [_cells_of(frame.iloc[:, names.index(name)]) for name in wanted]
        for cells in zip(*columns, strict=True):
            yield dict(zip(wanted, map(_plain, cells), strict=True))

    return rows


def _cells_of(column: Any) -> Any:
    """The values of an array or Series; of a categorical one, the names of its classes."""
    categories = _categories(column)
    if categories is None:
        return column.tolist()
    names = {value: _category_name(value) for value in categories}
    return [names.get(value) for value in column.tolist()]


def _categories(column: Any) -> Any:
    """What a categorical Series declares; None for any other column."""
    return getattr(getattr(column, "dtype", None), "categories", None)


def _refuse_alike_categories(column: Any, where: str) -> None:
    categories = _categories(column)
    refuse_alike([] if categories is None else map(_category_name, categories), where)


def _category_name(value: object) -> str:
    """A category as text, where pandas' 1.0 is 1, as in columns of numbers."""
    whole = isinstance(value, float) and value % 1 == 0
    return str(int(value)) if whole else str(value)  # type: ignore[call-overload]


def _plain_row(row: Mapping[str, object]) -> Mapping[str, object]:
    return {str(name): _plain(value) for name, value in row.items()}


def _plain(value: object) -> object:
    """The value without numpy's and pandas' own types, which JSON and messages do not know."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return tuple(map(_plain, value)) if type(value) is tuple else value
