"""The gradient of a step, made again where memory runs out or half precision is too narrow."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn

from aang_core.errors import OutOfMemoryError
from aang_core.gradients import GradientEngine, GradientStatistics
from aang_core.tasks.weighting import Signal, StepSignals, mean_signals
from aang_core.training.draws import Draws
from aang_core.training.memory import free, in_a_line, is_out_of_memory
from aang_core.training.numbers import problem_of
from aang_core.training.optimization import Optimization, Trial
from aang_core.training.step_rows import Plan, StepRows

_EVERY_SIGNAL: frozenset[Signal] = frozenset(get_args(Signal))

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DrawGradient:
    """What was measured while the gradient of one draw was made, which now lies in ``.grad``.

    problem: what is wrong with the numbers; None if they are good.
    """

    statistics: GradientStatistics | None
    values: Sequence[float]
    problem: str | None

    def signals(self, wanted: frozenset[Signal]) -> StepSignals | None:
        """The signals that are wanted; None if nothing was measured."""
        return None if self.statistics is None else self.statistics.selected(self.values, wanted)


@dataclass(frozen=True)
class StepGradient:
    """What was measured in each draw while the gradient of a step was made."""

    draws: Sequence[DrawGradient]

    @property
    def problem(self) -> str | None:
        """What is wrong with the numbers of a draw; None if all are good."""
        return self.draws[-1].problem

    def signals(self, wanted: frozenset[Signal]) -> StepSignals | None:
        """The signals that are wanted, of all draws together; None if nothing was measured."""
        measured = [signals for draw in self.draws if (signals := draw.signals(wanted))]
        return mean_signals(measured) if measured else None


class GradientMaker:
    """Makes the gradients of steps with an engine, from rows that are drawn as plans say.

    most_rows: as many as would go through the body in one pass without a limit.
    least_rows: as many as have to stay together, for the sake of the task ``sake``.
    """

    def __init__(
        self,
        body: nn.Module,
        engine: GradientEngine,
        draws: Draws,
        *,
        most_rows: int,
        least_rows: int = 1,
        sake: str = "",
    ) -> None:
        self._body = body
        self._engine = engine
        self._draws = draws
        self._most_rows = most_rows
        self._least_rows = least_rows
        self._sake = sake

    def make(
        self, plans: Sequence[Plan], training: Optimization | Trial, step: int
    ) -> StepGradient:
        """Leave the mean of the draws' gradients, clipped, in ``.grad``.

        AANG's released code makes a step of four draws. Each has rows of its own and is measured on
        its own, and runs out of memory, or out of the range of half precision, on its own. A draw
        whose numbers are bad ends the step: there is no gradient. Several draws take one more
        buffer of the model's size.

        Args:
            plans: The rows of each draw.
            training: What the gradient is for.
            step: Its number, for messages.

        Raises:
            OutOfMemoryError: The memory is too small for one row at a time.
        """
        if len(plans) == 1:
            return StepGradient([self._draw(plans[0], training, training.clip, step)])
        made: list[DrawGradient] = []
        mean: dict[nn.Parameter, Tensor] = {}
        for plan in plans:
            made.append(self._draw(plan, training, training.norm, step))
            if made[-1].problem is not None:
                return StepGradient(made)
            for parameter in training.parameters:
                if parameter.grad is None:
                    continue
                part = parameter.grad.div_(len(plans))
                parameter.grad = None
                mean[parameter] = mean[parameter].add_(part) if parameter in mean else part
        for parameter, gradient in mean.items():
            parameter.grad = gradient
        training.clip()
        return StepGradient(made)

    def _draw(
        self, plan: Plan, training: Optimization | Trial, norm: Callable[[], Tensor], step: int
    ) -> DrawGradient:
        """Draw the rows of a plan and leave their gradient.

        Where memory runs out it is made again with fewer rows at once, where half precision may be
        what is wrong, at a smaller scale. The rows are the same again, and so is all that is drawn
        for them.
        """
        before = self.state_dict()
        while True:
            reason = None
            try:
                rows = plan.draw(self._draws, self._engine.processes.size)
                statistics = self._engine.step(rows.end, rows.auxiliaries, rows.dev)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                reason = in_a_line(error)
            else:
                made = self._judged(rows, statistics, norm())
                if made.problem is None:
                    return made
                if not self._engine.scale.halve():
                    # Nothing is learned from this step, so nothing of it is remembered either.
                    self._load_dev_head(before)
                    return made
            training.drop()
            self.load_state_dict(before)
            if reason is not None:
                # Here, where the error is gone, nothing holds on to the tensors of the attempt.
                free()
                self._halve(reason, step)

    def state_dict(self) -> dict[str, Any]:
        """Where the next step begins: its draws, and what the dev head remembers."""
        return {
            "draws": self._draws.state_dict(),
            "dev_head": dict(self._engine.dev_head.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` gave: steps made since are made again."""
        self._draws.load_state_dict(state["draws"])
        self._load_dev_head(state)

    def _load_dev_head(self, state: Mapping[str, Any]) -> None:
        device = next(self._body.parameters()).device
        remembered = {name: tensor.to(device) for name, tensor in state["dev_head"].items()}
        self._engine.dev_head.load_state_dict(remembered)

    def limit_rows(self, rows: int) -> None:
        """Let at most so many rows through the body at once from now on."""
        self._draws.at_once = rows
        self._engine.limit_rows(rows)

    def _judged(
        self, rows: StepRows, statistics: GradientStatistics | None, norm: Tensor
    ) -> DrawGradient:
        losses = torch.stack([loss.to(norm) for loss in (*self._engine.losses, norm)]).double()
        # The one transfer from the device in a step.
        measures = [] if statistics is None else [statistics.values()]
        numbers = torch.cat([losses, *measures]).tolist()
        *of_tasks, of_gradient = numbers[: len(losses)]
        values = numbers[len(losses) :]
        problem = problem_of(
            self._body,
            [*rows.auxiliaries, rows.end],
            of_tasks,
            of_gradient,
            None if statistics is None else statistics.selected(values, _EVERY_SIGNAL),
        )
        return DrawGradient(statistics, values, problem)

    def _halve(self, reason: str, step: int) -> None:
        """Let half as many rows through the body at once.

        Raises:
            OutOfMemoryError: it is one row already.
        """
        now = self._draws.at_once or self._most_rows
        if self._engine.processes.size > 1:
            raise OutOfMemoryError(
                f"step {step}: not enough memory ({reason}). Several processes take every step "
                "together, so none can take smaller bites alone: give --micro-batch-size"
            )
        if now == 1:
            raise OutOfMemoryError(
                f"step {step}: not enough memory for one row at a time ({reason}). Give the run "
                "more, or take a smaller --model or --max-length"
            )
        if now // 2 < self._least_rows:
            raise OutOfMemoryError(
                f"step {step}: not enough memory ({reason}), and {self._sake} needs "
                f"{self._least_rows} rows in one pass. Lower --batch-size or --aux-batch-size, "
                "give --save-memory, or leave the objective out"
            )
        self.limit_rows(now // 2)
        _log.warning(
            "step %d: not enough memory (%s); the same rows again, at most %d at once from now on",
            *(step, reason, now // 2),
        )
