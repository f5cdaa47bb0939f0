"""A task over tensors in memory: a module and a loss of the user's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from aang_core.errors import DataError
from aang_core.tasks.task import Batch, RowLosses


@dataclass(frozen=True)
class TensorTask:
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

    @property
    def lengths(self) -> None:
        """None: all rows are alike, so none is padded."""
        return

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        inputs = {name: value[rows] for name, value in self.inputs.items()}
        return Batch(inputs, {"targets": self.targets[rows]}, len(rows))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = self.loss(head(features), targets["targets"])
        return RowLosses(losses, torch.ones_like(losses))
