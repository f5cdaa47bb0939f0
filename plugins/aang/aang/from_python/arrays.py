"""Texts and labels as scikit-learn's tools hand them over, as columns that a training reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from aang.corpora.text_files import well_formed
from aang.task_types.cells import Cell, class_name
from aang_core.objectives.stages.data import ReadReport


def texts_of(X: Any) -> list[str] | list[tuple[str, str]]:  # noqa: N803
    """Texts, or pairs of texts.

    Args:
        X: a list, a Series, an array ``[N]``, or a DataFrame or array with one column or two.

    Raises:
        TypeError: it is sparse.
        ValueError: it has another shape, or holds no text somewhere; the message names the row.
    """
    if hasattr(X, "toarray"):
        raise TypeError("sparse data cannot hold texts; give a list of texts")
    if isinstance(X, str):
        raise ValueError("X is one text; give a list of texts")
    array = X.to_numpy() if hasattr(X, "iloc") else X
    shape = getattr(array, "shape", None)
    if shape == ():
        raise ValueError("X is one value; give a list of texts")
    if shape is not None and len(shape) > 1:
        if len(shape) > 2 or shape[1] not in (1, 2):
            raise ValueError(f"X has the shape {shape}; texts take one column, and pairs two")
        array = [row[0] if shape[1] == 1 else tuple(row) for row in array.tolist()]
    items = list(array)
    if not items:
        raise ValueError("X has 0 sample(s), while a minimum of 1 is required")
    paired = isinstance(items[0], tuple | list)
    for number, item in enumerate(items):
        parts = tuple(item) if paired and isinstance(item, tuple | list) else (item,)
        if len(parts) != (2 if paired else 1):
            raise ValueError(f"X, row {number}: holds {item!r:.60}, which is not a pair of texts")
        for part in parts:
            if not isinstance(part, str):
                raise ValueError(f"X, row {number}: holds {part!r:.60}, which is not text")
            if not part.strip():
                raise ValueError(f"X, row {number}: is empty; fill it in or remove the row")
    return [tuple(item) for item in items] if paired else [str(item) for item in items]


def labels_of(y: Any, rows: int) -> np.ndarray:
    """Labels of one kind, ``[N]``.

    Args:
        y: strings, integers or booleans.
        rows: the number of texts.

    Raises:
        ValueError: they are not as many, differ in kind, or are not classes; one is missing.
    """
    if y is None:
        raise ValueError("AangClassifier requires y to be passed, but the target y is None")
    kinds = {"text" if isinstance(v, str) else "number" for v in _plain(y)}
    if len(kinds) > 1:
        raise ValueError("y mixes strings and numbers; convert all labels to one type")
    labels: np.ndarray = column_or_1d(y, warn=True)
    if len(labels) != rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{rows}, {len(labels)}]"
        )
    missing = [i for i, value in enumerate(labels.tolist()) if _is_missing(value)]
    if missing:
        raise ValueError(f"y, row {missing[0]}: Input y contains NaN; every text needs a label")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains infinity; every text needs a label")
    check_classification_targets(labels)
    return labels


def _is_missing(value: object) -> bool:
    # pandas' own missing values are neither equal nor unequal to anything.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _plain(y: Any) -> Sequence[Any]:
    values = y.tolist() if hasattr(y, "tolist") else list(y)
    return [value for value in values if value is not None and value == value]


def class_names(classes: np.ndarray) -> list[str]:
    """A name for each class, which the saved model carries.

    It is the class as AANG reads it from a table, if it reads all of them as different classes;
    else with a number.

    Examples:
        >>> class_names(np.array(["2.0", "10"])), class_names(np.array(["2", "2.0"]))
        (['2', '10'], ['0: 2', '1: 2'])
    """
    names = [_as_read(str(value)) for value in classes.tolist()]
    if len(set(names)) == len(names) and all(names):
        return names
    return [
        f"{number}: {name or repr(value)}"
        for number, (name, value) in enumerate(zip(names, classes.tolist(), strict=True))
    ]


def _as_read(name: str) -> str:
    """The name of a class as training reads it, which leaves it as it is; empty for blank ones."""
    name = well_formed(name)
    return class_name(Cell(name, "y", "y", "y"), ReadReport()) if name.strip() else ""


def labelled_columns(
    texts: Sequence[Any], labels: np.ndarray, classes: np.ndarray, names: Sequence[str]
) -> dict[str, list[str]]:
    """Columns of texts, or of pairs, and of the names of their classes.

    Args:
        texts: N texts or pairs.
        labels: their labels, ``[N]``.
        classes: the labels that there are, sorted, ``[C]``.
        names: the name of each of them.
    """
    found = np.searchsorted(classes, labels)
    return {**text_columns(texts), "label": [names[i] for i in found.tolist()]}


def text_columns(texts: Sequence[Any]) -> dict[str, list[str]]:
    """A column of texts, or two of pairs."""
    if isinstance(texts[0], tuple):
        return {"text": [text for text, _ in texts], "text_pair": [pair for _, pair in texts]}
    return {"text": list(texts)}
