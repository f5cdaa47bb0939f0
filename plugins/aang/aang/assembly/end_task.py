"""The end task: the user's labels, predicted from the uncorrupted text.

Classes of unequal size may be weighted in its loss, or be drawn equally often.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from aang.config import TrainConfig
from aang.config.values import BALANCED
from aang.corpora.tokens import PaddedRows, TokenRows
from aang.task_types.task_type import TaskType
from aang_core.errors import ConfigError
from aang_core.gradients.dev_head import first_token
from aang_core.plugins.registry import did_you_mean
from aang_core.tasks.task import Batch, RowLosses, Task
from aang_core.tasks.workbench import END_TASK


@dataclass(eq=False)
class EndTask(Task):
    """Predicts the user's labels from the uncorrupted text.

    Attributes:
        rows: tokenised and labelled rows of the training set or the dev set.
        head: the end task's head, hidden states ``[B, T, H]`` → logits ``[B, C]`` or ``[B, T, C]``.
        task_type: the kind of task.
        label_losses: the loss of labels, given what the head computes.
        strata: int64 ``[N]``, the class of each row, to draw all classes equally often; None to
            draw all rows equally often.
    """

    name = END_TASK
    shares = END_TASK

    rows: TokenRows
    head: nn.Module
    task_type: TaskType
    label_losses: Callable[[Tensor, Tensor], RowLosses]
    strata: Tensor | None = None

    @property
    def lengths(self) -> Tensor:
        return self.rows.lengths

    def head_reads(self, features: Tensor) -> Tensor:
        """The part of hidden states ``[B, T, H]`` that the head reads: the first token, or all."""
        return features if self.task_type.reads_every_token else first_token(features)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        padded = self.rows.rows(rows)
        labels = padded.token_labels if padded.labels is None else padded.labels
        if labels is None:
            raise ValueError("the end task needs labelled rows")
        inputs = encoder_inputs(padded, padded.real)
        return Batch(inputs, {"labels": labels}, len(padded.ids), origin=padded)

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        return self.label_losses(head(features), targets["labels"])


def encoder_inputs(rows: PaddedRows, attention: Tensor) -> dict[str, Tensor]:
    """The encoder's keyword arguments for rows ``[B, T]``.

    Args:
        rows: padded rows.
        attention: the attention mask, bool ``[B, T]`` or ``[B, T, T]``.
    """
    inputs = {"input_ids": rows.ids, "attention_mask": attention}
    if rows.token_types is not None:
        inputs["token_type_ids"] = rows.token_types
    return inputs


def class_weights(
    config: TrainConfig, labels: Sequence[str], train: TokenRows
) -> dict[str, float] | None:
    """The weight of each class in the end task's loss; None without ``--class-weights``.

    Only ratios matter, so they are scaled until the smallest is one. ``balanced`` weighs a class by
    the inverse of its number of training rows.

    Args:
        config: the run's options.
        labels: the classes.
        train: the training rows.

    Raises:
        ConfigError: a class is unknown, or the end task has no single class per row.
    """
    if config.class_weights is None:
        return None
    ids = _single_classes(train, "--class-weights")
    if config.class_weights == BALANCED:
        counts = torch.bincount(ids, minlength=len(labels)).clamp(min=1).tolist()
        weights = {label: 1 / count for label, count in zip(labels, counts, strict=True)}
    else:
        for name in config.class_weights:
            if name not in labels:
                hint = did_you_mean(name, labels, "the classes are")
                raise ConfigError(f"--class-weights {name}=…: there is no class {name!r}; {hint}")
        weights = {label: config.class_weights.get(label, 1.0) for label in labels}
    smallest = min(weights.values())
    return {label: weight / smallest for label, weight in weights.items()}


def strata(config: TrainConfig, train: TokenRows) -> Tensor | None:
    """The class of each training row, int64 ``[N]``, for ``--balanced-rows``; None without it.

    Raises:
        ConfigError: the end task has no single class per row.
    """
    return _single_classes(train, "--balanced-rows") if config.balanced_rows else None


def _single_classes(train: TokenRows, option: str) -> Tensor:
    labels = train.labels
    if labels is None or labels.dim() != 1 or labels.dtype != torch.int64:
        raise ConfigError(
            f"{option}: is for end tasks with one class per row, and this one has none; leave it "
            "out"
        )
    return labels
