"""One class a text: ordinary classification."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from aang.task_types.cells import Cell, class_name, text_of
from aang.task_types.class_names import note_look_alikes, refuse_too_many, unknown_class
from aang.task_types.names import TaskTypeName
from aang.task_types.task_type import Decoded, EncodedLabels, Errors, HeadShape, Offsets
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Label, ReadReport
from aang_core.tasks.task import RowLosses
from aang_core.training.evaluation import (
    Metric,
    confusion,
    majority_scores,
    per_class,
    resampled_scores,
    scores,
)

MOST_CONFUSED = 1000
"""No confusion matrix above this many classes: it grows with their square."""

_NO_CLASS = -100
"""What torch's cross-entropy leaves out."""


@dataclass(frozen=True)
class SingleLabel:
    """Every text has exactly one of several classes; the loss is cross-entropy.

    Attributes:
        labels: the classes, sorted; a class's index here is its id.
        unseen: classes of dev and test that train lacks; their ids follow.
    """

    labels: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    name: ClassVar[TaskTypeName] = "single-label"
    reads_every_token: ClassVar[bool] = False
    metrics: ClassVar[tuple[Metric, ...]] = ("macro-f1", "micro-f1", "accuracy")
    draws: ClassVar[str] = "stratified by class"
    baseline: ClassVar[str] = "majority class"

    @property
    def classes(self) -> tuple[str, ...]:
        return self.labels + self.unseen

    @property
    def probable(self) -> tuple[str, ...]:
        return self.labels

    @property
    def head(self) -> HeadShape:
        return HeadShape("sequence-classification", self.labels)

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        return text_of(text), class_name(label, report)

    def fitted(
        self, labels: Sequence[Label], source: str, option: str, report: ReadReport
    ) -> "SingleLabel":
        found = tuple(sorted({str(label) for label in labels}))
        if len(found) < 2:
            raise DataError(
                f"{source}: every example has the label {found[0]!r}. A classifier needs "
                f"examples of at least two classes; does {option} name the right column?"
            )
        refuse_too_many(found, len(labels), source, option)
        note_look_alikes(source, found, report)
        return replace(self, labels=found)

    def names(self, label: Label) -> tuple[str, ...]:
        return (str(label),)

    def knowing(self, unseen: Sequence[str]) -> "SingleLabel":
        return replace(self, unseen=tuple(unseen))

    def strata(self, labels: Sequence[Label]) -> list[str]:
        return [str(label) for label in labels]

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        ids: Mapping[Any, int] = {label: i for i, label in enumerate(self.classes)}
        try:
            # A missing label is a missing key as well.
            return EncodedLabels(rows=torch.tensor([ids[label] for label in labels]))
        except KeyError as error:
            raise unknown_class(error.args[0], self.labels, source) from None

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        known = labels < logits.shape[-1]
        losses = functional.cross_entropy(
            logits, labels.where(known, _NO_CLASS), ignore_index=_NO_CLASS, reduction="none"
        )
        return RowLosses(losses, known.to(losses.dtype))

    def tuned(self, labels: Tensor, logits: Tensor, metric: Metric) -> "SingleLabel":
        return self

    def settings(self) -> Mapping[str, float]:
        return {}

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        return scores(labels.tolist(), logits.argmax(dim=-1).tolist())

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        return resampled_scores(labels, logits.argmax(dim=-1), counts)

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        truth, predicted = labels.tolist(), logits.argmax(dim=-1).tolist()
        count = len(self.classes)
        rates = per_class(truth, predicted, count)
        matrix = confusion(truth, predicted, count) if count <= MOST_CONFUSED else ()
        return Errors(dict(zip(self.classes, rates, strict=True)), matrix)

    def counts(self, labels: Tensor) -> dict[str, int]:
        counted = Counter(labels.tolist())
        return {label: counted[i] for i, label in enumerate(self.classes)}

    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        return majority_scores(train.tolist(), labels.tolist())

    def finish(self, model: Any) -> None:
        """Does nothing: transformers' own softmax over the classes is right."""

    def undo_finish(self, model: Any, config: Any) -> str | None:
        return None

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        shares = logits.float().softmax(dim=-1)
        return [
            Decoded(
                self.labels[int(row.argmax())], dict(zip(self.labels, row.tolist(), strict=True))
            )
            for row in shares.cpu()
        ]


ONE_CLASS = SingleLabel()
"""The kind before its classes are known; it reads cells."""
