"""What the trainer, the gradient engines and the weighters know of a task.

A task is anything with a loss over a batch of rows: the end task, an auxiliary objective, or a
module and a loss of the user's own. Nothing here knows of text, stages or plug-ins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

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
    origin: what the task that made the batch knows of its rows, for tasks that share them; it stays
        where it was made.
    numbers: which rows of the task these are, int64 ``[rows]`` on the CPU, where that is known.
    """

    inputs: Mapping[str, Tensor]
    targets: Mapping[str, Tensor]
    rows: int
    origin: Any = None
    numbers: Tensor | None = None

    def to(self, device: torch.device) -> "Batch":
        """The same batch on ``device``; copies nothing that is already there."""
        return Batch(
            {name: value.to(device, non_blocking=True) for name, value in self.inputs.items()},
            {name: value.to(device, non_blocking=True) for name, value in self.targets.items()},
            self.rows,
            self.origin,
            self.numbers,
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


@runtime_checkable
class SharingTask(Protocol):
    """A task whose rows other tasks may read as well, so that one forward pass serves them all.

    shares: tasks of the same name here read the same inputs of the body; None for a task that
        shares with nobody.
    of_step: whether its rows are those that the end task trains on in the step.
    """

    @property
    def shares(self) -> str | None: ...

    @property
    def of_step(self) -> bool: ...

    def ride(self, batches: Sequence[Batch], generator: torch.Generator) -> Mapping[str, Tensor]:
        """This task's targets for the rows of ``batches``, which another task has made.

        The rows count one batch behind the other, as wide as the widest of them.
        """
        ...


def shares_of(task: Task) -> str | None:
    """What ``task`` shares its rows under; None if it shares with nobody.

    A task says so with an attribute ``shares``, as :class:`SharingTask` describes it.
    """
    name: str | None = getattr(task, "shares", None)
    return name


def couples_rows(task: Task) -> bool:
    """Whether a row's loss depends on the other rows, so that they must stay in one batch.

    A task says so with an attribute ``couples_rows``; one that says nothing does not.
    """
    return bool(getattr(task, "couples_rows", False))


def views_of(task: Task) -> int:
    """How many rows of the body a task makes of each row that is drawn; an attribute ``views``."""
    return int(getattr(task, "views", 1))


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
