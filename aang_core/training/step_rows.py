"""The rows of a step: which tasks share them, and in which batches they come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor

from aang_core.errors import ConfigError
from aang_core.gradients import Rider, Segment
from aang_core.tasks.signals import AGAINST_DEV, Signal
from aang_core.tasks.task import Batch, SharingTask, Task, couples_rows, shares_of, views_of
from aang_core.training.draws import Draws
from aang_core.training.rows import rows_of_draw, share_rows


@dataclass(frozen=True)
class RowBudget:
    """Number of rows of one step.

    Attributes:
        end_task: rows of the end task's training set.
        dev: rows of its dev set.
        auxiliary: rows of all sampled objectives together, shared in proportion to their weights.
        at_once: most rows of one task in one pass through the body; None for no limit.
    """

    end_task: int
    dev: int
    auxiliary: int
    at_once: int | None = None

    def most(self, *, together: bool) -> int:
        """Most rows of one pass through the body, with all tasks ``together`` or one by one."""
        parts = (self.end_task, self.dev, self.auxiliary)
        return sum(parts) if together else max(parts)

    def of_draw(self, draws: int, number: int) -> "RowBudget":
        """The rows of draw ``number``, from 0, of a step with ``draws`` draws."""
        end_task, dev, auxiliary = (
            rows_of_draw(rows, draws, number) for rows in (self.end_task, self.dev, self.auxiliary)
        )
        return RowBudget(end_task, dev, auxiliary, self.at_once)


@dataclass(frozen=True)
class StepRows:
    """The rows of one step.

    Attributes:
        end: the end task's rows.
        auxiliaries: the objectives' rows.
        dev: rows to measure against; None for a step without the dev gradient.
        measures: the signals that the step measures.
    """

    end: Segment
    auxiliaries: Sequence[Segment]
    dev: Sequence[Batch] | None = None
    measures: frozenset[Signal] = frozenset()


class Plan(Protocol):
    """Which rows a step takes; they can be drawn more than once."""

    def draw(self, draws: Draws, parts: int) -> StepRows:
        """Draw the rows.

        Args:
            draws: source of the rows.
            parts: least number of batches that rows shared by several processes are split into.
        """
        ...


@dataclass(frozen=True)
class StepPlan:
    """One draw of a step: the end task and some objectives.

    Attributes:
        end_task: the end task.
        auxiliaries: the objectives of the draw.
        coefficients: of all their losses, by name.
        rows: number of rows.
        measures: the signals to measure; dev rows are drawn only for those that need them.
        remember: whether the dev head observes the end task's rows.
    """

    end_task: Task
    auxiliaries: Sequence[Task]
    coefficients: Mapping[str, float]
    rows: RowBudget
    measures: frozenset[Signal]
    remember: bool

    def draw(self, draws: Draws, parts: int) -> StepRows:
        """See `Plan.draw`."""
        end, others = end_and_auxiliaries(
            draws, self.end_task, self.auxiliaries, self.coefficients, self.rows, parts
        )
        against_dev = self.measures & AGAINST_DEV
        dev = draws.rows("dev", self.rows.dev, parts) if against_dev else None
        return StepRows(replace(end, remember=self.remember), others, dev, self.measures)


@dataclass(frozen=True)
class TrialPlan:
    """A step of a trial: the same number of rows of each task, none of them shared.

    Attributes:
        tasks: the tasks, by the name of their row order.
        coefficients: of their losses.
        rows: rows of each task.
    """

    tasks: Mapping[str, Task]
    coefficients: Sequence[float]
    rows: int

    def draw(self, draws: Draws, parts: int) -> StepRows:
        """See `Plan.draw`."""
        segments: list[Segment] = []
        for (order, task), coefficient in zip(self.tasks.items(), self.coefficients, strict=True):
            # Processes can share the end task's rows. An objective draws what it does with rows
            # once per batch, so splitting its batches would change the result.
            shared = order == "end-task" and not segments
            batches = draws.rows(order, self.rows, parts if shared else 1)
            segments.append(Segment(task, batches, coefficient))
        first, *others = segments
        return StepRows(first, others)


def rides(task: Task, end_task: Task) -> bool:
    """Whether ``task`` shares the end task's rows and its pass through the body."""
    name = shares_of(end_task)
    return name is not None and shares_of(task) == name


def rows_together(
    end_task: Task, auxiliaries: Sequence[Task], budget: RowBudget
) -> tuple[int, str]:
    """How many rows must go through the body in one pass.

    Returns:
        The number of rows, and the name of the task that needs them together.

    Raises:
        ConfigError: there are more than ``budget.at_once``.
    """
    needs = [(1, end_task.name)]
    for task in auxiliaries:
        if rides(task, end_task):
            needs.append((budget.end_task, task.name))
        elif couples_rows(task):
            needs.append((budget.auxiliary, task.name))
    rows, name = max(needs, key=lambda need: need[0])
    if budget.at_once is not None and rows > budget.at_once:
        raise ConfigError(
            f"--micro-batch-size {budget.at_once}: {name} needs its {rows} rows in one pass "
            "through the encoder, because it compares them with each other or shares the end "
            f"task's pass; give {rows} or more, take fewer rows a step, or leave the objective out"
        )
    return rows, name


def end_and_auxiliaries(
    draws: Draws,
    end_task: Task,
    auxiliaries: Sequence[Task],
    coefficients: Mapping[str, float],
    budget: RowBudget,
    parts: int,
) -> tuple[Segment, list[Segment]]:
    """Draw the rows of a step.

    Objectives that read the end task's rows of the step unchanged share its pass. Other objectives
    that differ only in their output share rows and a pass; they take as many rows as the largest of
    their shares. A shared pass stays in memory until its last task is done, so if it has more rows
    than may go through the body at once, each objective makes its own passes over the same rows.
    Shares count rows of the body: an objective with two views draws half as many.

    Args:
        draws: source of the rows.
        end_task: the end task.
        auxiliaries: the objectives of the step.
        coefficients: of the losses of the end task and of ``auxiliaries``, by name.
        budget: number of rows.
        parts: least number of batches that the end task's rows are split into.

    Returns:
        The end task's segment and the objectives' segments.
    """
    indices = draws.take("end-task", budget.end_task)
    batches = draws.batches("end-task", indices, parts)
    riders = [task for task in auxiliaries if rides(task, end_task)]
    end = Segment(
        end_task,
        batches,
        coefficients[end_task.name],
        [_rider(draws, task, batches, coefficients[task.name]) for task in riders],
    )
    others = [task for task in auxiliaries if not rides(task, end_task)]
    if not others:
        return end, []
    shares = share_rows(budget.auxiliary, {task.name: coefficients[task.name] for task in others})
    return end, [
        segment
        for group in _groups(others)
        for segment in _segments(draws, group, shares, coefficients, indices)
    ]


def _groups(tasks: Sequence[Task]) -> list[list[Task]]:
    """Groups of tasks that share rows, in the order of each group's first task.

    A task that couples rows leads its group, because its rows must stay in one batch.
    """
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        name = shares_of(task)
        # The prefix keeps names of shared rows apart from names of tasks, which are unique.
        groups.setdefault(f"shared {name}" if name is not None else task.name, []).append(task)
    return [sorted(group, key=lambda task: not couples_rows(task)) for group in groups.values()]


def _segments(
    draws: Draws,
    group: Sequence[Task],
    shares: Mapping[str, int],
    coefficients: Mapping[str, float],
    of_end_task: Tensor,
) -> list[Segment]:
    """One segment for a group of tasks, or one for each task over the same rows."""
    lead, *others = group
    order = f"auxiliary:{lead.name}"
    rows = max(1, max(shares[task.name] for task in group) // views_of(lead))
    if isinstance(lead, SharingTask) and lead.of_step:
        batches = draws.batches(order, of_end_task[:rows])
    else:
        batches = draws.rows(order, rows)
    if draws.at_once is not None and sum(batch.rows for batch in batches) > draws.at_once:
        alone = [_alone(draws, task, batches, coefficients[task.name]) for task in others]
        return [*alone, Segment(lead, batches, coefficients[lead.name])]
    riders = [_rider(draws, task, batches, coefficients[task.name]) for task in others]
    return [Segment(lead, batches, coefficients[lead.name], riders)]


def _alone(draws: Draws, task: Task, batches: Sequence[Batch], coefficient: float) -> Segment:
    """A segment of its own for a task, over the rows of ``batches``, which another task made."""
    assert isinstance(task, SharingTask)
    own = [replace(batch, targets=draws.ride(task, [batch])) for batch in batches]
    return Segment(task, own, coefficient)


def _rider(draws: Draws, task: Task, batches: Sequence[Batch], coefficient: float) -> Rider:
    assert isinstance(task, SharingTask)
    return Rider(task, draws.ride(task, batches), coefficient)
