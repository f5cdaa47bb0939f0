"""The workbench: what a weighter trains with."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from aang_core.errors import AangError
from aang_core.gradients import DevHead, GradientEngine, Segment
from aang_core.tasks import Batch, Task
from aang_core.training.optimization import Optimization
from aang_core.training.rows import RowOrder, group_by_length, share_rows
from aang_core.training.updates import (
    DevLoss,
    Keepsake,
    ParameterUpdate,
    apply_updates,
)
from aang_core.weighting import DevLossAlong, Signal, StepSignals, Update

PASS_OVERHEAD = 256
"""What one more pass through the body is taken to cost, in tokens; it only decides where rows of a
task are split by length, not what a step computes."""


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
    ) -> None:
        self.body = body
        self.optimization = optimization
        self.generator = generator
        self.steps = 0
        self.last: StepRecord | None = None
        self._end_task = end_task
        self._dev = dev
        self._auxiliaries = {task.name: task for task in auxiliaries}
        self._engine = engine
        self._budget = budget
        self._meta_every = meta_every
        self._score = score
        self._dev_loss = DevLoss(body, end_task)
        self._orders = {
            name: RowOrder(len(task))
            for name, task in [
                ("end-task", end_task),
                ("dev", dev),
                *((f"auxiliary:{name}", task) for name, task in self._auxiliaries.items()),
            ]
        }
        self._device = next(body.parameters()).device

    @property
    def end_task(self) -> str:
        return self._end_task.name

    def sample(self, n: int | None) -> tuple[str, ...]:
        names = tuple(self._auxiliaries)
        if n is None or n >= len(names):
            return names
        drawn = torch.randperm(len(names), generator=self.generator)[:n]
        return tuple(names[i] for i in drawn.tolist())

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """See :meth:`aang_core.weighting.Workbench.step`.

        Raises:
            AangError: a coefficient names no task, or the end task has none.
        """
        auxiliary = {name: c for name, c in coefficients.items() if name != self.end_task}
        unknown = [name for name in auxiliary if name not in self._auxiliaries]
        if unknown or self.end_task not in coefficients:
            raise AangError(
                f"a step needs a coefficient for {self.end_task!r} and knows no task "
                f"{', '.join(unknown) or '(none other)'}"
            )
        self._train_mode()
        end = Segment(
            self._end_task,
            self._draw(self._end_task, "end-task", self._budget.end_task),
            coefficients[self.end_task],
        )
        rows = share_rows(self._budget.auxiliary, auxiliary) if auxiliary else {}
        segments = [
            Segment(task, self._draw(task, f"auxiliary:{name}", rows[name]), auxiliary[name])
            for name, task in ((name, self._auxiliaries[name]) for name in auxiliary)
        ]
        measures = signals and self.steps % self._meta_every == 0
        dev = self._draw(self._dev, "dev", self._budget.dev) if measures else None
        statistics = self._engine.step(end, segments, dev)
        self.optimization.step()
        self.steps += 1
        measured = None if statistics is None else statistics.read(signals)
        self.last = StepRecord(coefficients, measured)
        return measured

    def trial(
        self, coefficients: Mapping[str, float], *, fraction: float = 1.0, offload: bool = False
    ) -> ParameterUpdate:
        """See :meth:`aang_core.weighting.Workbench.trial`.

        Raises:
            AangError: a coefficient names no task, or there is none.
        """
        tasks = [self._named(name) for name in coefficients]
        if not tasks:
            raise AangError("a trial needs a task to train; it was given none")
        heads = [task.head for task in tasks]
        self._train_mode()
        training = self.optimization.trial(self.body, heads)
        before = Keepsake(training.parameters)
        rows = max(len(task) for task in tasks)
        for _ in range(math.ceil(fraction * rows / self._budget.end_task)):
            first, *others = [
                Segment(task, self._draw(task, order, self._budget.end_task), coefficient)
                for task, order, coefficient in zip(
                    tasks, map(self._order_of, coefficients), coefficients.values(), strict=True
                )
            ]
            self._engine.step(first, others, None)
            training.step()
            self.steps += 1
        update = before.difference(tuple(coefficients), offload=offload)
        before.put_back()
        return update

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        """See :meth:`aang_core.weighting.Workbench.apply`."""
        apply_updates(_own(updates), coefficients)

    def dev_loss(self, updates: Sequence[Update], coefficients: Sequence[float]) -> DevLossAlong:
        """See :meth:`aang_core.weighting.Workbench.dev_loss`."""
        batches = self._draw(self._dev, "dev", self._budget.dev)
        return DevLossAlong(*self._dev_loss.along(_own(updates), coefficients, batches))

    def dev_score(self) -> float:
        """See :meth:`aang_core.weighting.Workbench.dev_score`.

        Raises:
            AangError: the bench was made without a score.
        """
        if self._score is None:
            raise AangError("this weighter asks for dev scores; give the bench a score")
        return self._score()

    def snapshot(self) -> Callable[[], None]:
        """See :meth:`aang_core.weighting.Workbench.snapshot`."""
        return Keepsake(self.optimization.parameters).put_back

    def begin_round(self) -> None:
        """Bring the learning rates to where the steps of the run are, trials included."""
        self.optimization.catch_up(self.steps)

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
        return self._orders

    def _draw(self, task: Task, order: str, rows: int) -> list[Batch]:
        indices = self._orders[order].take(rows, self.generator)
        groups = [list(range(rows))]
        if self._engine.splits_rows and task.lengths is not None:
            groups = group_by_length(task.lengths[indices].tolist(), PASS_OVERHEAD)
        at_once = self._budget.at_once or rows
        return [
            task.batch(indices[group[start : start + at_once]], self.generator).to(self._device)
            for group in groups
            for start in range(0, len(group), at_once)
        ]

    def _named(self, name: str) -> Task:
        if name == self.end_task:
            return self._end_task
        if name not in self._auxiliaries:
            raise AangError(f"a trial of {name!r}, which is no task of this run")
        return self._auxiliaries[name]

    def _order_of(self, name: str) -> str:
        return "end-task" if name == self.end_task else f"auxiliary:{name}"

    def _train_mode(self) -> None:
        self.body.train()
        for task in (self._end_task, *self._auxiliaries.values()):
            task.head.train()


def _own(updates: Sequence[Update]) -> list[ParameterUpdate]:
    strange = [update for update in updates if not isinstance(update, ParameterUpdate)]
    if strange:
        raise AangError(f"{strange[0]!r} is no update that this bench has handed out")
    return [update for update in updates if isinstance(update, ParameterUpdate)]
