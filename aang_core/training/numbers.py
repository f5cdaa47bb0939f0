"""How steps with a NaN or infinite loss or gradient are handled."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from aang_core.errors import NumericalError
from aang_core.gradients import Rider, Segment, members_of
from aang_core.gradients.passes import Passes
from aang_core.gradients.task_gradient import mean_gradient, rider_gradient
from aang_core.tasks.saved import saved_count
from aang_core.tasks.signals import StepSignals
from aang_core.training.buffers import KeptBuffers, saved_places
from aang_core.training.memory import is_out_of_memory

OnNan = Literal["stop", "skip"]

MOST_IN_A_ROW = 10
"""Training stops at this many skipped steps in a row, because it has diverged."""

_log = logging.getLogger(__name__)


class NumberPolicy:
    """Stops at the first step with bad numbers, or skips such steps and counts them.

    Args:
        on_nan: ``"stop"`` or ``"skip"``.

    Attributes:
        skipped: number of steps skipped so far.
    """

    def __init__(self, on_nan: OnNan) -> None:
        self.skipped = 0
        self._on_nan = on_nan
        self._in_a_row = 0

    def good(self) -> None:
        """Record a step with finite numbers."""
        self._in_a_row = 0

    def bad(self, step: int, problem: str) -> None:
        """Record a step with bad numbers; returns if the step is to be skipped.

        Args:
            step: the number of the step.
            problem: what is wrong with it.

        Raises:
            NumericalError: bad numbers stop this training, or too many steps in a row were skipped.
        """
        if self._on_nan == "stop":
            raise NumericalError(
                f"step {step}: {problem}. Nothing was learned from this step. Lower the learning "
                "rate, leave the objective out, or leave out such steps with --on-nan skip"
            )
        self.skipped += 1
        self._in_a_row += 1
        if self._in_a_row >= MOST_IN_A_ROW:
            raise NumericalError(
                f"step {step}: {problem}. It is the {MOST_IN_A_ROW}th step in a row that would be "
                "left out: training has diverged; lower the learning rate or leave the objective "
                "out"
            )
        _log.warning("step %d is left out: %s", step, problem)

    def state_dict(self) -> dict[str, int]:
        """The counts, for checkpoints."""
        return {"skipped": self.skipped, "in_a_row": self._in_a_row}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore saved counts.

        Raises:
            SavedStateError: they are no such counts.
        """
        self.skipped = saved_count(state, "skipped")
        self._in_a_row = saved_count(state, "in_a_row", most=MOST_IN_A_ROW)


@dataclass(frozen=True)
class Problem:
    """What is wrong with the numbers of a step.

    Attributes:
        words: a description, as far as the numbers tell.
        of_loss: whether a loss is not finite; losses are the same at every loss scale.
        unnamed: tasks one of which may have a gradient that is not finite.
    """

    words: str
    of_loss: bool = False
    unnamed: Sequence[Segment] = ()

    def in_words(self, body: nn.Module) -> str:
        """Describe the problem, naming the task whose gradient is not finite, if there is one.

        Naming it takes passes in fp32 over the rows of the step. If memory runs out, no task is
        named. Buffers stay as they are.

        Args:
            body: the module that all tasks share.
        """
        heads = [member.task.head for member in members_of(self.unnamed)]
        buffers = KeptBuffers(saved_places([body, *heads]))
        try:
            for segment in self.unnamed:
                for member in segment.members:
                    if not _has_finite_gradient(body, segment, member):
                        return f"the gradient of {member.task.name} is not finite"
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        finally:
            buffers.restore()
        return self.words


def problem_of(
    segments: Sequence[Segment],
    losses: Sequence[float],
    norm: float,
    measured: StepSignals | None,
) -> Problem | None:
    """What is wrong with the numbers of a step.

    Args:
        segments: the tasks of the step, the end task last.
        losses: loss of every task of ``segments``.
        norm: norm of the gradient over all parameters.
        measured: every statistic of the step; None if it measured nothing.

    Returns:
        The problem; None if all numbers are finite.
    """
    members = members_of(segments)
    for member, loss in zip(members, losses, strict=True):
        if not math.isfinite(loss):
            return Problem(f"the loss of {member.task.name} is {loss}", of_loss=True)
    if measured is not None:
        for name in measured.norm:
            if not math.isfinite(measured.norm[name]):
                return Problem(f"the gradient of {name} is not finite")
        if measured.dev_norm is not None and not math.isfinite(measured.dev_norm):
            return Problem(f"the gradient of {segments[-1].task.name} on dev rows is not finite")
        sums = (*measured.dot.values(), measured.auxiliary["dot"], measured.auxiliary["norm"])
        if not all(map(math.isfinite, sums)):
            return Problem("the gradients are so large that their products are not finite")
    if math.isfinite(norm):
        return None
    names = ", ".join(member.task.name for member in members)
    return Problem(f"the gradient of {names} together is not finite", unnamed=segments)


def _has_finite_gradient(body: nn.Module, segment: Segment, member: Rider | Segment) -> bool:
    parameters = dict.fromkeys(
        p for m in (body, member.task.head) for p in m.parameters() if p.requires_grad
    )
    passes = Passes(body, "fp32")
    if isinstance(member, Rider):
        features = [passes.features(batch) for batch in segment.batches]
        gradient, _ = rider_gradient(passes, member, features, list(parameters))
    else:
        gradient, _ = mean_gradient(
            passes, segment.task, segment.task.head, segment.batches, list(parameters)
        )
    return all(bool(torch.isfinite(part).all()) for part in gradient.values())
