"""What the trainer, the gradient engines and the weighters know of a task.

A task is anything with a loss over a batch of rows: the end task, an auxiliary objective, or a
module and a loss of the user's own. Nothing here knows of text, stages or plug-ins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from aang_core.errors import DataError


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """``tensor`` on ``device``, without waiting until it is there.

    A copy to CUDA waits for all work on the device unless it comes from pinned memory.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        # torch pins no tensor whose elements share memory, such as an expanded one.
        tensor = tensor.contiguous().pin_memory()
    return tensor.to(device, non_blocking=True)


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
        origin: what the task that made the batch knows about its rows, for tasks that share them;
            it stays on the device where it was made.
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


class Task:
    """A loss over batches of rows, on top of the body that all tasks share; the base class.

    A task has a ``name``, a ``head``, ``__len__``, `batch` and `losses`; the other attributes have
    defaults. `TensorTask` is one over tensors in memory.

    Attributes:
        name: key of the task in weights, checkpoints and reports.
        head: the modules that belong to this task alone.
        factors: what the task is composed of, for weighters that share weight between tasks:
            ``{"transform": "mask", ...}`` for an objective, empty for a task without structure.
        couples_rows: whether a row's loss depends on the other rows, so that they must stay in one
            batch.
        strata: int64 ``[N]``, the class of each row, to draw all classes equally often; None to
            draw every row equally often.
        of_step: whether its rows are those that the end task trains on in the step.

    Examples:
        >>> import torch
        >>> from aang_core import Batch, RowLosses, Task
        >>> class Double(Task):
        ...     name, head, rows = "double", torch.nn.Linear(4, 1), torch.randn(10, 3)
        ...     def __len__(self):
        ...         return len(self.rows)
        ...     def batch(self, rows, generator):
        ...         inputs = self.rows[rows]
        ...         return Batch({"input": inputs}, {"wanted": 2 * inputs[:, 0]}, len(rows))
        ...     def losses(self, head, features, targets):
        ...         losses = (head(features).squeeze(1) - targets["wanted"]).square()
        ...         return RowLosses(losses, torch.ones_like(losses))
        >>> task, body = Double(), torch.nn.Linear(3, 4)
        >>> batch = task.batch(torch.tensor([0, 3]), torch.Generator())
        >>> task.losses(task.head, body(**batch.inputs), batch.targets).counts
        tensor([1., 1.])
    """

    name: str
    head: nn.Module
    factors: Mapping[str, str] = {}
    couples_rows: bool = False
    strata: Tensor | None = None
    of_step: bool = False

    @property
    def lengths(self) -> Tensor | None:
        """int64 ``[N]``, the length of each row; None if all rows are alike.

        Rows of similar length are batched together and need little padding.
        """
        return None

    @property
    def views(self) -> int:
        """Number of rows that the body sees for each row drawn."""
        return 1

    @property
    def shares(self) -> str | None:
        """Tasks with the same key here read the same inputs of the body; None to share with none.

        One forward pass then serves them all.
        """
        return None

    def __len__(self) -> int:
        """Number of rows to draw from, N."""
        raise NotImplementedError

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """The rows with the given indices, int64 ``[B]``; draws only from ``generator``."""
        raise NotImplementedError

    def prepared(self, batch: Batch, generator: torch.Generator) -> Batch:
        """A batch of this task on its device, before its pass through the body.

        A task overrides it for work that takes a pass of its own, such as adversarial noise.
        """
        return batch

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """Losses of rows, computed from the features of the body through ``head``.

        Args:
            head: the task's own head or one of the same shape, such as the dev head.
            features: the body's output for the rows.
            targets: the batch's targets.
        """
        raise NotImplementedError

    def head_reads(self, features: Tensor) -> Tensor:
        """The part of features ``[B, ...]`` that the head reads, which a dev head remembers."""
        return features

    def ride(self, batches: Sequence[Batch], generator: torch.Generator) -> Mapping[str, Tensor]:
        """Targets of this task for the rows of ``batches`` of a task that it `shares` them with.

        The rows of the batches are concatenated, padded to the widest.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class TensorTask(Task):
    """Rows of tensors, a head on the body's features, and a loss per row.

    Attributes:
        name: key of the task in weights, checkpoints and reports.
        head: maps the features of B rows to predictions.
        inputs: keyword arguments of the body, ``[N, ...]`` each.
        targets: ``[N, ...]``.
        loss: maps predictions and targets of B rows to losses ``[B]``.
        factors: what the task shares with others, for the weighter ``factored``.

    Raises:
        DataError: inputs and targets differ in their number of rows, or there are no rows.

    Examples:
        >>> import torch
        >>> from aang_core import TensorTask
        >>> task = TensorTask(
        ...     "sign",
        ...     head=torch.nn.Linear(2, 2),
        ...     inputs={"input": torch.randn(10, 2)},
        ...     targets=torch.zeros(10, dtype=torch.int64),
        ...     loss=torch.nn.CrossEntropyLoss(reduction="none"),
        ... )
        >>> len(task)
        10
    """

    name: str
    head: nn.Module
    inputs: Mapping[str, Tensor]
    targets: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    factors: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {name: len(value) for name, value in self.inputs.items()}
        if not lengths or set(lengths.values()) != {len(self.targets)} or not len(self.targets):
            raise DataError(
                f"task {self.name!r}: inputs have {lengths or 'no'} rows and targets "
                f"{len(self.targets)}; give the same number of each, at least one"
            )

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        inputs = {name: value[rows] for name, value in self.inputs.items()}
        return Batch(inputs, {"targets": self.targets[rows]}, len(rows))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = self.loss(head(features), targets["targets"])
        rows = targets["targets"].shape[:1]
        if losses.shape != rows:
            raise DataError(
                f"task {self.name!r}: its loss has the shape {tuple(losses.shape)} for "
                f"{rows[0]} rows; it must return one number per row, with reduction='none'"
            )
        return RowLosses(losses, torch.ones_like(losses))
