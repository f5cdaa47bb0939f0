"""What every gradient engine takes and gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.signals import GradientStatistics
from aang_core.processes import Processes
from aang_core.tasks import Batch, Task


@dataclass(frozen=True)
class Segment:
    """One task's rows in a step, in batches that are padded alike, and its loss's coefficient."""

    task: Task
    batches: Sequence[Batch]
    coefficient: float


class GradientEngine(Protocol):
    """Makes the gradient of a step and, on the way, every task's statistics against v.

    splits_rows: whether rows of a task should come in several batches where that saves padding. An
        engine that puts the rows of all tasks together gains nothing by it.
    processes: those that share a step. Rows of the end task and of dev should come in at least as
        many batches, so that they can.
    dev_head: the head that the dev gradient goes through.
    scale: what half precision multiplies losses by; the gradients left are the true ones.
    losses: of the last step's tasks, the auxiliary ones first, on the device.
    """

    splits_rows: bool
    processes: Processes
    dev_head: DevHead
    scale: LossScale
    losses: Sequence[Tensor]

    def limit_rows(self, rows: int) -> None:
        """Spend less memory from now on: at most so many rows of all tasks in one pass.

        A task with more rows than that has to come in several batches.
        """
        ...

    def step(
        self, end: Segment, auxiliaries: Sequence[Segment], dev: Sequence[Batch] | None
    ) -> GradientStatistics | None:
        """Leave Σ coefficient · ∇loss in ``.grad`` of every parameter of the body and the heads.

        dev: rows of the end task's dev set to measure against; None measures nothing, fits no dev
            head and returns None.
        """
        ...
