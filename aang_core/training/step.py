"""One step: draw its rows, compute the gradient, clip it and check the numbers.

A step is repeated on the same rows if memory runs out, with half as many rows at once, or if half
precision overflows, with a smaller loss scale.
"""

import gc
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from aang_core.errors import OutOfMemoryError
from aang_core.gradients.engine import GradientEngine
from aang_core.gradients.segments import Segment, members_of
from aang_core.tasks.task import Batch
from aang_core.tasks.workbench import Signal, StepSignals, mean_signals
from aang_core.training.model_state import KeptBuffers, saved_places
from aang_core.training.numbers import LossMeans, problem_of
from aang_core.training.optimization import Optimization
from aang_core.training.rows import Draws
from aang_core.training.updates import ParameterUpdate, gradients_of_each

Rows = tuple[Segment, Sequence[Segment], Sequence[Batch] | None]
"""The rows of a draw: the end task's, the objectives', and dev rows to measure against, if any."""

_log = logging.getLogger(__name__)

_SIGNS = ("can't allocate memory", "out of memory", "alloc_failed", "bad_alloc")
"""What messages say when memory has run out on some device."""


@dataclass(frozen=True)
class StepResult:
    """What a step computed, on the host; its gradient is in ``.grad``.

    Attributes:
        losses: of every task, by name; the mean over the draws that included it.
        problem: what is wrong with the numbers; None if all are finite.
        signals: the mean of the draws' signals; None if nothing was measured.
        updates: the gradients of single tasks, if the step kept them instead of their sum.
    """

    losses: Mapping[str, float]
    problem: str | None = None
    signals: StepSignals | None = None
    updates: Sequence[ParameterUpdate] = ()


class StepRunner:
    """Runs the steps of a training.

    Args:
        body: the module that all tasks share.
        engine: computes gradients and signals.
        draws: source of the rows.
        most_rows: most rows of one pass through the body if there is no limit.
        together: number of rows that must stay in one pass, and the task that needs them.
    """

    def __init__(
        self,
        body: nn.Module,
        engine: GradientEngine,
        draws: Draws,
        most_rows: int,
        together: tuple[int, str],
    ) -> None:
        self._body = body
        self._buffers = saved_places([body, *draws.heads])
        self._engine = engine
        self._draws = draws
        self._most_rows = most_rows
        self._together = together

    def gradient(
        self,
        rows: Sequence[Callable[[], Rows]],
        measures: frozenset[Signal],
        training: Optimization,
        step: int,
    ) -> StepResult:
        """Leave the mean of the draws' gradients, clipped, in ``.grad``.

        AANG's released code averages four draws per step. Each draw has its own rows and is
        measured and, if need be, repeated separately. A draw with bad numbers ends the step without
        a gradient. Several draws need one more buffer of the model's size.

        Args:
            rows: draws the rows of each draw.
            measures: the signals to measure.
            training: the optimiser that will use the gradient.
            step: number of the step, for messages.

        Raises:
            OutOfMemoryError: there is not enough memory for one row at a time.
        """
        if len(rows) == 1:
            draw = partial(self._of_draw, rows[0], measures, training.clip)
            return self._until_it_succeeds(draw, training, step)
        head = self._engine.dev_head
        remembered, buffers = dict(vars(head)), KeptBuffers(self._buffers)
        results: list[StepResult] = []
        mean: dict[nn.Parameter, Tensor] = {}
        for of_draw in rows:
            draw = partial(self._of_draw, of_draw, measures, training.norm)
            results.append(self._until_it_succeeds(draw, training, step))
            if results[-1].problem is not None:
                # Nothing is learned from the draws before it either.
                buffers.restore()
                vars(head).update(remembered)
                return results[-1]
            for parameter in training.parameters:
                if parameter.grad is None:
                    continue
                part = parameter.grad.div_(len(rows))
                parameter.grad = None
                mean[parameter] = mean[parameter].add_(part) if parameter in mean else part
        for parameter, gradient in mean.items():
            parameter.grad = gradient
        training.clip()
        losses = LossMeans()
        for result in results:
            losses.add(result.losses)
        measured = [result.signals for result in results if result.signals is not None]
        return StepResult(losses.means(), signals=mean_signals(measured) if measured else None)

    def gradients(
        self, rows: Callable[[], Rows], names: Sequence[str], training: Optimization, step: int
    ) -> StepResult:
        """The gradients of some tasks of a step, each by itself; ``.grad`` stays empty.

        Args:
            rows: draws the rows of the step.
            names: the tasks to differentiate.
            training: the optimiser of their parameters.
            step: number of the step, for messages.

        Raises:
            OutOfMemoryError: there is not enough memory for one row at a time.
        """

        def attempt() -> StepResult:
            end, auxiliaries, _ = rows()
            losses, problem, updates = gradients_of_each(
                self._body, self._engine, [*auxiliaries, end], names, training
            )
            return StepResult(losses, problem, updates=updates)

        return self._until_it_succeeds(attempt, training, step)

    def _of_draw(
        self, rows: Callable[[], Rows], measures: frozenset[Signal], norm: Callable[[], Tensor]
    ) -> StepResult:
        """Leave the gradient of a draw in ``.grad``, and move its numbers to the host at once."""
        end, auxiliaries, dev = rows()
        statistics = self._engine.step(end, auxiliaries, dev, norms="norm" in measures)
        length = norm()
        found = torch.stack([loss.to(length) for loss in (*self._engine.losses, length)]).double()
        if statistics is not None:
            found = torch.cat([found, statistics.values()])
        if self._engine.processes.size > 1:
            # Dropout of heads differs between processes, and with it the losses of riders.
            found = self._engine.processes.of_first(found)
        # The only transfer from the device in a step.
        numbers = found.tolist()
        members = members_of([*auxiliaries, end])
        losses = {member.task.name: numbers[i] for i, member in enumerate(members)}
        values = numbers[len(members) + 1 :]
        problem = problem_of(losses, numbers[len(members)], statistics, values)
        if not measures:
            return StepResult(losses, problem)
        signals = StepSignals({}, {}, {}, {}, None)
        if statistics is not None:
            signals = statistics.selected(values, measures)
        if "loss" in measures:
            weights = [member.coefficient for member in members[:-1]]
            weighted = [w * loss for w, loss in zip(weights, losses.values(), strict=False)]
            mean = math.fsum(weighted) / (math.fsum(weights) or 1.0)
            signals = replace(signals, auxiliary={**signals.auxiliary, "loss": mean}, loss=losses)
        return StepResult(losses, problem, signals)

    def _until_it_succeeds(
        self, attempt: Callable[[], StepResult], training: Optimization, step: int
    ) -> StepResult:
        """Call ``attempt`` until memory suffices and the numbers are finite, if they can be.

        The draws are restored before it is repeated, so rows stay the same, and the buffers, as
        running statistics must not see an attempt twice, or NaN. A step whose numbers are bad at
        every loss scale does not change the scale.
        """
        draws, head = self._draws.state_dict(), self._engine.dev_head
        remembered = dict(vars(head))
        buffers = KeptBuffers(self._buffers)
        scale = self._engine.scale.state_dict()
        while True:
            reason = None
            try:
                result = attempt()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                reason = in_a_line(error)
            else:
                if result.problem is None:
                    return result
                # Losses are the same at every scale.
                finite = all(map(math.isfinite, result.losses.values()))
                if not finite or not self._engine.scale.halve():
                    # Nothing is learned from this step, so the dev head must not remember it.
                    buffers.restore()
                    vars(head).update(remembered)
                    self._engine.scale.load_state_dict(scale)
                    return result
                # Its gradients would take memory from the next attempt.
                del result
            training.drop()
            buffers.restore()
            self._draws.load_state_dict(draws)
            vars(head).update(remembered)
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
        """Restore a saved state, so that later steps repeat."""
        self._draws.load_state_dict(state["draws"])
        device = next(self._body.parameters()).device
        on_device = {name: tensor.to(device) for name, tensor in state["dev_head"].items()}
        self._engine.dev_head.load_state_dict(on_device)

    def limit_rows(self, rows: int) -> None:
        """From now on, let at most ``rows`` rows through the body in one pass."""
        self._draws.at_once = rows
        self._engine.limit_rows(rows)

    def _halve(self, reason: str, step: int) -> None:
        """Let half as many rows through the body at once.

        Raises:
            OutOfMemoryError: fewer rows are impossible.
        """
        now = self._draws.at_once or self._most_rows
        least, sake = self._together
        if now == 1:
            raise OutOfMemoryError(
                f"step {step}: not enough memory for one row at a time ({reason}). Give the run "
                "more, or take a smaller --model or --max-length",
                rows=1,
            )
        if now // 2 < least:
            raise OutOfMemoryError(
                f"step {step}: not enough memory ({reason}), and {sake} needs {least} rows in one "
                "pass. Lower --batch-size or --aux-batch-size, give --save-memory, or leave the "
                "objective out",
                rows=now,
                least=least,
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
            "step %d: not enough memory (%s); trying the same rows again, at most %d at once from "
            "now on",
            *(step, reason, now // 2),
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory has run out; on a CPU, torch has no type for it."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(s in str(error).lower() for s in _SIGNS)


def in_a_line(error: BaseException) -> str:
    """The sentence of the allocator's message that says that memory has run out."""
    sentences = str(error).strip().replace("\n", ". ").split(". ")
    found = [s for s in sentences if any(sign in s.lower() for sign in _SIGNS)]
    return (found or sentences)[0] or type(error).__name__


def free() -> None:
    """Release memory that nothing refers to any more."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
