"""Turns texts and labels, as scikit-learn's tools pass them, into columns that a training reads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from aang.corpora.text_files import well_formed
from aang.task_types.cells import Cell, class_name
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from aang_core import ReadReport


def texts_of(X: Any) -> list[Any]:  # noqa: N803
    """Texts, or tuples of two texts.

    Args:
        X: a list, a Series, an array ``[N]``, or a DataFrame or array with one column or two.

    Raises:
        TypeError: it is sparse.
        ValueError: it has another shape, or holds something other than text; the message names the
            row.
    """
    if isinstance(X, str):
        raise ValueError("X is one text; give a list of texts")
    # In rows of different length, pairs stay tuples, which are not text.
    array = check_array(X, dtype=object, ensure_2d=False, ensure_all_finite=False)
    if array.ndim > 1 and array.shape[1] not in (1, 2):
        raise ValueError(f"X has the shape {array.shape}; texts take one column, and pairs two")
    rows = array.reshape(len(array), -1).tolist()
    for number, row in enumerate(rows):
        for text in row:
            if not isinstance(text, str):
                raise ValueError(
                    f"X, row {number}: holds {text!r:.60}, which is not text; give one in every "
                    "row, or two in every row"
                )
            if not text.strip():
                raise ValueError(f"X, row {number}: is empty; fill it in or remove the row")
    return [str(row[0]) if len(row) == 1 else tuple(row) for row in rows]


def texts_to_predict(X: Any, *, pairs: bool | None) -> list[tuple[str, str | None]]:  # noqa: N803
    """Texts for a fitted classifier, each with its second one, as training reads them.

    Args:
        X: as :func:`texts_of` takes them.
        pairs: whether it was fitted to pairs; None if unknown.

    Raises:
        ValueError: they cannot be used, or are pairs for a classifier of single texts or vice
            versa.
    """
    texts = texts_of(X)
    if pairs is not None and isinstance(texts[0], tuple) != pairs:
        raise ValueError(f"this classifier was fitted to {'pairs of' if pairs else 'single'} texts")
    both = (text if isinstance(text, tuple) else (text, None) for text in texts)
    return [(well_formed(text), pair and well_formed(pair)) for text, pair in both]


def column_names(X: Any) -> np.ndarray | None:  # noqa: N803
    """The names of the columns of a DataFrame; None for anything else."""
    names = list(getattr(X, "columns", ()))
    named = bool(names) and all(isinstance(name, str) for name in names)
    return np.array(names, dtype=object) if named else None


def labels_of(y: Any, rows: int) -> np.ndarray:
    """Labels of one kind, ``[N]``.

    Args:
        y: strings, integers or booleans.
        rows: the number of texts.

    Raises:
        ValueError: their number is not ``rows``, they differ in kind or are not classes, or one is
            missing.
    """
    if y is None:
        raise ValueError("AangClassifier requires y to be passed, but the target y is None")
    # As objects: numpy would turn numbers beside texts into texts.
    values = column_or_1d(np.asarray(y, dtype=object), warn=True)
    if len(values) != rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{rows}, {len(values)}]"
        )
    if len(missing := np.flatnonzero([_is_missing(value) for value in values])):
        raise ValueError(f"y, row {missing[0]}: Input y contains NaN; every text needs a label")
    if len({isinstance(value, str) for value in values}) > 1:
        raise ValueError("y mixes strings and numbers; convert all labels to one type")
    labels: np.ndarray = np.asarray(y).reshape(-1)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains infinity; every text needs a label")
    check_classification_targets(labels)
    return labels


def groups_of(groups: Any) -> list[Any]:
    """The name of each row's group; None where there is none."""
    return [None if _is_missing(value) else str(value) for value in groups]


def _is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or pandas' NA or NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def class_names(classes: np.ndarray) -> list[str]:
    """A name for each class, which the saved model carries.

    It is the class as AANG reads it from a table; with a number in front if two classes would be
    read as the same or one is blank.

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


def weights_by_name(
    weights: Mapping[Any, float], classes: np.ndarray, names: Sequence[str]
) -> dict[Any, float]:
    """The weights of classes by the names that training uses."""
    name_of = dict(zip(classes.tolist(), names, strict=True))
    return {name_of.get(one, one): weight for one, weight in weights.items()}


def _as_read(name: str) -> str:
    """The name of a class as training reads it, which then no longer changes; empty if blank."""
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
