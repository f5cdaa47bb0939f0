"""The workbench: what a weighter trains with."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from aang_core.errors import WeighterError
from aang_core.gradients import GradientEngine
from aang_core.tasks.saved import saved_count, saved_part
from aang_core.tasks.signals import Signal, StepSignals
from aang_core.tasks.task import Task
from aang_core.tasks.weighting import Weighter
from aang_core.tasks.workbench import DevLossAlong, Update
from aang_core.training.dev_set import DevSet
from aang_core.training.draws import Draws
from aang_core.training.frozen_part import FrozenPart
from aang_core.training.losses import LossMeans
from aang_core.training.model_state import ModelState
from aang_core.training.numbers import NumberPolicy, OnNan, Problem
from aang_core.training.optimization import Optimization, Trial
from aang_core.training.rows import RowStream
from aang_core.training.run_tasks import DEV_HEAD, RunTasks, check_odds, mean_coefficients
from aang_core.training.signal_mean import SignalMean
from aang_core.training.step_gradient import Following, GradientMaker
from aang_core.training.step_plans import StepPlans
from aang_core.training.step_rows import Plan, RowBudget, TrialPlan, rows_together
from aang_core.training.task_gradients import by_task, leave_sum
from aang_core.training.updates import (
    ParameterUpdate,
    Snapshot,
    apply_updates,
    known_products,
    own_updates,
    products,
)


@dataclass(frozen=True)
class StepRecord:
    """What the last step did, for the run's log.

    Attributes:
        coefficients: of the losses, by task; the mean over the step's draws.
        signals: what the step measured; None if it measured nothing.
    """

    coefficients: Mapping[str, float]
    signals: StepSignals | None


class TrainingBench:
    """The workbench of a training: its tasks, gradients and optimiser.

    Args:
        body: the module that all tasks share.
        end_task: the end task.
        dev: the end task over the rows that the dev gradient is computed on.
        auxiliaries: the auxiliary tasks.
        engine: computes gradients and signals.
        optimization: optimiser and learning-rate schedule.
        budget: number of rows of a step.
        generator: source of every draw of the training loop: tasks, rows and what tasks do with
            them. Only dropout draws from torch's global generator.
        meta_every: a step measures signals if the number of steps before it is a multiple of
            ``meta_every`` and, for signals against the dev gradient, the dev head is ready.
        score: the dev metric of the current model over a number of dev rows, the same rows each
            time, or over all of them for None.
        streams: endless sources of rows for auxiliary tasks, by name.
        on_nan: what to do about a step whose loss or gradient is NaN or infinite.
        draws_per_step: number of draws that share a step's rows, for weighters that take several.
        weights_every: a weighter gets the mean of the signals of ``weights_every`` measured steps.
        normalised: whether the coefficients of a step must sum to one, or to one at most.

    Attributes:
        tasks: all tasks of the run.
        modules: the body and every task's head, by name.
        dev_head: the head that the dev gradient goes through.
        frozen: the parameters of the body that are not trained.
        steps: number of steps so far.
        last: what the last step did; None before the first one.
        losses: mean losses of the tasks over the steps of the round, trials included.
        changed: whether parameters have changed since the round began.
        prepared: batches made while an accelerator computes the step before.
        plans: which draws a step trains, and when it measures.
    """

    def __init__(
        self,
        body: nn.Module,
        end_task: Task,
        dev: Task,
        auxiliaries: Sequence[Task],
        *,
        engine: GradientEngine,
        optimization: Optimization,
        budget: RowBudget,
        generator: torch.Generator,
        meta_every: int = 1,
        score: Callable[[int | None], float] | None = None,
        streams: Mapping[str, RowStream] | None = None,
        on_nan: OnNan = "stop",
        draws_per_step: int = 1,
        weights_every: int = 1,
        normalised: bool = True,
    ) -> None:
        self.tasks = RunTasks(body, end_task, dev, auxiliaries, normalised=normalised)
        self.end_task = end_task.name
        self.body = body
        self.modules = self.tasks.modules
        self.generator = generator
        self.processes = engine.processes
        self.dev_head = engine.dev_head
        self.optimization = optimization
        self.draws_per_step = draws_per_step
        self.held_signals = SignalMean(weights_every)
        self.numbers = NumberPolicy(on_nan)
        self.steps = 0
        self.last: StepRecord | None = None
        self.losses = LossMeans()
        self.changed = False
        self.plans = StepPlans(self.tasks, engine.dev_head, budget, meta_every)
        self._scale = engine.scale
        self._streams = dict(streams or {})
        self._draws = Draws(
            self.tasks.orders(dev_head=engine.dev_head.draws > 0),
            generator=generator,
            device=next(body.parameters()).device,
            by_length=engine.splits_rows,
            at_once=budget.at_once,
        )
        self.prepared = self._draws.prepared
        engine.dev_head.draw_from(partial(self._draws.rows, DEV_HEAD))
        self._dev = DevSet(body, end_task, self._draws, budget.dev, score, engine.processes)
        least, sake = rows_together(end_task, auxiliaries, budget)
        self._gradients = GradientMaker(
            *(body, engine, self._draws),
            most_rows=budget.most(together=not engine.splits_rows),
            least_rows=least,
            sake=sake,
        )
        self.frozen = FrozenPart(body)
        self._model = ModelState(self.modules, optimization, self.frozen)

    @property
    def steps_left(self) -> int:
        """See `Workbench.steps_left`."""
        return max(self.optimization.steps - self.steps, 0)

    def sample(self, n: int | None, weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """See `Workbench.sample`."""
        names = tuple(self.tasks.auxiliaries)
        if weights is not None:
            check_odds(weights, names, n)
        if n is None or n >= len(names):
            return names
        odds = None if weights is None else [weights[name] for name in names]
        return self._draws.some(names, n, odds)

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """See `Workbench.step`."""
        return self.step_over([coefficients], signals)

    def step_over(
        self, draws: Sequence[Mapping[str, float]], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """See `Workbench.step_over`.

        Raises:
            WeighterError: a coefficient is negative, not finite or for an unknown task, the end
                task's is missing, or they do not sum to one.
            NumericalError: a loss or gradient is not finite.
            OutOfMemoryError: there is not enough memory for one row at a time, or for rows that
                must stay together.
        """
        plans = self.plans.of_step(draws, signals, self.steps)
        self.tasks.train_mode()
        measured = self._optimize(plans, self.optimization, self._following)
        self.last = StepRecord(mean_coefficients(draws), measured)
        return self.held_signals.add(measured)

    def expect(self, weighter: Weighter) -> None:
        """Prepare the rows of the steps that ``weighter`` foresees while the device computes."""
        self.plans.expect(weighter)

    def _following(self) -> Sequence[Plan]:
        return self.plans.following(self, self.steps + 1)

    def trial(
        self,
        coefficients: Mapping[str, float],
        *,
        fraction: float = 1.0,
        steps: int | None = None,
        offload: bool = False,
    ) -> ParameterUpdate:
        """See `Workbench.trial`.

        Raises:
            WeighterError: there are no coefficients, or one is negative, not finite or for an
                unknown task; or ``steps`` is less than one.
        """
        if steps is not None and steps < 1:
            raise WeighterError(f"a trial of {steps} steps; ask for 1 or more")
        tasks = self.tasks.of_trial(coefficients)
        self.tasks.train_mode()
        training = self.optimization.trial(self.body, [task.head for task in tasks.values()])
        before = Snapshot(training.parameters, self.modules.values())
        size = self.plans.budget.end_task
        plan = TrialPlan(tasks, [*coefficients.values()], size)
        rows = max(len(task) for task in tasks.values())
        try:
            count = math.ceil(fraction * rows / size) if steps is None else steps
            for number in range(count):
                following = [plan] if number + 1 < count else []
                self._optimize([plan], training, partial(iter, following))
            return before.difference(tuple(coefficients), offload=offload)
        finally:
            before.restore()

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        """See `Workbench.apply`."""
        self.changed = True
        apply_updates(own_updates(updates, coefficients), coefficients)

    def gradients(self, names: Sequence[str]) -> Sequence[ParameterUpdate] | None:
        """See `Workbench.gradients`.

        Raises:
            WeighterError: there are no names, or one is unknown or given twice.
            NumericalError: a loss or gradient is not finite.
            OutOfMemoryError: there is not enough memory for one row at a time.
        """
        plan = self.plans.of_gradients(names)
        self.tasks.train_mode()
        made = self._gradients.of_each(plan, names, self.optimization, self.steps + 1)
        if made.problem is None:
            self.losses.add(made.losses)
            return made.updates
        self._count()
        self._leave_out(made.problem, self.optimization)
        return None

    def dots(self, updates: Sequence[Update]) -> list[list[float]]:
        """See `Workbench.dots`."""
        own = own_updates(updates)
        matrix = known_products(own)
        if matrix is None:
            matrix = self.processes.of_first(products(own, self.optimization.of_body)).tolist()
        return matrix

    def descend(
        self,
        updates: Sequence[Update],
        coefficients: Sequence[float],
        *,
        of_heads: Sequence[float] | None = None,
    ) -> None:
        """See `Workbench.descend`.

        Raises:
            WeighterError: the coefficients are not finite, or not one for each update.
            NumericalError: the sum is not finite.
        """
        heads = coefficients if of_heads is None else of_heads
        own = own_updates(updates, coefficients, heads)
        finite = leave_sum(self.optimization, own, coefficients, heads)
        self._count()
        self.last = StepRecord(by_task(own, coefficients), None)
        if not finite:
            self.optimization.drop()
            self.numbers.bad(self.steps, "the weighted sum of the gradients is not finite")
            return
        self._update(self.optimization)

    def dev_loss(
        self,
        updates: Sequence[Update],
        coefficients: Sequence[float],
        *,
        batches: int | None = None,
    ) -> DevLossAlong:
        """See `Workbench.dev_loss`."""
        return self._dev.loss(updates, coefficients, batches)

    def dev_score(self, rows: int | None = None) -> float:
        """See `Workbench.dev_score`."""
        return self._dev.score(rows)

    def snapshot(self) -> Callable[[], None]:
        """See `Workbench.snapshot`."""
        kept = Snapshot(self.optimization.parameters, self.modules.values())
        changed = self.changed

        def restore() -> None:
            kept.restore()
            self.changed = changed

        return restore

    @contextmanager
    def aside(self) -> Iterator[Draws]:
        """Yield the training's draws; what is drawn inside the block changes no later step."""
        before = self._gradients.state_dict()
        try:
            yield self._draws
        finally:
            self._gradients.load_state_dict(before)

    def begin_round(self) -> None:
        """Advance the learning-rate schedule to the steps taken so far, trials included."""
        self.optimization.catch_up(self.steps)
        self.losses = LossMeans()
        self.changed = False

    def state_dict(self, *, whole: bool = True) -> dict[str, Any]:
        """Everything needed to continue training.

        Args:
            whole: False leaves out body, heads, optimiser and ``rows_at_once``, which stay as they
                are during a round that has not ``changed`` any parameter. This is cheap.

        Returns:
            Tensors, which are the ones in use and not copies, and values that JSON can hold.
        """
        state: dict[str, Any] = {
            "steps": self.steps,
            **self._gradients.state_dict(),
            "numbers": self.numbers.state_dict(),
            "scale": self._scale.state_dict(),
            "streams": self._stream_states(),
            "held_signals": self.held_signals.state_dict(),
        }
        return (
            state | self._model.state_dict() | {"rows_at_once": self.rows_at_once}
            if whole
            else state
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state saved by `state_dict`, whole or not.

        Args:
            state: what `state_dict` returned.

        Raises:
            DataError: the state belongs to other modules.
        """
        if "module" in state:
            self._model.load_state_dict(state)
            if state["rows_at_once"] is not None:
                # A run that is resumed may have been given a smaller limit than it had found.
                saved = saved_count(state, "rows_at_once", least=1)
                self._gradients.limit_rows(min(saved, self.rows_at_once or saved))
        self.steps = saved_count(state, "steps")
        self._gradients.load_state_dict(state)
        if "module" in state:
            self.dev_head.check(self.tasks.end_task)
        self.numbers.load_state_dict(saved_part(state, "numbers"))
        self._scale.load_state_dict(saved_part(state, "scale"))
        streams = saved_part(state, "streams")
        for name, stream in self._streams.items():
            stream.load_state_dict(dict(saved_part(streams, name)))
        self.prepared.forget()
        self.held_signals.load_state_dict(state.get("held_signals", []))

    @property
    def rows_at_once(self) -> int | None:
        """Most rows of one task in one pass through the body; None for no limit."""
        return self._draws.at_once

    def _optimize(
        self, plans: Sequence[Plan], training: Optimization | Trial, following: Following
    ) -> StepSignals | None:
        """Take one step, or skip it if its numbers are bad, and return what it measured."""
        made = self._gradients.make(plans, training, self.steps + 1, following)
        self._count()
        if made.problem is not None:
            self._leave_out(made.problem, training)
            return None
        self._update(training)
        self.losses.add(made.losses)
        return made.signals

    def _leave_out(self, problem: Problem, training: Optimization | Trial) -> None:
        """Drop the gradient of a step with bad numbers.

        Raises:
            NumericalError: such steps are not skipped.
        """
        words = problem.in_words(self.body)
        training.drop()
        self.numbers.bad(self.steps, words)

    def _count(self) -> None:
        self.steps += 1
        before = self._stream_states()
        for stream in self._streams.values():
            stream.after_step(self.steps)
        if self._stream_states() != before:
            self.prepared.forget()

    @property
    def stream_digests(self) -> dict[str, str]:
        """Fingerprints of the rows that are drawn now from streams, by the streams' names."""
        return {name: stream.digest for name, stream in self._streams.items()}

    def _stream_states(self) -> dict[str, Any]:
        return {name: stream.state_dict() for name, stream in self._streams.items()}

    def _update(self, training: Optimization | Trial) -> None:
        """Update the parameters from their finite gradients."""
        self._scale.good()
        self.numbers.good()
        self.changed |= training is self.optimization
        training.update()
