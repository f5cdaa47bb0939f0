"""When to answer: accuracy on the surest texts alone, and the threshold for a wanted accuracy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aang_plugin_best.rows import Rows
from aang_plugin_best.together import Probabilities

SHARES = 20
"""Points of the curve of accuracy by share answered."""


def answered(rows: Rows, probabilities: Probabilities) -> list[dict[str, float]]:
    """Accuracy if only the surest texts are answered, for growing shares of them."""
    sure, right = _by_certainty(rows, probabilities)
    accuracy = right.cumsum() / np.arange(1, len(right) + 1)
    counts = [max(1, round(len(right) * point / SHARES)) for point in range(1, SHARES + 1)]
    return [
        {
            "answered": count / len(right),
            "accuracy": float(accuracy[count - 1]),
            "threshold": float(sure[count - 1]),
        }
        for count in sorted(set(counts))
    ]


def answer_at(rows: Rows, probabilities: Probabilities, wanted: float) -> dict[str, Any]:
    """The least probability at which answers have a wanted accuracy.

    A threshold looks better than it is on the rows that chose it. To check it, each fold's rows
    are answered with a threshold chosen on the other folds.

    Args:
        rows: the rows.
        probabilities: of a model that has not seen them, calibrated, ``[N, C]``.
        wanted: the accuracy.

    Returns:
        ``accuracy``, ``threshold`` (None if none reaches it), the share ``answered``, and the
        result of the check as ``checked``.
    """
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == rows.truth
    whole = threshold_of(sure, right, wanted)
    taken = np.zeros(len(right), dtype=bool)
    for k in np.unique(rows.folds):
        others = rows.folds != k
        threshold = threshold_of(sure[others], right[others], wanted)
        if threshold is not None:
            taken |= ~others & (sure >= threshold)
    return {
        "accuracy": wanted,
        "threshold": whole,
        "answered": 0.0 if whole is None else float(np.mean(sure >= whole)),
        "checked": {
            "answered": float(taken.mean()),
            "accuracy": float(right[taken].mean()) if taken.any() else None,
        },
    }


def threshold_of(
    sure: NDArray[np.float64], right: NDArray[np.bool_], wanted: float
) -> float | None:
    """The lowest threshold whose answers have the wanted accuracy; None if there is none.

    Fewer than 1 / (1 - wanted) answers do not count: all of them would have to be right, which
    happens by chance.

    Args:
        sure: the probability of the predicted class, ``[N]``.
        right: whether that class is true, ``[N]``.
        wanted: the accuracy, below 1.
    """
    order = np.argsort(-sure, kind="stable")
    sure, right = sure[order], right[order]
    counts = np.arange(1, len(sure) + 1)
    # Equal probabilities are answered together.
    last = np.append(sure[1:] < sure[:-1], True)
    enough = counts >= 1 / (1 - wanted) - 1e-9  # 1 / (1 - 0.9) is a little above ten
    reached = last & (right.cumsum() / counts >= wanted) & enough
    if not reached.any():
        return None
    place = int(np.flatnonzero(reached)[-1])
    return 0.0 if place == len(sure) - 1 else float(sure[place])


def _by_certainty(
    rows: Rows, probabilities: Probabilities
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == rows.truth
    order = np.argsort(-sure, kind="stable")
    return sure[order], right[order]
