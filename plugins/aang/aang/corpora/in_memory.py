"""Data in memory as tables: pandas, Hugging Face datasets, and lists.

Rows are numbered from 0, as in ``frame.iloc[7]`` and ``texts[7]``.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aang.corpora.columns import Columns
from aang.corpora.tables import TableInMemory, named
from aang.task_types.cells import refuse_alike
from aang_core.errors import DataError

DOMAIN_TEXT = "text"
"""The column of in-domain text, whatever the end task's is called."""

_TABLES = "a file, a pandas DataFrame, a datasets.Dataset, a list of records, a dict of columns"
LABELLED_FORMS = f"{_TABLES}, or a pair (texts, labels)"
TEXT_FORMS = f"{_TABLES}, or a list of texts"
"""What may be given, for messages."""


def table_in_memory(
    value: object, role: str, columns: Columns, *, labelled: bool = True
) -> TableInMemory:
    """Read data in memory as a table.

    Args:
        value: a DataFrame, a Dataset, a list of records, a mapping of columns; if labelled, a pair
            ``(texts, labels)``; if not, a list or Series of texts or of pairs of texts.
        role: the argument that it was given as, for messages.
        columns: the names of the columns. Lists have none of their own and get these.
        labelled: whether the data has labels.

    Raises:
        DataError: it is none of these, or its columns differ in length.
    """
    forms = LABELLED_FORMS if labelled else TEXT_FORMS
    unknown = DataError(
        f"{role}: this {type(value).__name__} is not data that AANG reads; give {forms}"
    )
    label = columns.label if labelled else None
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("datasets")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        series = [(str(name), value.iloc[:, i]) for i, name in enumerate(value.columns)]
        return _of_columns(series, f"{role} DataFrame", label)
    if datasets is not None and isinstance(value, datasets.Dataset):
        return dataset_table(value, f"{role} Dataset")
    if isinstance(value, Mapping):
        if any(plain_list(cells) is None for cells in value.values()):
            raise unknown
        given = [(str(name), cells) for name, cells in value.items()]
        return _of_columns(given, f"{role} columns", label)
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return TableInMemory(f"{role} list", None, lambda wanted: map(_plain_record, value))
    of_labels: list[tuple[str, Any]] = []
    texts: Any = value
    if labelled:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise unknown
        texts, of_labels = value[0], [(columns.label, value[1])]
    listed = plain_list(texts)
    if listed is None or any(plain_list(cells) is None for _, cells in of_labels):
        raise unknown
    named = [*_texts_by_column(listed, role, columns), *of_labels]
    return _of_columns(named, f"{role} list", label)


def dataset_table(dataset: Any, source: str, *, first: int = 0) -> TableInMemory:
    """A ``datasets.Dataset`` as a table in which the names of classes replace their ids."""

    def rows(wanted: Sequence[str]) -> Iterator[Mapping[str, object]]:
        # The feature of a column may be of class ids, or of lists of them.
        features = {name: dataset.features[name] for name in wanted}
        names = {n: getattr(getattr(f, "feature", f), "names", None) for n, f in features.items()}
        for name, declared in names.items():
            refuse_alike(declared or (), f"{source}: column {name!r}")
        for row in dataset.with_format(None).select_columns(list(wanted)):
            yield {name: named(_plain(row[name]), names[name]) for name in wanted}

    return TableInMemory(source, tuple(dataset.column_names), rows, first)


def require_one_type(table: TableInMemory, column: str) -> None:
    """Check that a column of labels does not mix strings, numbers and booleans.

    In files these are told apart by how they are written; in memory a mixture is a mistake.

    Raises:
        DataError: it mixes them; the message names the first two rows that differ.
    """
    if table.columns is not None and column not in table.columns:
        return
    first: dict[str, str] = {}
    for number, values in table.table([column]).rows:
        value = values.get(column)
        if isinstance(value, str | bool | int | float) and value == value:
            kind = "numbers"
            if isinstance(value, str | bool):
                kind = "strings" if isinstance(value, str) else "booleans"
            first.setdefault(kind, f"{kind} (row {number}: {value!r:.40})")
            if len(first) > 1:
                raise DataError(
                    f"{table.source}: column {column!r} mixes {' and '.join(first.values())}. "
                    "Convert all labels to one type."
                )


def plain_list(value: object) -> list[object] | None:
    """The items of a list, tuple, Series, array or column of a Dataset; None for anything else."""
    items: Any = value
    if isinstance(value, str | bytes | Mapping | Path) or hasattr(value, "iterrows"):
        return None
    if hasattr(value, "tolist"):
        items = value.tolist()
        if (categories := _categories(value)) is not None:
            names = {category: _category_name(category) for category in categories}
            items = [names.get(item) for item in items]
    elif type(value).__module__.startswith("datasets.") and isinstance(value, Sequence):
        items = list(value)  # a column of a Dataset
    return [_plain(item) for item in items] if isinstance(items, list | tuple) else None


def _texts_by_column(texts: list[object], role: str, columns: Columns) -> list[tuple[str, Any]]:
    """Lists of texts, or of pairs of texts, under the names that the options give."""
    if columns.text_pair is None:
        return [(columns.text, texts)]
    pairs: list[Any] = texts
    for number, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise DataError(
                f"{role} list, row {number}: holds {pair!r:.60}, which is not a pair of texts"
            )
    return [
        (columns.text, [pair[0] for pair in pairs]),
        (columns.text_pair, [pair[1] for pair in pairs]),
    ]


def _of_columns(
    columns: Sequence[tuple[str, Any]], source: str, label: str | None
) -> TableInMemory:
    """Columns with their names as a table; classes that the labels' column declares must differ."""
    sizes = {name: len(cells) for name, cells in columns}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise DataError(f"{source}: the columns differ in length: {listed}")
    cells_of = dict(columns)
    categories = _categories(cells_of.get(label)) if label is not None else None
    if categories is not None:
        refuse_alike(map(_category_name, categories), f"{source}: column {label!r}")

    def rows(wanted: Sequence[str]) -> Iterator[Mapping[str, object]]:
        for cells in zip(*(plain_list(cells_of[name]) or () for name in wanted), strict=True):
            yield dict(zip(wanted, cells, strict=True))

    return TableInMemory(source, tuple(name for name, _ in columns), rows)


def _categories(column: Any) -> Any:
    """The categories that a categorical Series declares; None for any other column."""
    return getattr(getattr(column, "dtype", None), "categories", None)


def _category_name(value: object) -> str:
    """A category as text; pandas' 1.0 becomes 1, as in columns of numbers."""
    return str(int(value) if isinstance(value, float) and value % 1 == 0 else value)


def _plain_record(row: Mapping[str, object]) -> Mapping[str, object]:
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
