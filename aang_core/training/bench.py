"""The workbench: what a weighter trains with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from aang_core.errors import AangError
from aang_core.gradients import GradientEngine, Segment
from aang_core.tasks import Batch, Task
from aang_core.training.optimization import Optimization
from aang_core.training.rows import RowOrder, group_by_length, share_rows
from aang_core.weighting import Signal, StepSignals

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

    def _train_mode(self) -> None:
        self.body.train()
        for task in (self._end_task, *self._auxiliaries.values()):
            task.head.train()
