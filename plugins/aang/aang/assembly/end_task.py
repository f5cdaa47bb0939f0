"""The end task: the user's labels, predicted from the uncorrupted text."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from aang.corpora.tokens import PaddedRows, TokenRows
from aang.task_types.task_type import TaskType
from aang_core.gradients import first_token
from aang_core.tasks.names import END_TASK
from aang_core.tasks.task import Batch, RowLosses


class EndTask:
    """Predicts the user's labels from the uncorrupted text.

    Args:
        rows: tokenised and labelled rows of the training set or the dev set.
        head: the end task's head, hidden states ``[B, T, H]`` → logits ``[B, C]`` or ``[B, T, C]``.
        task_type: the kind of task, which has the loss.
        weights: ``[C]``, the weight of each class, the smallest of them one; None for equal ones.
            The loss is then Σ w_y · loss / Σ w_y over the rows, whatever batches they come in.
        strata: int64 ``[N]``, the class of each row, to draw all classes equally often; None to
            draw all rows equally often.
    """

    name = END_TASK
    factors: Mapping[str, str] = {}
    shares = END_TASK

    def __init__(
        self,
        rows: TokenRows,
        head: nn.Module,
        task_type: TaskType,
        *,
        weights: Tensor | None = None,
        strata: Tensor | None = None,
    ) -> None:
        self.rows = rows
        self.head = head
        self.task_type = task_type
        self.strata = strata
        self._weights = weights

    @property
    def lengths(self) -> Tensor:
        return self.rows.lengths

    def head_reads(self, features: Tensor) -> Tensor:
        """The part of hidden states ``[B, T, H]`` that the head reads: the first token, or all."""
        return features if self.task_type.reads_every_token else first_token(features)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        batch = labelled_batch(self.rows.rows(rows))
        if self._weights is None:
            return batch
        weights = self._weights[batch.targets["labels"]]
        return replace(batch, targets={**batch.targets, "weights": weights})

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        found = self.task_type.losses(head(features), targets["labels"])
        weights = targets.get("weights")
        if weights is None:
            return found
        return RowLosses(found.sums * weights, found.counts * weights)


def labelled_batch(rows: PaddedRows) -> Batch:
    """Make a batch of padded rows in which every real token attends to every other."""
    labels = rows.token_labels if rows.labels is None else rows.labels
    if labels is None:
        raise ValueError("the end task needs labelled rows")
    inputs = encoder_inputs(rows, rows.ids, rows.real)
    return Batch(inputs, {"labels": labels}, len(rows.ids), origin=rows)


def encoder_inputs(rows: PaddedRows, ids: Tensor, attention: Tensor) -> dict[str, Tensor]:
    """The encoder's keyword arguments for ``rows`` with their ids replaced.

    Args:
        rows: padded rows.
        ids: token ids, int64 ``[B, T]``.
        attention: the attention mask, bool ``[B, T]`` or ``[B, T, T]``.
    """
    inputs = {"input_ids": ids, "attention_mask": attention}
    if rows.token_types is not None:
        inputs["token_type_ids"] = rows.token_types
    return inputs
