"""Metrics of predictions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

Metric = str
"""The name of a score, such as ``macro-f1``; each kind of end task has some."""

Loss = Literal["loss"]
LOSS: Loss = "loss"
"""What the end task's mean loss is called beside the scores of an evaluation."""


LOG_LIKELIHOOD = "log-likelihood"
"""What pre-training scores held-out text by: the mean over its targets, in nats."""


def shown_score(value: float | None, metric: str, interval: Sequence[float] = ()) -> str:
    """A score for people: times 100, where files and functions have it between 0 and 1.

    Args:
        value: the score; None is shown as a dash.
        metric: its metric; RMSE and log-likelihood stay as they are, in a unit of their own.
        interval: its lower and upper bound, shown in brackets.

    Examples:
        >>> from aang.runs import shown_score
        >>> shown_score(0.58134, "macro-f1", (0.5123, 0.6377))
        '58.13 (51.2–63.8)'
    """
    if value is None:
        return "–"
    own_unit = metric in ("rmse", LOG_LIKELIHOOD)
    shown = f"{value:.4f}" if own_unit else f"{100 * value:.2f}"
    ends = "–".join(f"{end:.3g}" if own_unit else f"{100 * end:.1f}" for end in interval)
    return f"{shown} ({ends})" if ends else shown


def scores(labels: Sequence[int], predictions: Sequence[int]) -> Mapping[str, float]:
    """Macro-F1, micro-F1 and accuracy, each in [0, 1].

    Macro-F1 averages over the classes that occur in ``labels`` or ``predictions``; a class that is
    never predicted correctly counts as zero.

    Args:
        labels: the true classes.
        predictions: the predicted classes, as many.

    Examples:
        >>> from aang.task_types import scores
        >>> for name, value in scores([0, 0, 1, 1], [0, 1, 1, 1]).items():
        ...     print(f"{name}: {value:.3f}")
        macro-f1: 0.733
        micro-f1: 0.750
        accuracy: 0.750
    """
    # The import takes half a second; commands that only name metrics should not wait for it.
    from sklearn.metrics import accuracy_score, f1_score

    return {
        "macro-f1": float(f1_score(labels, predictions, average="macro", zero_division=0.0)),
        "micro-f1": float(f1_score(labels, predictions, average="micro", zero_division=0.0)),
        "accuracy": float(accuracy_score(labels, predictions)),
    }


def resampled_scores(
    labels: "Tensor", predictions: "Tensor", counts: "Tensor"
) -> Mapping[str, "Tensor"]:
    """:func:`scores` of resamples of the rows, all at once.

    Args:
        labels: the true classes, int64 ``[N]``.
        predictions: the predicted classes, int64 ``[N]``.
        counts: how often each resample has each row, float64 ``[R, N]``.

    Returns:
        Float64 ``[R]`` for each metric.
    """
    right = labels == predictions
    classes = int(max(labels.max(), predictions.max())) + 1 if len(labels) else 1

    def by_class(of: "Tensor", times: "Tensor") -> "Tensor":
        return times.new_zeros(len(times), classes).index_add_(1, of, times)

    hits = by_class(labels[right], counts[:, right])
    met = by_class(labels, counts) + by_class(predictions, counts)
    f1 = 2 * hits / met.clamp(min=1)
    share = hits.sum(dim=1) / counts.sum(dim=1).clamp(min=1)
    macro = f1.sum(dim=1) / (met > 0).sum(dim=1).clamp(min=1)
    return {"macro-f1": macro, "micro-f1": share, "accuracy": share}


def per_class(
    labels: Sequence[int], predictions: Sequence[int], classes: int
) -> list[dict[str, float]]:
    """Precision, recall, F1 and number of examples of every class; undefined rates are zero."""
    from sklearn.metrics import precision_recall_fscore_support

    columns = precision_recall_fscore_support(
        labels, predictions, labels=list(range(classes)), zero_division=0.0
    )
    *rates, examples = (column.tolist() for column in columns)
    # scikit-learn counts in floating-point numbers if one of many classes is missing.
    return [
        dict(zip(("precision", "recall", "f1"), row, strict=True)) | {"examples": int(count)}
        for *row, count in zip(*rates, examples, strict=True)
    ]
