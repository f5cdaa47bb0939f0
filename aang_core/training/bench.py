"""The workbench: what a weighter trains with."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from aang_core.errors import AangError, WeighterError
from aang_core.gradients import DevHead, GradientEngine, LossScale, Segment
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch, Task
from aang_core.tasks.weighting import DevLossAlong, Signal, StepSignals, Update
from aang_core.training.coefficients import check_coefficients, check_odds, mean_coefficients
from aang_core.training.draws import Draws
from aang_core.training.draws_per_step import mean_gradient
from aang_core.training.numbers import NumberPolicy, OnNan
from aang_core.training.optimization import Optimization, Trial
from aang_core.training.rows import RowOrder, RowStream
from aang_core.training.signal_mean import SignalMean
from aang_core.training.step_gradient import GradientMaker, Point, StepRows
from aang_core.training.step_rows import RowBudget, end_and_auxiliaries, rows_together
from aang_core.training.updates import (
    DevLoss,
    Keepsake,
    ParameterUpdate,
    apply_updates,
)


@dataclass(frozen=True)
class _Round:
    """Where everything stood when a round began."""

    steps: int
    point: Point
    numbers: Mapping[str, Any]
    scale: Mapping[str, float]
    streams: Mapping[str, dict[str, Any]]
    held_signals: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class StepRecord:
    """What the last step did, for the run's log."""

    coefficients: Mapping[str, float]
    signals: StepSignals | None


class TrainingBench:
    """The end task, its auxiliary tasks and the optimiser behind the verbs of a workbench.

    dev: the end task over the rows that the dev gradient is taken on.
    meta_every: signals are measured every so many steps, the first one included, if the dev head is
        ready by then.
    draws_per_step: draws that a step's rows are shared among, by weighters that take several.
    weights_every: a weighter gets the signals of so many measured steps together, as their mean.
    score: the dev metric of the model as it stands, over as many dev rows as it is given, the same
        ones each time; over all of them for None.
    generator: source of every draw of the training loop: tasks, rows and what tasks do with them.
        Dropout alone draws from torch's own generator.
    streams: rows without end that auxiliary tasks draw from, by name.
    on_nan: what to do about a step whose loss or gradient is NaN or infinite.
    remembers: whether the dev head remembers rows of steps that ask for no signals, too; for those
        who measure beside the training.
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
    ) -> None:
        self.body = body
        self.draws_per_step = draws_per_step
        self.held_signals = SignalMean(weights_every)
        self.optimization = optimization
        self.steps = 0
        self.last: StepRecord | None = None
        self.numbers = NumberPolicy(on_nan)
        self.remembers = False
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
                **({"dev-head": end_task} if engine.dev_head.draws else {}),
                **{f"auxiliary:{name}": task for name, task in self._auxiliaries.items()},
            },
            generator=generator,
            device=next(body.parameters()).device,
            by_length=engine.splits_rows,
            at_once=budget.at_once,
        )
        engine.dev_head.draw_from(partial(self._draws.rows, "dev-head"))
        parts = (budget.end_task, budget.dev, budget.auxiliary)
        whole, sake = rows_together(end_task, auxiliaries, budget)
        self._gradients = GradientMaker(
            body,
            engine,
            self._draws,
            most_rows=max(parts) if engine.splits_rows else sum(parts),
            least_rows=whole,
            sake=sake,
            drop=optimization.drop,
        )
        self._round_began = self._now()
        self._touched = False

    @property
    def generator(self) -> torch.Generator:
        """Source of every draw of the training loop but dropout, for weighters and checkpoints."""
        return self._draws.generator

    @property
    def steps_left(self) -> int:
        """See :meth:`aang_core.tasks.weighting.Workbench.steps_left`."""
        return max(self.optimization.steps - self.steps, 0)

    @property
    def end_task(self) -> str:
        return self._end_task.name

    def sample(self, n: int | None, weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """See :meth:`aang_core.tasks.weighting.Workbench.sample`.

        Raises:
            WeighterError: the weights are not those of all auxiliary tasks, one of them is negative
                or not finite, or fewer than n are above zero.
        """
        names = tuple(self._auxiliaries)
        if weights is not None:
            check_odds(weights, names)
        if n is None or n >= len(names):
            return names
        if weights is None:
            return self._draws.some(names, n)
        of_names = [weights[name] for name in names]
        if sum(weight > 0 for weight in of_names) < n:
            raise WeighterError(f"a draw of {n} tasks, of which fewer have a weight above zero")
        return self._draws.weighted(names, of_names, n)

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """See :meth:`aang_core.tasks.weighting.Workbench.step`."""
        return self.step_over([coefficients], signals)

    def step_over(
        self, draws: Sequence[Mapping[str, float]], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """See :meth:`aang_core.tasks.weighting.Workbench.step_over`.

        Raises:
            WeighterError: a coefficient names no task, is negative or not finite, or the end task
                has none.
            NumericalError: a loss or gradient is not finite.
            OutOfMemoryError: the memory does not do for one row at a time, or for rows that have to
                stay together.
        """
        drawing = [
            self._drawing(coefficients, self._budget.of_draw(len(draws), number), signals)
            for number, coefficients in enumerate(draws)
        ]
        measured = self._optimize(drawing, self.optimization, signals)
        self.last = StepRecord(mean_coefficients(draws), measured)
        return self.held_signals.add(measured)

    def _drawing(
        self, coefficients: Mapping[str, float], budget: RowBudget, signals: frozenset[Signal]
    ) -> Callable[[], StepRows]:
        """What draws the rows of one draw of a step."""
        check_coefficients("a step", coefficients)
        auxiliary = {name: c for name, c in coefficients.items() if name != self.end_task}
        unknown = [name for name in auxiliary if name not in self._auxiliaries]
        if unknown or self.end_task not in coefficients:
            raise WeighterError(
                f"a step needs a coefficient for {self.end_task!r} and knows no task "
                f"{', '.join(unknown) or '(none other)'}"
            )
        self._train_mode()
        wanted = bool(signals)
        measures = wanted and self.steps % self._meta_every == 0 and self.dev_head.ready
        remember = (wanted or self.remembers) and self.dev_head.remembers
        tasks = [self._auxiliaries[name] for name in auxiliary]

        def draw() -> StepRows:
            parts = self.processes.size
            end, others = end_and_auxiliaries(
                self._draws, self._end_task, tasks, coefficients, budget, parts
            )
            dev = self._draws.rows("dev", budget.dev, parts) if measures else None
            return StepRows(replace(end, remember=remember), others, dev)

        return draw

    def trial(
        self, coefficients: Mapping[str, float], *, fraction: float = 1.0, offload: bool = False
    ) -> ParameterUpdate:
        """See :meth:`aang_core.tasks.weighting.Workbench.trial`.

        Raises:
            WeighterError: a coefficient names no task, is negative or not finite, or there is none.
        """
        check_coefficients("a trial", coefficients)
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
                self._optimize([draw], training, frozenset())
            return before.difference(tuple(coefficients), offload=offload)
        finally:
            before.put_back()

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        """See :meth:`aang_core.tasks.weighting.Workbench.apply`."""
        self._touched = True
        apply_updates(_own(updates), coefficients)

    def dev_loss(
        self,
        updates: Sequence[Update],
        coefficients: Sequence[float],
        *,
        batches: int | None = None,
    ) -> DevLossAlong:
        """See :meth:`aang_core.tasks.weighting.Workbench.dev_loss`."""
        rows = self._budget.dev
        drawn: Iterable[Batch] = self._draws.every_row("dev", rows)
        if batches is not None:
            drawn = [batch for _ in range(batches) for batch in self._draws.rows("dev", rows)]
        loss, gradient = self._dev_loss.along(_own(updates), coefficients, drawn, self.processes)
        loss, *gradient = self.processes.agree([loss, *gradient])
        return DevLossAlong(loss, gradient)

    def dev_score(self, rows: int | None = None) -> float:
        """See :meth:`aang_core.tasks.weighting.Workbench.dev_score`.

        Raises:
            AangError: the bench was made without a score.
            WeighterError: not a single row is asked for.
        """
        if rows is not None and rows < 1:
            raise WeighterError(f"a dev score over {rows} rows; ask for 1 or more, or all of them")
        if self._score is None:
            raise AangError("this weighter asks for dev scores; give the bench a score")
        (score,) = self.processes.agree([self._score(rows)])
        return score

    def snapshot(self) -> Callable[[], None]:
        """See :meth:`aang_core.tasks.weighting.Workbench.snapshot`."""
        kept, touched = Keepsake(self.optimization.parameters), self._touched

        def put_back() -> None:
            kept.put_back()
            self._touched = touched

        return put_back

    @contextmanager
    def aside(self) -> Iterator[Draws]:
        """The draws of the training, which stand afterwards where they stood before."""
        point = self._gradients.point()
        try:
            yield self._draws
        finally:
            self._gradients.come_back(point)

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
        self.held_signals.load_state_dict(began.held_signals)
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
            self.held_signals.state_dict(),
        )

    def _optimize(
        self,
        draws: Sequence[Callable[[], StepRows]],
        training: Optimization | Trial,
        signals: frozenset[Signal],
    ) -> StepSignals | None:
        """One step of ``training``, which is left out if its numbers are bad; what it measured."""
        made = mean_gradient(self._gradients, draws, training, self.steps + 1)
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


def _own(updates: Sequence[Update]) -> list[ParameterUpdate]:
    strange = [update for update in updates if not isinstance(update, ParameterUpdate)]
    if strange:
        raise WeighterError(f"{strange[0]!r} is no update that this bench has handed out")
    return [update for update in updates if isinstance(update, ParameterUpdate)]
