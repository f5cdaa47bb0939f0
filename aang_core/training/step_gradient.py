"""The gradient of a step, repeated if memory runs out or half precision overflows."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, get_args

import torch
from torch import Tensor, nn

from aang_core.errors import OutOfMemoryError
from aang_core.gradients import GradientEngine, GradientStatistics, members_of
from aang_core.tasks.saved import saved_part, wrong
from aang_core.tasks.signals import Signal, StepSignals, mean_signals
from aang_core.training.buffers import KeptBuffers, saved_places
from aang_core.training.draws import Draws
from aang_core.training.losses import LossMeans
from aang_core.training.memory import free, in_a_line, is_out_of_memory
from aang_core.training.numbers import Problem, problem_of
from aang_core.training.optimization import Optimization, Trial
from aang_core.training.step_rows import Plan, StepRows
from aang_core.training.task_gradients import TaskGradients, gradients_of_each

Following = Callable[[], Iterable[Plan]]
"""Returns the plans that probably come next; called while an accelerator computes."""

_EVERY_SIGNAL: frozenset[Signal] = frozenset(get_args(Signal))

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DrawGradient:
    """What one draw measured; its gradient is in ``.grad``.

    Attributes:
        signals: the signals of the draw; None if it measures nothing.
        problem: what is wrong with its numbers; None if they are finite.
        losses: of every task, by name.
    """

    signals: StepSignals | None
    problem: Problem | None
    losses: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StepGradient:
    """What each draw of a step measured; the step's gradient is in ``.grad``."""

    draws: Sequence[DrawGradient]

    @property
    def problem(self) -> Problem | None:
        """What is wrong with a draw's numbers; None if all are finite."""
        return self.draws[-1].problem

    @property
    def signals(self) -> StepSignals | None:
        """The mean of the draws' signals; None if nothing was measured."""
        measured = [draw.signals for draw in self.draws if draw.signals is not None]
        return mean_signals(measured) if measured else None

    @property
    def losses(self) -> Mapping[str, float]:
        """The loss of each task: the mean over the draws that included it."""
        means = LossMeans()
        for draw in self.draws:
            means.add(draw.losses)
        return means.means()


Made = TypeVar("Made", DrawGradient, TaskGradients)


def _nothing() -> Iterable[Plan]:
    return ()


class GradientMaker:
    """Draws the rows of a step's plans and computes its gradient with an engine.

    Args:
        body: the module that all tasks share.
        engine: computes gradients and signals.
        draws: source of the rows.
        most_rows: most rows of one pass through the body if there is no limit.
        least_rows: number of rows that must stay in one pass.
        sake: name of the task that needs ``least_rows`` together, for messages.
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
        self._buffers = saved_places([body, *draws.heads])
        self._engine = engine
        self._draws = draws
        self._most_rows = most_rows
        self._least_rows = least_rows
        self._sake = sake

    def make(
        self,
        plans: Sequence[Plan],
        training: Optimization | Trial,
        step: int,
        following: Following = _nothing,
    ) -> StepGradient:
        """Leave the mean of the draws' gradients, clipped, in ``.grad``.

        AANG's released code averages four draws per step. Each draw has its own rows and is
        measured and, if memory runs out or half precision overflows, repeated separately. A draw
        with bad numbers ends the step without a gradient. Several draws need one more buffer of the
        model's size.

        Args:
            plans: the rows of each draw.
            training: the optimiser that will use the gradient.
            step: number of the step, for messages.
            following: yields the plans that probably come after these, whose rows are prepared
                while an accelerator computes.

        Raises:
            OutOfMemoryError: there is not enough memory for one row at a time.
        """
        if len(plans) == 1:
            return StepGradient([self._draw(plans[0], training, training.clip, step, following)])
        made: list[DrawGradient] = []
        mean: dict[nn.Parameter, Tensor] = {}
        for plan, next_plan in zip(plans, [*plans[1:], None], strict=True):
            then = following if next_plan is None else partial(iter, [next_plan])
            made.append(self._draw(plan, training, training.norm, step, then))
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

    def of_each(
        self, plan: Plan, names: Sequence[str], training: Optimization, step: int
    ) -> TaskGradients:
        """The gradients of some of a plan's tasks, each by itself; ``.grad`` stays empty.

        Args:
            plan: the rows.
            names: the tasks to differentiate.
            training: the optimiser of their parameters.
            step: number of the step, for messages.

        Raises:
            OutOfMemoryError: there is not enough memory for one row at a time.
        """

        def attempt() -> TaskGradients:
            rows = plan.draw(self._draws, self._engine.processes.size)
            return gradients_of_each(self._body, self._engine, rows, names, training)

        return self._attempts(attempt, training, step)

    def _draw(
        self,
        plan: Plan,
        training: Optimization | Trial,
        norm: Callable[[], Tensor],
        step: int,
        following: Following,
    ) -> DrawGradient:
        """Draw the rows of a plan and leave their gradient in ``.grad``."""

        def attempt() -> DrawGradient:
            rows = plan.draw(self._draws, self._engine.processes.size)
            statistics = self._engine.step(
                *(rows.end, rows.auxiliaries, rows.dev), norms="norm" in rows.measures
            )
            return self._judged(rows, statistics, norm(), following)

        return self._attempts(attempt, training, step)

    def _attempts(
        self, attempt: Callable[[], Made], training: Optimization | Trial, step: int
    ) -> Made:
        """Call ``attempt`` until it succeeds.

        If memory runs out, it repeats with fewer rows at once; if half precision may have
        overflowed, with a smaller loss scale. The draws are restored first, so rows stay the same.
        The buffers are restored, too, as running statistics must not see an attempt twice, or NaN.
        A step whose numbers are bad at every loss scale does not change the scale.
        """
        before = self.state_dict()
        buffers = KeptBuffers(self._buffers)
        scale = self._engine.scale.state_dict()
        while True:
            reason = None
            try:
                made = attempt()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                reason = in_a_line(error)
            else:
                problem = made.problem
                if problem is None:
                    return made
                if problem.of_loss or not self._engine.scale.halve():
                    # Nothing is learned from this step, so the dev head must not remember it.
                    buffers.restore()
                    self._load_dev_head(before)
                    self._engine.scale.load_state_dict(scale)
                    return made
                # Its gradients would take memory from the next attempt.
                del made
            training.drop()
            buffers.restore()
            self.load_state_dict(before)
            if reason is not None:
                # Only here, outside the handler, the error no longer holds the attempt's tensors.
                free()
                self._halve(reason, step)

    def state_dict(self) -> dict[str, Any]:
        """Draws and the dev head's memory, before the next step."""
        return {
            "draws": self._draws.state_dict(),
            "dev_head": dict(self._engine.dev_head.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, so that later steps repeat.

        Raises:
            SavedStateError: it is not such a state.
        """
        self._draws.load_state_dict(saved_part(state, "draws"))
        self._load_dev_head(state)

    def _load_dev_head(self, state: Mapping[str, Any]) -> None:
        device = next(self._body.parameters()).device
        remembered = saved_part(state, "dev_head")
        for name, tensor in remembered.items():
            if not isinstance(tensor, Tensor):
                raise wrong(name, "a tensor", tensor)
        on_device = {name: tensor.to(device) for name, tensor in remembered.items()}
        self._engine.dev_head.load_state_dict(on_device)

    def limit_rows(self, rows: int) -> None:
        """From now on, let at most ``rows`` rows through the body in one pass."""
        self._draws.at_once = rows
        self._engine.limit_rows(rows)

    def _judged(
        self,
        rows: StepRows,
        statistics: GradientStatistics | None,
        norm: Tensor,
        following: Following,
    ) -> DrawGradient:
        losses = torch.stack([loss.to(norm) for loss in (*self._engine.losses, norm)]).double()
        measures = [] if statistics is None else [statistics.values()]
        # Dropout of heads differs between processes, and with it the losses of riders.
        asked = self._engine.processes.of_first(torch.cat([losses, *measures]))
        # An accelerator still computes what is asked.
        self._prepare(following)
        # The only transfer from the device in a step.
        numbers = asked.tolist()
        *of_tasks, of_gradient = numbers[: len(losses)]
        values = numbers[len(losses) :]
        problem = problem_of(
            [*rows.auxiliaries, rows.end],
            of_tasks,
            of_gradient,
            None if statistics is None else statistics.selected(values, _EVERY_SIGNAL),
        )
        signals = _signals(rows, of_tasks, statistics, values) if rows.measures else None
        names = [member.task.name for member in members_of([*rows.auxiliaries, rows.end])]
        return DrawGradient(signals, problem, dict(zip(names, of_tasks, strict=True)))

    def _prepare(self, following: Following) -> None:
        """Draw the rows that will probably be asked for next; later draws stay the same."""
        if not self._draws.prepared.enabled:
            return
        with self._draws.ahead():
            for plan in following():
                plan.draw(self._draws, self._engine.processes.size)

    def _halve(self, reason: str, step: int) -> None:
        """Let half as many rows through the body at once.

        Raises:
            OutOfMemoryError: fewer rows are impossible.
        """
        now = self._draws.at_once or self._most_rows
        if now == 1:
            raise OutOfMemoryError(
                f"step {step}: not enough memory for one row at a time ({reason}). Give the run "
                "more, or take a smaller --model or --max-length",
                rows=1,
            )
        if now // 2 < self._least_rows:
            raise OutOfMemoryError(
                f"step {step}: not enough memory ({reason}), and {self._sake} needs "
                f"{self._least_rows} rows in one pass. Lower --batch-size or --aux-batch-size, "
                "give --save-memory, or leave the objective out",
                rows=now,
                least=self._least_rows,
            )
        if self._engine.processes.size > 1:
            raise OutOfMemoryError(
                f"step {step}: not enough memory for {now} rows at once ({reason}). Several "
                "processes take every step together, so one alone cannot reduce its rows: let at "
                f"most {now // 2} through at once (--micro-batch-size)",
                rows=now,
            )
        self.limit_rows(now // 2)
        _log.warning(
            "step %d: not enough memory (%s); the same rows again, at most %d at once from now on",
            *(step, reason, now // 2),
        )


def _signals(
    rows: StepRows,
    losses: Sequence[float],
    statistics: GradientStatistics | None,
    values: Sequence[float],
) -> StepSignals:
    """The signals that a step measures.

    Args:
        rows: the rows of the step.
        losses: of every task, the end task last.
        statistics: of the gradients; None if no signal needs them.
        values: the numbers of ``statistics``, on the host.
    """
    gradients = StepSignals({}, {}, {}, {}, None)
    if statistics is not None:
        gradients = statistics.selected(values, rows.measures)
    if "loss" not in rows.measures:
        return gradients
    members = members_of([*rows.auxiliaries, rows.end])
    weights = [member.coefficient for member in members[:-1]]
    weighted = [w * loss for w, loss in zip(weights, losses, strict=False)]
    mean = math.fsum(weighted) / (math.fsum(weights) or 1.0)
    return replace(
        gradients,
        auxiliary={**gradients.auxiliary, "loss": mean},
        loss={member.task.name: loss for member, loss in zip(members, losses, strict=True)},
    )
