"""The gradient of a step, made again where memory runs out or half precision is too narrow."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, get_args

import torch
from torch import Tensor, nn

from aang_core.errors import OutOfMemoryError
from aang_core.gradients import GradientEngine, GradientStatistics, Segment
from aang_core.tasks.task import Batch
from aang_core.tasks.weighting import Signal, StepSignals
from aang_core.training.draws import Draws, Moment
from aang_core.training.memory import free, in_a_line, is_out_of_memory
from aang_core.training.numbers import problem_of

_EVERY_SIGNAL: frozenset[Signal] = frozenset(get_args(Signal))

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StepRows:
    """The rows of one step. dev: to measure against; None for a step that measures nothing."""

    end: Segment
    auxiliaries: Sequence[Segment]
    dev: Sequence[Batch] | None


@dataclass(frozen=True)
class StepGradient:
    """What was measured while the gradient of a step was made, which now lies in ``.grad``.

    problem: what is wrong with the numbers; None if they are good.
    """

    statistics: GradientStatistics | None
    values: Sequence[float]
    problem: str | None

    def signals(self, wanted: frozenset[Signal]) -> StepSignals | None:
        """The signals that are wanted; None if nothing was measured."""
        return None if self.statistics is None else self.statistics.selected(self.values, wanted)


@dataclass(frozen=True)
class Point:
    """Where a step begins: its draws, and the dev head's memory."""

    draws: Moment
    dev_head: Mapping[str, Tensor]


class Clips(Protocol):
    """What a gradient is made for."""

    def clip(self) -> Tensor:
        """Clip the gradient; the norm that it had, a scalar."""
        ...


class GradientMaker:
    """Makes the gradients of steps with an engine, from rows that are drawn.

    most_rows: as many as would go through the body in one pass without a limit.
    least_rows: as many as have to stay together, for the sake of the task ``sake``.
    drop: forgets a gradient that is of no use.
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
        drop: Callable[[], None],
    ) -> None:
        self._body = body
        self._engine = engine
        self._draws = draws
        self._most_rows = most_rows
        self._least_rows = least_rows
        self._sake = sake
        self._drop = drop

    def make(self, rows: Callable[[], StepRows], training: Clips, step: int) -> StepGradient:
        """Draw the rows of a step and leave their gradient, clipped, for ``training``.

        Where memory runs out it is made again with fewer rows at once, where half precision may be
        what is wrong, at a smaller scale. The rows are the same again, and so is all that is drawn
        for them.

        step: its number, for messages.

        Raises:
            OutOfMemoryError: it does not do for one row at a time.
        """
        point = self.point()
        while True:
            reason = None
            try:
                drawn, statistics = self._attempt(rows)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                reason = in_a_line(error)
            else:
                made = self._judged(drawn, statistics, training)
                if made.problem is None:
                    return made
                if not self._engine.scale.halve():
                    # Nothing is learned from this step, so nothing of it is remembered either.
                    self._engine.dev_head.load_state_dict(point.dev_head)
                    return made
            self._drop()
            self.come_back(point)
            if reason is not None:
                # Here, where the error is gone, nothing holds on to the tensors of the attempt.
                free()
                self._halve(reason, step)

    def point(self) -> Point:
        """Where the next step begins."""
        return Point(self._draws.moment(), self._engine.dev_head.state_dict())

    def come_back(self, point: Point) -> None:
        """Make again what was made since."""
        self._draws.come_back(point.draws)
        self._engine.dev_head.load_state_dict(point.dev_head)

    def limit_rows(self, rows: int) -> None:
        """Let at most so many rows through the body at once from now on."""
        self._draws.at_once = rows
        self._engine.limit_rows(rows)

    def _attempt(self, rows: Callable[[], StepRows]) -> tuple[StepRows, GradientStatistics | None]:
        drawn = rows()
        return drawn, self._engine.step(drawn.end, drawn.auxiliaries, drawn.dev)

    def _judged(
        self, drawn: StepRows, statistics: GradientStatistics | None, training: Clips
    ) -> StepGradient:
        norm = training.clip()
        losses = torch.stack([loss.to(norm) for loss in (*self._engine.losses, norm)]).double()
        # The one transfer from the device in a step.
        measures = [] if statistics is None else [statistics.values()]
        numbers = torch.cat([losses, *measures]).tolist()
        *of_tasks, of_gradient = numbers[: len(losses)]
        values = numbers[len(losses) :]
        problem = problem_of(
            self._body,
            [*drawn.auxiliaries, drawn.end],
            of_tasks,
            of_gradient,
            None if statistics is None else statistics.selected(values, _EVERY_SIGNAL),
        )
        return StepGradient(statistics, values, problem)

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
