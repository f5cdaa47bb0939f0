"""The workbench: what a weighter trains with."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from aang_core.errors import ConfigError, WeighterError
from aang_core.gradients.engine import GradientEngine
from aang_core.gradients.segments import Segment, rests
from aang_core.tasks.task import Task
from aang_core.tasks.weighting import problem_of_sum
from aang_core.tasks.workbench import (
    AGAINST_DEV,
    END_TASK,
    DevLossAlong,
    Signal,
    StepSignals,
    Update,
    mean_signals,
)
from aang_core.training.model_state import FrozenPart, ModelState
from aang_core.training.numbers import LossMeans, NumberPolicy, OnNan
from aang_core.training.optimization import Optimization
from aang_core.training.rows import Draws, RowBudget, RowStream, draw_segments, rows_together
from aang_core.training.step import Rows, StepResult, StepRunner
from aang_core.training.trials import DEV, DevSet, Snapshot, apply_updates
from aang_core.training.updates import (
    ParameterUpdate,
    by_task,
    known_products,
    leave_sum,
    own_updates,
    products,
)

DEV_HEAD = "dev-head"
"""Name of the row order of the dev head's own draws, beside those of tasks."""


@dataclass(frozen=True)
class StepSettings:
    """What a step consists of.

    Attributes:
        rows: number of rows.
        meta_every: a step measures signals if the number of steps before it is a multiple of
            ``meta_every`` and, for signals against the dev gradient, the dev head is ready.
        draws_per_step: number of draws that share a step's rows, for weighters that take several.
        weights_every: a weighter gets the mean of the signals of ``weights_every`` measured steps.
        on_nan: what to do about a step whose loss or gradient is NaN or infinite.
    """

    rows: RowBudget
    meta_every: int = 1
    draws_per_step: int = 1
    weights_every: int = 1
    on_nan: OnNan = "stop"


class RunTasks:
    """The tasks of a run.

    Args:
        end_task: the end task.
        dev: the end task over the rows that the dev gradient is computed on.
        auxiliaries: the auxiliary tasks.
        streams: endless sources of rows for auxiliary tasks, by name.

    Raises:
        ConfigError: a task is not a `Task`.
    """

    def __init__(
        self,
        end_task: Task,
        dev: Task,
        auxiliaries: Sequence[Task],
        streams: Mapping[str, RowStream] | None = None,
    ) -> None:
        for task in (end_task, dev, *auxiliaries):
            if not isinstance(task, Task):
                raise ConfigError(
                    f"{type(task).__name__} is no subclass of aang_core.Task, which has the "
                    "defaults of what a task need not define; derive it from Task"
                )
        self.end_task = end_task
        self.dev = dev
        self.auxiliaries = {task.name: task for task in auxiliaries}
        self.streams = dict(streams or {})

    @property
    def heads(self) -> list[nn.Module]:
        """The heads of the end task and of the auxiliary tasks."""
        return [task.head for task in (self.end_task, *self.auxiliaries.values())]


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
        tasks: the tasks.
        engine: computes gradients and signals.
        optimization: optimiser and learning-rate schedule.
        settings: what a step consists of.
        generator: source of every draw of the training loop: tasks, rows and what tasks do with
            them. Only dropout draws from torch's global generator.
        score: the dev metric of the current model over a number of dev rows, the same rows each
            time, or over all of them for None.
        normalised: whether the coefficients of a step must sum to one, or to one at most.

    Attributes:
        modules: the body and every task's head, by name.
        dev_head: the head that the dev gradient goes through.
        remembers: whether the dev head also remembers rows of steps that ask for no signals.
        frozen: the parameters of the body that are not trained.
        steps: number of steps so far.
        last: what the last step did; None before the first one.
        losses: mean losses of the tasks over the steps of the round, trials included.
    """

    def __init__(
        self,
        body: nn.Module,
        tasks: RunTasks,
        engine: GradientEngine,
        optimization: Optimization,
        settings: StepSettings,
        *,
        generator: torch.Generator,
        score: Callable[[int | None], float] | None = None,
        normalised: bool = True,
    ) -> None:
        self.body = body
        self.tasks = tasks
        self.optimization = optimization
        self.settings = settings
        self.generator = generator
        self.draws_per_step = settings.draws_per_step
        self.end_task = tasks.end_task.name
        self.modules: Mapping[str, nn.Module] = {
            "body": body,
            self.end_task: tasks.end_task.head,
            **{name: task.head for name, task in tasks.auxiliaries.items()},
        }
        self.processes = engine.processes
        self.dev_head = engine.dev_head
        self.remembers = False
        self.numbers = NumberPolicy(settings.on_nan)
        self.steps = 0
        self.last: StepRecord | None = None
        self.losses = LossMeans()
        self._normalised = normalised
        self._held_signals: list[StepSignals] = []
        self._scale = engine.scale
        budget = settings.rows
        orders = {END_TASK: tasks.end_task, DEV: tasks.dev}
        if engine.dev_head.draws > 0:
            orders[DEV_HEAD] = tasks.end_task
        self._draws = Draws(
            orders | {f"auxiliary:{name}": task for name, task in tasks.auxiliaries.items()},
            generator=generator,
            device=next(body.parameters()).device,
            by_length=engine.splits_rows,
            at_once=budget.at_once,
        )
        engine.dev_head.draw_from(partial(self._draws.rows, DEV_HEAD))
        parts = (budget.end_task, budget.dev, budget.auxiliary)
        self._runner = StepRunner(
            *(body, engine, self._draws),
            most_rows=max(parts) if engine.splits_rows else sum(parts),
            together=rows_together(tasks.end_task, [*tasks.auxiliaries.values()], budget),
        )
        self._dev = DevSet(body, tasks.end_task, self._draws, budget.dev, score, engine.processes)
        self.frozen = FrozenPart(body)
        self._model = ModelState(self.modules, optimization, self.frozen)
        self._resting = [m for m in body.modules() if isinstance(m, _BatchNorm) and rests(m)]

    @property
    def steps_left(self) -> int:
        """See `Workbench.steps_left`."""
        return max(self.optimization.steps - self.steps, 0)

    @property
    def rows_at_once(self) -> int | None:
        """Most rows of one task in one pass through the body; None for no limit."""
        return self._draws.at_once

    def sample(self, n: int | None, weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """See `Workbench.sample`.

        Raises:
            WeighterError: the weights are for other tasks, one is negative or not finite, or fewer
                than ``n`` are above zero.
        """
        names = tuple(self.tasks.auxiliaries)
        if weights is not None:
            if weights.keys() != set(names):
                odd = ", ".join(sorted(weights.keys() ^ set(names)))
                raise WeighterError(
                    f"the weights of a draw are not those of the auxiliary tasks: {odd}"
                )
            _expect_weights("the weight of {} in a draw", weights)
            possible = sum(weight > 0 for weight in weights.values())
            if n is not None and possible < n < len(names):
                raise WeighterError(f"a draw of {n} tasks, of which fewer have a weight above zero")
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
        against_dev = bool(signals & AGAINST_DEV)
        measures = signals
        if self.steps % self.settings.meta_every or (against_dev and not self.dev_head.ready):
            measures = frozenset()
        rows = []
        for number, coefficients in enumerate(draws):
            self._check(coefficients)
            budget = self.settings.rows.of_draw(len(draws), number)
            remember = against_dev or self.remembers
            rows.append(partial(self._rows, coefficients, budget, measures, remember=remember))
        self._train_mode()
        measured = self._optimize(rows, measures, self.optimization)
        self.last = StepRecord(_mean(draws), measured)
        if measured is None:
            return None
        # AANG's code measures at every step and moves the weights by the mean of three of them.
        held = [*self._held_signals, measured]
        enough = len(held) >= self.settings.weights_every
        self._held_signals = [] if enough else held
        return mean_signals(held) if enough else None

    def gradients(self, names: Sequence[str]) -> Sequence[ParameterUpdate] | None:
        """See `Workbench.gradients`.

        Raises:
            WeighterError: there are no names, or one is unknown or given twice.
            NumericalError: a loss or gradient is not finite.
            OutOfMemoryError: there is not enough memory for one row at a time.
        """
        known = {self.end_task, *self.tasks.auxiliaries}
        strange = [name for name in names if name not in known]
        if strange or not names or len(set(names)) < len(names):
            raise WeighterError(
                f"the gradients of {', '.join(map(repr, strange or names)) or 'no task'}: expected "
                "names of tasks of this run, each once"
            )
        self._train_mode()
        self.last = None  # of a step that is left out, nothing is recorded
        even = dict.fromkeys([self.end_task, *names], 1.0)
        rows = partial(self._rows, even, self.settings.rows, frozenset(), remember=self.remembers)
        made = self._runner.gradients(rows, names, self.optimization, self.steps + 1)
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
            self._leave_out("the weighted sum of the gradients is not finite", self.optimization)
            return
        self._update(self.optimization)

    def trial(
        self,
        coefficients: Mapping[str, float],
        *,
        fraction: float = 1.0,
        steps: int | None = None,
        at_most: int | None = None,
        offload: bool = False,
    ) -> ParameterUpdate:
        """See `Workbench.trial`.

        Raises:
            WeighterError: there are no coefficients, or one is negative, not finite or for an
                unknown task; or a number of steps is less than one.
        """
        for asked in (steps, at_most):
            if asked is not None and asked < 1:
                raise WeighterError(f"a trial of {asked} steps; ask for 1 or more")
        _expect_weights("the coefficient of {} in a trial", coefficients)
        if not coefficients:
            raise WeighterError("a trial needs a task to train; it was given none")
        known = {self.end_task: self.tasks.end_task, **self.tasks.auxiliaries}
        for name in coefficients:
            if name not in known:
                raise WeighterError(f"a trial of {name!r}, which is no task of this run")
        tasks = [known[name] for name in coefficients]
        self._train_mode()
        training = self.optimization.trial(self.body, [task.head for task in tasks])
        before = Snapshot(training.parameters, self.modules.values())
        rows = partial(self._rows_of_trial, coefficients)
        try:
            if steps is None:
                longest = max(len(task) for task in tasks)
                steps = math.ceil(fraction * longest / self.settings.rows.end_task)
            for _ in range(steps if at_most is None else min(steps, at_most)):
                self._optimize([rows], frozenset(), training)
            return before.difference(tuple(coefficients), offload=offload)
        finally:
            before.restore()

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        """See `Workbench.apply`."""
        apply_updates(own_updates(updates, coefficients), coefficients)

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
        return Snapshot(self.optimization.parameters, self.modules.values()).restore

    @contextmanager
    def aside(self) -> Iterator[Draws]:
        """Yield the training's draws; what is drawn inside the block changes no later step."""
        before = self._runner.state_dict()
        try:
            yield self._draws
        finally:
            self._runner.load_state_dict(before)

    def begin_round(self) -> None:
        """Advance the learning-rate schedule to the steps taken so far, trials included."""
        self.optimization.catch_up(self.steps)
        self.losses = LossMeans()

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue training.

        Returns:
            Tensors, which are the ones in use and not copies, and values that JSON can hold.
        """
        return {
            "steps": self.steps,
            **self._runner.state_dict(),
            "numbers": self.numbers.state_dict(),
            "scale": self._scale.state_dict(),
            "streams": {name: stream.state_dict() for name, stream in self.tasks.streams.items()},
            "held_signals": [asdict(signals) for signals in self._held_signals],
            **self._model.state_dict(),
            "rows_at_once": self.rows_at_once,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state saved by `state_dict`.

        Args:
            state: what `state_dict` returned.

        Raises:
            DataError: the state belongs to other modules.
        """
        self._model.load_state_dict(state)
        if state["rows_at_once"] is not None:
            # A resumed run may have been given a smaller limit than the one it had found.
            saved = state["rows_at_once"]
            self._runner.limit_rows(min(saved, self.rows_at_once or saved))
        self.steps = state["steps"]
        self._runner.load_state_dict(state)
        self.numbers.load_state_dict(state["numbers"])
        self._scale.load_state_dict(state["scale"])
        for name, stream in self.tasks.streams.items():
            stream.load_state_dict(state["streams"][name])
        self._held_signals = [StepSignals(**signals) for signals in state["held_signals"]]

    @property
    def stream_digests(self) -> dict[str, str]:
        """Fingerprints of the rows that are now drawn from streams, by the streams' names."""
        return {name: stream.digest for name, stream in self.tasks.streams.items()}

    def _rows(
        self,
        coefficients: Mapping[str, float],
        budget: RowBudget,
        measures: frozenset[Signal],
        *,
        remember: bool,
    ) -> Rows:
        """Draw the rows of one draw of a step; dev rows only for signals that need them."""
        auxiliaries = [self.tasks.auxiliaries[n] for n in coefficients if n != self.end_task]
        parts = self.processes.size
        end, others = draw_segments(
            self._draws, self.tasks.end_task, auxiliaries, coefficients, budget, parts
        )
        dev = self._draws.rows(DEV, budget.dev, parts) if measures & AGAINST_DEV else None
        return replace(end, remember=remember and self.dev_head.remembers), others, dev

    def _rows_of_trial(self, coefficients: Mapping[str, float]) -> Rows:
        """Draw the rows of a step of a trial: as many of each task, none of them shared."""
        segments: list[Segment] = []
        for name, coefficient in coefficients.items():
            task, order, parts = self.tasks.auxiliaries.get(name), f"auxiliary:{name}", 1
            if task is None:
                task, order = self.tasks.end_task, END_TASK
                # Processes can share the end task's rows. An objective draws what it does with rows
                # once per batch, so splitting its batches would change the result.
                parts = 1 if segments else self.processes.size
            batches = self._draws.rows(order, self.settings.rows.end_task, parts)
            segments.append(Segment(task, batches, coefficient))
        first, *others = segments
        return first, others, None

    def _check(self, coefficients: Mapping[str, float]) -> None:
        """Raise WeighterError unless these are the coefficients of a step."""
        _expect_weights("the coefficient of {} in a step", coefficients)
        unknown = coefficients.keys() - {self.end_task} - self.tasks.auxiliaries.keys()
        if unknown or self.end_task not in coefficients:
            raise WeighterError(
                f"a step needs a coefficient for {self.end_task!r} and knows no task "
                f"{', '.join(sorted(unknown)) or '(none other)'}"
            )
        problem = problem_of_sum(coefficients.values(), normalised=self._normalised)
        if problem is not None:
            raise WeighterError(f"the sum of the coefficients of a step: {problem}")

    def _train_mode(self) -> None:
        """Turn dropout on, in the body and in every head."""
        for module in self.modules.values():
            module.train()
        for module in self._resting:
            module.eval()

    def _optimize(
        self,
        rows: Sequence[Callable[[], Rows]],
        measures: frozenset[Signal],
        training: Optimization,
    ) -> StepSignals | None:
        """Take one step, or skip it if its numbers are bad, and return what it measured."""
        made: StepResult = self._runner.gradient(rows, measures, training, self.steps + 1)
        self._count()
        if made.problem is not None:
            self._leave_out(made.problem, training)
            return None
        self._update(training)
        self.losses.add(made.losses)
        return made.signals

    def _update(self, training: Optimization) -> None:
        """Update the parameters from their finite gradients."""
        self._scale.good()
        self.numbers.good()
        training.update()

    def _leave_out(self, problem: str, training: Optimization) -> None:
        """Drop the gradient of a step with bad numbers.

        Raises:
            NumericalError: such steps are not skipped.
        """
        training.drop()
        self.numbers.bad(self.steps, problem)

    def _count(self) -> None:
        self.steps += 1
        for stream in self.tasks.streams.values():
            stream.after_step(self.steps)


def _expect_weights(what: str, weights: Mapping[str, float]) -> None:
    """Raise WeighterError if a weight, ``what`` of a task, is negative or not finite."""
    for name, value in weights.items():
        if not math.isfinite(value) or value < 0:
            raise WeighterError(
                f"{what.format(name)}: expected a finite number, not negative, got {value!r}"
            )


def _mean(draws: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean coefficients of a step's draws; zero in a draw without the task."""
    if len(draws) == 1:
        return dict(draws[0])
    names = dict.fromkeys(name for draw in draws for name in draw)
    return {name: math.fsum(d.get(name, 0.0) for d in draws) / len(draws) for name in names}
