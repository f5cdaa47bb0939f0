"""What the trainer, the gradient engines and the weighters know of a task.

A task is anything with a loss over a batch of rows: the end task, an auxiliary objective, or a
module and a loss of the user's own. Nothing here knows of text, stages or plug-ins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn


class RowLosses(NamedTuple):
    """Losses of a batch, kept apart by row so that rows can be regrouped without rounding twice.

    sums: ``[B]``, for each row the sum of the losses of its targets; differentiable.
    counts: ``[B]``, how many targets each row has; may be zero.
    """

    sums: Tensor
    counts: Tensor

    def mean(self) -> Tensor:
        """Mean over all targets of the batch, a scalar; zero if there is none."""
        return self.sums.sum() / self.counts.sum().clamp(min=1)

    @classmethod
    def pool(cls, parts: Sequence["RowLosses"]) -> "RowLosses":
        """The losses of several batches of one task as those of one."""
        return cls(torch.cat([p.sums for p in parts]), torch.cat([p.counts for p in parts]))


@dataclass(frozen=True)
class Batch:
    """Rows ready for the shared body.

    inputs: keyword arguments of the body; the first dimension of every tensor is ``rows``.
    targets: whatever the task's loss needs besides the body's features, in a form of its own.
    """

    inputs: Mapping[str, Tensor]
    targets: Mapping[str, Tensor]
    rows: int

    def to(self, device: torch.device) -> "Batch":
        """The same batch on ``device``; copies nothing that is already there."""
        return Batch(
            {name: value.to(device, non_blocking=True) for name, value in self.inputs.items()},
            {name: value.to(device, non_blocking=True) for name, value in self.targets.items()},
            self.rows,
        )


class Task(Protocol):
    """A loss over batches of rows, on top of the body that all tasks share.

    name: key of the task in weights, checkpoints and reports.
    factors: what the task is composed of, for weighters that share weight between tasks:
        ``{"transform": "mask", ...}`` for an objective, empty for a task without structure.
    head: the modules that belong to this task alone.
    lengths: int64 ``[rows]``, how much padding a row shares a batch with: rows of like length are
        batched together. None if all rows are alike.
    """

    @property
    def name(self) -> str: ...

    @property
    def factors(self) -> Mapping[str, str]: ...

    @property
    def head(self) -> nn.Module: ...

    @property
    def lengths(self) -> Tensor | None: ...

    def __len__(self) -> int:
        """Number of rows there are to draw from."""
        ...

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """The rows with the given indices, int64 ``[B]``; draws only from ``generator``."""
        ...

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """Losses of rows whose features the body has computed, through ``head``.

        ``head`` is the task's own or one of the same shape, such as the dev head.
        """
        ...


class RowSubset:
    """Some rows of a task as a task of their own, with the same name and head.

    rows: int64 indices of the rows of ``task``.
    """

    def __init__(self, task: Task, rows: Tensor) -> None:
        self._task = task
        self._rows = rows

    @property
    def name(self) -> str:
        return self._task.name

    @property
    def factors(self) -> Mapping[str, str]:
        return self._task.factors

    @property
    def head(self) -> nn.Module:
        return self._task.head

    @property
    def lengths(self) -> Tensor | None:
        lengths = self._task.lengths
        return None if lengths is None else lengths[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        return self._task.batch(self._rows[rows], generator)

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        return self._task.losses(head, features, targets)
