"""The workbench: what a weighter trains with."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from aang_core.errors import AangError, WeighterError
from aang_core.gradients import DevHead, GradientEngine, LossScale, Segment
from aang_core.processes import Processes
from aang_core.tasks import Task
from aang_core.training.draws import Draws
from aang_core.training.numbers import NumberPolicy, OnNan
from aang_core.training.optimization import Optimization, Trial
from aang_core.training.rows import RowOrder, RowStream, share_rows
from aang_core.training.step_gradient import GradientMaker, Point, StepRows
from aang_core.training.updates import (
    DevLoss,
    Keepsake,
    ParameterUpdate,
    apply_updates,
)
from aang_core.weighting import DevLossAlong, Signal, StepSignals, Update


@dataclass(frozen=True)
class RowBudget:
    """Rows of one step.

    end_task, dev: rows of the end task's training and dev set.
    auxiliary: rows of all sampled objectives together, shared in proportion to their weights.
    at_once: the most rows of one task that go through the body in one pass; None for no limit.
    """

    end_task: int
    dev: int
    auxiliary: int
    at_once: int | None = None


@dataclass(frozen=True)
class _Round:
    """Where everything stood when a round began."""

    steps: int
    point: Point
    numbers: Mapping[str, Any]
    scale: Mapping[str, float]
    streams: Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class StepRecord:
    """What the last step did, for the run's log."""

    coefficients: Mapping[str, float]
    signals: StepSignals | None


class TrainingBench:
    """The end task, its auxiliary tasks and the optimiser behind the verbs of a workbench.

    dev: the end task over the rows that the dev gradient is taken on.
    meta_every: signals are measured in each so-manieth step, the first one included.
    score: the dev metric of the model as it stands.
    generator: source of every draw of the training loop: tasks, rows and what tasks do with them.
        Dropout alone draws from torch's own generator.
    streams: rows without end that auxiliary tasks draw from, by name.
    on_nan: what to do about a step whose loss or gradient is NaN or infinite.
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
        score: Callable[[], float] | None = None,
        streams: Mapping[str, RowStream] | None = None,
        on_nan: OnNan = "stop",
    ) -> None:
        self.body = body
        self.optimization = optimization
        self.steps = 0
        self.last: StepRecord | None = None
        self.numbers = NumberPolicy(on_nan)
        self._end_task = end_task
        self._auxiliaries = {task.name: task for task in auxiliaries}
        self._engine = engine
        self._budget = budget
        self._meta_every = meta_every
        self._score = score
        self._streams = dict(streams or {})
        self._dev_loss = DevLoss(body, end_task)
        self._draws = Draws(
            {
                "end-task": end_task,
                "dev": dev,
                **{f"auxiliary:{name}": task for name, task in self._auxiliaries.items()},
            },
            generator=generator,
            device=next(body.parameters()).device,
            by_length=engine.splits_rows,
            at_once=budget.at_once,
        )
        parts = (budget.end_task, budget.dev, budget.auxiliary)
        self._gradients = GradientMaker(
            body,
            engine,
            self._draws,
            most_rows=max(parts) if engine.splits_rows else sum(parts),
            drop=optimization.drop,
        )
        self._round_began = self._now()
        self._touched = False

    @property
    def generator(self) -> torch.Generator:
        """Source of every draw of the training loop but dropout, for checkpoints."""
        return self._draws.generator

    @property
    def end_task(self) -> str:
        return self._end_task.name

    def sample(self, n: int | None) -> tuple[str, ...]:
        names = tuple(self._auxiliaries)
        if n is None or n >= len(names):
            return names
        return self._draws.some(names, n)

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """See :meth:`aang_core.weighting.Workbench.step`.

        Raises:
            WeighterError: a coefficient names no task, is negative or not finite, or the end task
                has none.
            NumericalError: a loss or gradient is not finite.
            OutOfMemoryError: the memory does not do for one row at a time.
        """
        _check_coefficients("a step", coefficients)
        auxiliary = {name: c for name, c in coefficients.items() if name != self.end_task}
        unknown = [name for name in auxiliary if name not in self._auxiliaries]
        if unknown or self.end_task not in coefficients:
            raise WeighterError(
                f"a step needs a coefficient for {self.end_task!r} and knows no task "
                f"{', '.join(unknown) or '(none other)'}"
            )
        self._train_mode()
        rows = share_rows(self._budget.auxiliary, auxiliary) if auxiliary else {}
        measures = signals and self.steps % self._meta_every == 0

        def draw() -> StepRows:
            parts = self.processes.size
            return StepRows(
                Segment(
                    self._end_task,
                    self._draws.rows("end-task", self._budget.end_task, parts),
                    coefficients[self.end_task],
                ),
                [
                    Segment(
                        self._auxiliaries[name],
                        self._draws.rows(f"auxiliary:{name}", rows[name]),
                        coefficient,
                    )
                    for name, coefficient in auxiliary.items()
                ],
                self._draws.rows("dev", self._budget.dev, parts) if measures else None,
            )

        measured = self._optimize(draw, self.optimization, signals)
        self.last = StepRecord(coefficients, measured)
        return measured

    def trial(
        self, coefficients: Mapping[str, float], *, fraction: float = 1.0, offload: bool = False
    ) -> ParameterUpdate:
        """See :meth:`aang_core.weighting.Workbench.trial`.

        Raises:
            WeighterError: a coefficient names no task, is negative or not finite, or there is none.
        """
        _check_coefficients("a trial", coefficients)
        tasks = [self._named(name) for name in coefficients]
        if not tasks:
            raise WeighterError("a trial needs a task to train; it was given none")
        heads = [task.head for task in tasks]
        self._train_mode()
        training = self.optimization.trial(self.body, heads)
        before = Keepsake(training.parameters)
        rows = max(len(task) for task in tasks)

        def draw() -> StepRows:
            first, *others = [
                Segment(task, self._draws.rows(order, self._budget.end_task, parts), coefficient)
                for task, order, coefficient, parts in zip(
                    tasks,
                    map(self._order_of, coefficients),
                    coefficients.values(),
                    [self._parts_of(tasks[0]), *(1 for _ in tasks[1:])],
                    strict=True,
                )
            ]
            return StepRows(first, others, None)

        try:
            for _ in range(math.ceil(fraction * rows / self._budget.end_task)):
                self._optimize(draw, training, frozenset())
            return before.difference(tuple(coefficients), offload=offload)
        finally:
            before.put_back()

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        """See :meth:`aang_core.weighting.Workbench.apply`."""
        self._touched = True
        apply_updates(_own(updates), coefficients)

    def dev_loss(self, updates: Sequence[Update], coefficients: Sequence[float]) -> DevLossAlong:
        """See :meth:`aang_core.weighting.Workbench.dev_loss`."""
        batches = self._draws.rows("dev", self._budget.dev)
        loss, gradient = self._dev_loss.along(_own(updates), coefficients, batches)
        loss, *gradient = self.processes.agree([loss, *gradient])
        return DevLossAlong(loss, gradient)

    def dev_score(self) -> float:
        """See :meth:`aang_core.weighting.Workbench.dev_score`.

        Raises:
            AangError: the bench was made without a score.
        """
        if self._score is None:
            raise AangError("this weighter asks for dev scores; give the bench a score")
        (score,) = self.processes.agree([self._score()])
        return score

    def snapshot(self) -> Callable[[], None]:
        """See :meth:`aang_core.weighting.Workbench.snapshot`."""
        kept, touched = Keepsake(self.optimization.parameters), self._touched

        def put_back() -> None:
            kept.put_back()
            self._touched = touched

        return put_back

    def begin_round(self) -> None:
        """Bring the learning rates to where the steps of the run are, trials included."""
        self.optimization.catch_up(self.steps)
        self._round_began = self._now()
        self._touched = False

    def back_to_round(self) -> bool:
        """Stand where the round began, as if it had not.

        Returns whether that can be done: not if parameters have been changed since.
        """
        if self._touched:
            return False
        began = self._round_began
        self.steps = began.steps
        self.numbers.load_state_dict(began.numbers)
        self.scale.load_state_dict(began.scale)
        for name, state in began.streams.items():
            self._streams[name].load_state_dict(state)
        self._gradients.come_back(began.point)
        return True

    @property
    def processes(self) -> Processes:
        """Those that share the training."""
        return self._engine.processes

    @property
    def rows_at_once(self) -> int | None:
        """The most rows of one task that go through the body in one pass; None for no limit."""
        return self._draws.at_once

    def limit_rows(self, rows: int) -> None:
        """Let at most so many rows through the body at once from now on."""
        self._gradients.limit_rows(rows)

    @property
    def scale(self) -> LossScale:
        """What losses are scaled by in half precision, for checkpoints."""
        return self._engine.scale

    @property
    def dev_head(self) -> DevHead:
        """The head that the dev gradient goes through, for checkpoints."""
        return self._engine.dev_head

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """The body and every task's head by name, for checkpoints."""
        heads = {name: task.head for name, task in self._auxiliaries.items()}
        return {"body": self.body, self.end_task: self._end_task.head, **heads}

    def row_orders(self) -> Mapping[str, RowOrder]:
        """Where each task stands in its rows, for checkpoints."""
        return self._draws.orders

    def streams(self) -> Mapping[str, RowStream]:
        """Rows without end, for checkpoints."""
        return self._streams

    def _now(self) -> _Round:
        return _Round(
            self.steps,
            self._gradients.point(),
            self.numbers.state_dict(),
            self.scale.state_dict(),
            {name: stream.state_dict() for name, stream in self._streams.items()},
        )

    def _optimize(
        self,
        draw: Callable[[], StepRows],
        training: Optimization | Trial,
        signals: frozenset[Signal],
    ) -> StepSignals | None:
        """One step of ``training``, which is left out if its numbers are bad; what it measured."""
        made = self._gradients.make(draw, training, self.steps + 1)
        self.steps += 1
        for stream in self._streams.values():
            stream.after_step(self.steps)
        if made.problem is not None:
            training.drop()
            self.numbers.bad(self.steps, made.problem)
            return None
        self._engine.scale.good()
        self.numbers.good()
        self._touched |= training is self.optimization
        training.update()
        return made.signals(signals)

    def _named(self, name: str) -> Task:
        if name == self.end_task:
            return self._end_task
        if name not in self._auxiliaries:
            raise WeighterError(f"a trial of {name!r}, which is no task of this run")
        return self._auxiliaries[name]

    def _parts_of(self, task: Task) -> int:
        """The end task's rows can be shared; what an objective does with a batch's rows is drawn
        for the batch, so that its batches must be those that one process would have."""
        return self.processes.size if task is self._end_task else 1

    def _order_of(self, name: str) -> str:
        return "end-task" if name == self.end_task else f"auxiliary:{name}"

    def _train_mode(self) -> None:
        self.body.train()
        for task in (self._end_task, *self._auxiliaries.values()):
            task.head.train()


def _check_coefficients(what: str, coefficients: Mapping[str, float]) -> None:
    for name, coefficient in coefficients.items():
        if not math.isfinite(coefficient) or coefficient < 0:
            raise WeighterError(
                f"the coefficient of {name} in {what}: expected a finite number, not negative, "
                f"got {coefficient!r}"
            )


def _own(updates: Sequence[Update]) -> list[ParameterUpdate]:
    strange = [update for update in updates if not isinstance(update, ParameterUpdate)]
    if strange:
        raise WeighterError(f"{strange[0]!r} is no update that this bench has handed out")
    return [update for update in updates if isinstance(update, ParameterUpdate)]
