"""What every gradient engine takes and gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.signals import GradientStatistics
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch, Task


@dataclass(frozen=True)
class Rider:
    """A task that shares the rows of another and reads what the body makes of them.

    targets: of the rows of all batches, one batch behind the other, for features that are padded to
        the longest of them (:func:`aang_core.gradients.passes.joined`).
    coefficient: of its loss.
    """

    task: Task
    targets: Mapping[str, Tensor]
    coefficient: float


@dataclass(frozen=True)
class Segment:
    """One task's rows in a step, in batches that are padded alike, and its loss's coefficient.

    riders: further tasks on the same rows. Their forward pass through the body is the one that the
        segment's own task needs.
    remember: whether the dev head observes what the body makes of these rows.
    """

    task: Task
    batches: Sequence[Batch]
    coefficient: float
    riders: Sequence[Rider] = ()
    remember: bool = False

    @property
    def members(self) -> Sequence["Rider | Segment"]:
        """Every task of the segment, in the order in which engines list them: its own is last."""
        return (*self.riders, self)


def members_of(segments: Sequence[Segment]) -> list["Rider | Segment"]:
    """Every task of several segments, in their order."""
    return [member for segment in segments for member in segment.members]


class GradientEngine(Protocol):
    """Makes the gradient of a step and, on the way, every task's statistics against v.

    splits_rows: whether rows of a task should come in several batches where that saves padding. An
        engine that puts the rows of all tasks together gains nothing by it.
    processes: those that share a step. Rows of the end task and of dev should come in at least as
        many batches, so that they can.
    dev_head: the head that the dev gradient goes through.
    scale: what half precision multiplies losses by; the gradients left are the true ones.
    losses: of the last step's tasks on the device, in the order of :func:`members_of` over the
        auxiliary segments and, last, the end task's.
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
