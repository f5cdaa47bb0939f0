"""The numbers of steps: means for logs and weighter, and what to do if they are not finite."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aang_core.errors import NumericalError
from aang_core.gradients.ledger import GradientStatistics

OnNan = Literal["stop", "skip"]

MOST_IN_A_ROW = 10
"""Training stops at this many skipped steps in a row, because it has diverged."""

_log = logging.getLogger(__name__)


class NumberPolicy:
    """Stops at the first step with NaN or infinite numbers, or skips such steps and counts them.

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
        """Restore saved counts."""
        self.skipped, self._in_a_row = state["skipped"], state["in_a_row"]


def problem_of(
    losses: Mapping[str, float],
    norm: float,
    statistics: GradientStatistics | None = None,
    values: Sequence[float] = (),
) -> str | None:
    """What is wrong with the numbers of a step.

    Args:
        losses: of every task of the step, by name; the end task is last.
        norm: norm of the gradient over all parameters.
        statistics: what the step measured; None if it measured nothing.
        values: the numbers of ``statistics``, on the host.

    Returns:
        The problem; None if all numbers are finite.
    """
    if math.isfinite(norm) and all(map(math.isfinite, (*losses.values(), *values))):
        return None
    for name, loss in losses.items():
        if not math.isfinite(loss):
            return f"the loss of {name} is {loss}"
    if statistics is not None:
        tasks = len(statistics.tasks)
        for name, length in zip(statistics.tasks, values[tasks:], strict=False):
            if not math.isfinite(length):
                return f"the gradient of {name} is not finite"
        if not math.isfinite(values[-1]):
            return f"the gradient of {statistics.tasks[-1]} on dev rows is not finite"
        if not all(map(math.isfinite, values)):
            return "the gradients are so large that their products are not finite"
    together = " together" if len(losses) > 1 else ""
    return f"the gradient of {', '.join(losses)}{together} is not finite"


class LossMeans:
    """The mean of each task's training loss over the steps that included the task.

    A step's loss of a task is the mean over the targets of its rows, before the update and without
    the task's coefficient. Steps that were skipped do not count, nor does a loss of exactly zero,
    which is that of rows without targets.

    Examples:
        >>> losses = LossMeans()
        >>> losses.add({"end-task": 0.5, "a": 3.0})
        >>> losses.add({"end-task": 0.25})
        >>> losses.means()
        {'end-task': 0.375, 'a': 3.0}
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._steps: dict[str, int] = {}

    def add(self, losses: Mapping[str, float]) -> None:
        """Include the losses of one step, by task."""
        for name, loss in losses.items():
            self._sums[name] = self._sums.get(name, 0.0) + loss
            self._steps[name] = self._steps.get(name, 0) + (loss != 0)

    def include(self, other: "LossMeans") -> None:
        """Include all steps of ``other``."""
        for name, total in other._sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + total
            self._steps[name] = self._steps.get(name, 0) + other._steps[name]

    def means(self) -> dict[str, float]:
        """The mean loss of each task that any step included."""
        return {name: total / max(1, self._steps[name]) for name, total in self._sums.items()}

    def state_dict(self) -> dict[str, Any]:
        """The sums and the numbers of steps, as values that JSON can hold."""
        return {"sums": dict(self._sums), "steps": dict(self._steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self._sums, self._steps = dict(state["sums"]), dict(state["steps"])
