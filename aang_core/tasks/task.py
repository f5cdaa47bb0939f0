"""What the trainer, the gradient engines and the weighters know of a task.

A task is anything with a loss over a batch of rows: the end task, an auxiliary objective, or a
module and a loss of the user's own. Nothing here knows of text, stages or plug-ins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from aang_core.tasks.moving import to_device


class RowLosses(NamedTuple):
    """The losses of a batch, one per row, so that rows can be regrouped without rounding twice.

    Attributes:
        sums: ``[B]``, for each row the sum of the losses of its targets; differentiable.
        counts: ``[B]``, number of targets of each row, or their total weight; may be zero. Over a
            batch that has targets they sum to at least one.

    Examples:
        >>> import torch
        >>> from aang_core import RowLosses
        >>> RowLosses(torch.tensor([3.0, 0.0]), torch.tensor([2, 0])).mean()
        tensor(1.5000)
    """

    sums: Tensor
    counts: Tensor

    def mean(self) -> Tensor:
        """Mean over all targets of the batch, a scalar; zero without targets."""
        return self.sums.sum() / self.counts.sum().clamp(min=1)

    @classmethod
    def pool(cls, parts: Sequence["RowLosses"]) -> "RowLosses":
        """Concatenate the losses of several batches of one task."""
        return cls(torch.cat([p.sums for p in parts]), torch.cat([p.counts for p in parts]))


@dataclass(frozen=True)
class Batch:
    """Rows ready for the shared body.

    Attributes:
        inputs: keyword arguments of the body; the first dimension of every tensor is ``rows``.
        targets: the tensors that the task's loss needs besides the body's features.
        rows: number of rows, B.
        origin: what the task that made the batch knows of its rows, for tasks that share them; it
            stays on the device where it was made.
        numbers: indices of these rows in the task, int64 ``[rows]`` on the CPU, if known.

    Examples:
        >>> import torch
        >>> from aang_core import Batch
        >>> batch = Batch({"input": torch.ones(2, 3)}, {"label": torch.tensor([0, 1])}, rows=2)
        >>> batch.to(torch.device("cpu")).inputs["input"].shape
        torch.Size([2, 3])
    """

    inputs: Mapping[str, Tensor]
    targets: Mapping[str, Tensor]
    rows: int
    origin: Any = None
    numbers: Tensor | None = None

    def to(self, device: torch.device) -> "Batch":
        """The same batch on ``device``; tensors that are already there are not copied."""
        return Batch(
            {name: to_device(value, device) for name, value in self.inputs.items()},
            {name: to_device(value, device) for name, value in self.targets.items()},
            self.rows,
            self.origin,
            self.numbers,
        )


class Task(Protocol):
    """A loss over batches of rows, on top of the body that all tasks share.

    `TensorTask` is one over tensors in memory.

    Attributes:
        name: key of the task in weights, checkpoints and reports.
        factors: what the task is composed of, for weighters that share weight between tasks:
            ``{"transform": "mask", ...}`` for an objective, empty for a task without structure.
        head: the modules that belong to this task alone.
        lengths: int64 ``[N]``, the length of each row, so that rows of similar length are batched
            together and need little padding. None if all rows are alike.

    Examples:
        >>> import torch
        >>> from aang_core import Task, TensorTask
        >>> task: Task = TensorTask(
        ...     "sign",
        ...     torch.nn.Linear(2, 2),
        ...     {"input": torch.randn(10, 2)},
        ...     torch.zeros(10, dtype=torch.int64),
        ...     torch.nn.CrossEntropyLoss(reduction="none"),
        ... )
        >>> batch = task.batch(torch.tensor([0, 3]), torch.Generator())
        >>> task.losses(task.head, batch.inputs["input"], batch.targets).counts
        tensor([1., 1.])
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
        """Number of rows to draw from, N."""
        ...

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """The rows with the given indices, int64 ``[B]``; draws only from ``generator``."""
        ...

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """Losses of rows, computed from the features of the body through ``head``.

        Args:
            head: the task's own head or one of the same shape, such as the dev head.
            features: the body's output for the rows.
            targets: the batch's targets.
        """
        ...


@runtime_checkable
class SharingTask(Protocol):
    """A task whose rows other tasks may read too, so that one forward pass serves them all.

    Attributes:
        shares: tasks with the same name here read the same inputs of the body; None for a task that
            shares its rows with no other.
        of_step: whether its rows are those that the end task trains on in the step.
    """

    @property
    def shares(self) -> str | None: ...

    @property
    def of_step(self) -> bool: ...

    def ride(self, batches: Sequence[Batch], generator: torch.Generator) -> Mapping[str, Tensor]:
        """This task's targets for the rows of ``batches``, which another task has made.

        The rows of the batches are concatenated, padded to the widest.
        """
        ...


def shares_of(task: Task) -> str | None:
    """The name under which ``task`` shares its rows; None if it shares them with no other.

    A task declares it with an attribute ``shares``; see `SharingTask`.
    """
    name: str | None = getattr(task, "shares", None)
    return name


def couples_rows(task: Task) -> bool:
    """Whether a row's loss depends on the other rows, so that they must stay in one batch.

    A task declares it with an attribute ``couples_rows``; the default is False.
    """
    return bool(getattr(task, "couples_rows", False))


def views_of(task: Task) -> int:
    """Number of rows that the body sees for each row drawn: the task's ``views``, 1 by default."""
    return int(getattr(task, "views", 1))


def strata_of(task: Task) -> Tensor | None:
    """The class of each row, int64 ``[N]``, if classes are to be drawn equally often; else None.

    A task declares it with an attribute ``strata``; the default draws every row equally often.
    """
    strata: Tensor | None = getattr(task, "strata", None)
    return strata


class RowSubset:
    """Some rows of a task as a task of their own, with the same name and head.

    Args:
        task: the full task.
        rows: int64 indices of its rows.
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
