"""The end task: classification of labelled text."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core.corpora.tokens import PaddedRows, TokenRows
from aang_core.tasks.task import Batch, RowLosses

END_TASK = "end-task"
"""The end task's name in weights, checkpoints and reports."""


class EndTask:
    """Predicts the user's labels from the uncorrupted text, with cross-entropy as the loss.

    Args:
        rows: tokenised and labelled rows of the training set or the dev set.
        head: the classifier's head, hidden states ``[B, T, H]`` → logits ``[B, C]``.
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
        *,
        weights: Tensor | None = None,
        strata: Tensor | None = None,
    ) -> None:
        self.rows = rows
        self.head = head
        self.strata = strata
        self._weights = weights

    @property
    def lengths(self) -> Tensor:
        return self.rows.lengths

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        batch = labelled_batch(self.rows.rows(rows))
        if self._weights is None:
            return batch
        weights = self._weights[batch.targets["labels"]]
        return replace(batch, targets={**batch.targets, "weights": weights})

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = functional.cross_entropy(head(features), targets["labels"], reduction="none")
        weights = targets.get("weights")
        if weights is None:
            return RowLosses(losses, torch.ones_like(losses))
        return RowLosses(losses * weights, weights)


def labelled_batch(rows: PaddedRows) -> Batch:
    """Make a batch of padded rows in which every real token attends to every other."""
    if rows.labels is None:
        raise ValueError("the end task needs labelled rows")
    inputs = encoder_inputs(rows, rows.ids, rows.real)
    return Batch(inputs, {"labels": rows.labels}, len(rows.ids), origin=rows)


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
