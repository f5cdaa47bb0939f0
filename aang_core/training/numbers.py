"""How steps with a NaN or infinite loss or gradient are handled."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aang_core.errors import NumericalError
from aang_core.gradients.ledger import GradientStatistics
from aang_core.tasks.saved import saved_count

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
