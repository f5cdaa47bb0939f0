"""The linear models of the quick controls, one for each kind of end task that they suit."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn.functional import one_hot

from aang_core import Example
from aang_core.corpora import LabelledTask

Model = Callable[[Any], Tensor]
"""From features of N texts to what the end task's head would compute: ``[N, C]``."""


def labels_of(task: LabelledTask, examples: Sequence[Example]) -> Tensor:
    """The labels of examples as the end task has them, ``[N, ...]``."""
    rows = task.task_type.encode([e.label for e in examples], lambda: (), task.name).rows
    assert rows is not None  # tasks with labels of words have no linear model
    return rows


def _classes(features: Any, labels: Tensor, penalty: float) -> Model:
    model = _fitted(LogisticRegression(C=penalty, max_iter=1000), features, labels)
    count = int(labels.max()) + 1
    return lambda given: one_hot(torch.tensor(model.predict(given)), count).float()


def _sets_of_classes(features: Any, labels: Tensor, penalty: float) -> Model:
    each = OneVsRestClassifier(LogisticRegression(C=penalty, max_iter=1000))
    model = _fitted(each, features, labels)
    return lambda given: torch.tensor(model.predict_proba(given)).logit(eps=1e-6)


def _numbers(features: Any, labels: Tensor, penalty: float) -> Model:
    model = _fitted(Ridge(alpha=1 / penalty), features, labels)
    return lambda given: torch.tensor(model.predict(given)).unsqueeze(1)


LINEAR: Mapping[str, Callable[[Any, Tensor, float], Model]] = {
    "single-label": _classes,
    "multi-label": _sets_of_classes,
    "regression": _numbers,
}
"""By the kind of end task: from features, labels and the inverse penalty to a fitted model."""


def _fitted(regression: Any, features: Any, labels: Tensor) -> Any:
    # Features of an encoder differ widely in scale; sparse ones are scaled already.
    model = (
        regression if hasattr(features, "tocsr") else make_pipeline(StandardScaler(), regression)
    )
    with warnings.catch_warnings():
        # With almost no penalty it may not converge; the dev score then decides all the same.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # It warns of a class that every text has, or no text; either is predicted for all.
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        warnings.filterwarnings("ignore", "Label not .* is present in all training examples")
        return model.fit(features, labels.numpy())
