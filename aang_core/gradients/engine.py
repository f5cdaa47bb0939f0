"""The interface of gradient engines."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.ledger import GradientStatistics
from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.segments import Segment
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch


class GradientEngine(Protocol):
    """Computes the gradient of a step and, in the same passes, each task's statistics against v.

    Attributes:
        splits_rows: whether a task's rows should come in several batches if that saves padding. An
            engine that runs the rows of all tasks together gains nothing from it.
        processes: the processes that share a step. Rows of the end task and of dev should come in
            at least as many batches.
        dev_head: the head that the dev gradient goes through.
        scale: that of the engine's `Passes`. Every gradient of a loss that passes through
            ``Passes.losses`` or `rider_loss` goes through ``scale.off(gradient)``.
        losses: scalars on the device, for the tasks of the last step in the order of `members_of`
            over the auxiliary segments and, last, the end task's.
    """

    splits_rows: bool
    processes: Processes
    dev_head: DevHead
    scale: LossScale
    losses: Sequence[Tensor]

    def limit_rows(self, rows: int) -> None:
        """From now on, run at most ``rows`` rows of all tasks in one pass, to save memory.

        The rows of a task with more than that must come in several batches.
        """
        ...

    def step(
        self,
        end: Segment,
        auxiliaries: Sequence[Segment],
        dev: Sequence[Batch] | None,
        *,
        norms: bool = False,
    ) -> GradientStatistics | None:
        """Leave Σ coefficient · ∇loss in ``.grad`` of every parameter of the body and the heads.

        ``.grad`` is empty when it is called. It fits the dev head and tells it of the segments that
        it shall remember, as `StreamEngine.step` does.

        Args:
            end: the end task's rows.
            auxiliaries: the auxiliary tasks' rows.
            dev: rows of the end task's dev set to measure against; None for a step without v, which
                fits no dev head.
            norms: measure ‖g_k‖ without dev rows, too.

        Returns:
            The statistics; None without dev rows and ``norms``.
        """
        ...
