"""One class a text: ordinary classification."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from aang.task_types.cells import Cell, class_name, text_of
from aang.task_types.metrics import Metric, per_class, resampled_scores, scores
from aang.task_types.task_type import NO_LABEL, Decoded, EncodedLabels, Errors, Offsets, TaskType
from aang_core.objectives.stages.data import Label, ReadReport
from aang_core.tasks.task import RowLosses

MOST_CONFUSED = 1000
"""No confusion matrix above this many classes: it grows with their square."""


@dataclass(frozen=True)
class SingleLabel(TaskType):
    """Every text has exactly one of several classes; the loss is cross-entropy.

    ``labels`` are the classes, sorted; a class's index there is its id. The ids of ``unseen``
    follow.
    """

    name: ClassVar[str] = "single-label"
    model: ClassVar[str] = "A text classifier"
    metrics: ClassVar[tuple[Metric, ...]] = ("macro-f1", "micro-f1", "accuracy")
    baseline: ClassVar[str] = "majority class"
    linear: ClassVar[str | None] = "logistic regression"

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        return text_of(text), class_name(label, report)

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        return EncodedLabels(rows=torch.tensor(self.ids(labels, source)))

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        known = labels < logits.shape[-1]
        losses = functional.cross_entropy(
            logits, labels.where(known, NO_LABEL), ignore_index=NO_LABEL, reduction="none"
        )
        return RowLosses(losses, known.to(losses.dtype))

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        return scores(labels.tolist(), logits.argmax(dim=-1).tolist())

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        return resampled_scores(labels, logits.argmax(dim=-1), counts)

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        from sklearn.metrics import confusion_matrix

        truth, predicted = labels.tolist(), logits.argmax(dim=-1).tolist()
        count = len(self.classes)
        rates = per_class(truth, predicted, count)
        matrix: Sequence[Sequence[int]] = ()
        if count <= MOST_CONFUSED:
            matrix = confusion_matrix(truth, predicted, labels=range(count)).tolist()
        return Errors(dict(zip(self.classes, rates, strict=True)), matrix)

    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        majority = int(train.bincount().argmax())  # the first of several
        return scores(labels.tolist(), [majority] * len(labels))

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        return [
            Decoded(
                self.labels[int(row.argmax())], dict(zip(self.labels, row.tolist(), strict=True))
            )
            for row in logits.float().softmax(dim=-1).cpu()
        ]

    @classmethod
    def of_model(cls, config: Any, labels: tuple[str, ...]) -> Self | None:
        """A classifier of texts for which nothing in the configuration says otherwise."""
        other = getattr(config, "end_task", None) or len(labels) == 1
        of_words = any("ForTokenClassification" in name for name in config.architectures or ())
        one_class = config.problem_type in (None, "single_label_classification")
        return cls(labels) if one_class and not (other or of_words) else None

    def finish(self, model: Any) -> None:
        """Does nothing: transformers' own softmax over the classes is right."""

    def linear_model(self, labels: Tensor, metric: Metric, penalty: float) -> Any:
        from sklearn.dummy import DummyClassifier
        from sklearn.linear_model import LogisticRegression

        if len(labels.unique()) == 1:  # a fold of few rows may leave one class
            return DummyClassifier()
        # Classes count equally in training if they do in the metric.
        weights = "balanced" if metric == "macro-f1" else None
        return LogisticRegression(C=penalty, max_iter=1000, class_weight=weights)

    def linear_outputs(self, model: Any, features: Any) -> Tensor:
        found = torch.tensor(model.predict(features))
        return functional.one_hot(found, len(self.labels)).float()


ONE_CLASS = SingleLabel()
"""The kind before its classes are known; it reads cells."""
