"""Which rows a step takes: random orders, shares of a budget, tasks that share rows, batches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from aang_core.errors import ConfigError
from aang_core.gradients.segments import PASS_OVERHEAD, Rider, Segment, group_by_length
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch, Task, to_device

OTHER_DROPOUT = 1_000_003
"""Distance between the dropout seeds of two processes; larger than any number of steps."""


class RowStream(Protocol):
    """An endless source of rows that replaces the rows tasks draw from as training goes on."""

    @property
    def digest(self) -> str:
        """Fingerprint of the rows that tasks draw from now."""
        ...

    def after_step(self, steps: int) -> None:
        """Called after every step with the number of steps so far."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Which rows these are, as values that JSON can hold."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the rows of a saved state."""
        ...


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

    def of_draw(self, draws: int, number: int) -> "RowBudget":
        """The rows of draw ``number``, from 0, of a step with ``draws`` draws.

        The first draws take the remainder.

        Examples:
            >>> budget = RowBudget(end_task=10, dev=4, auxiliary=8)
            >>> [budget.of_draw(4, number).end_task for number in range(4)]
            [3, 3, 2, 2]
        """
        end_task, dev, auxiliary = (
            rows // draws + (number < rows % draws)
            for rows in (self.end_task, self.dev, self.auxiliary)
        )
        return replace(self, end_task=end_task, dev=dev, auxiliary=auxiliary)


class RowOrder:
    """Row indices of one task: every row once per pass, in a new random order for each pass.

    Args:
        rows: number of rows of the task, at least one.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._order = torch.empty(0, dtype=torch.int64)
        self._position = 0

    def take(self, n: int, generator: torch.Generator) -> Tensor:
        """The next ``n`` row indices, int64 ``[n]``; a new pass starts where one ends."""
        taken = []
        while n > 0:
            if self._position == len(self._order):
                self._order = torch.randperm(self.rows, generator=generator)
                self._position = 0
            part = self._order[self._position : self._position + n]
            self._position += len(part)
            n -= len(part)
            taken.append(part)
        return torch.cat(taken)

    def state_dict(self) -> dict[str, Any]:
        """Position and order, int64 ``[rows]``; not copied, because no order changes in place."""
        return {"position": self._position, "order": self._order}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved position and order.

        An order of another number of rows is left out, and a new pass begins: the user has resumed
        the training with other data.
        """
        if len(state["order"]) in (0, self.rows):
            self._position, self._order = state["position"], state["order"]


class BalancedOrder:
    """Row indices of one task: the classes take turns, each with its own rows in random order.

    Every class comes once before any comes again, in a new random order each time. Within a class,
    every row comes once per pass over the class. So rows of a rare class come more often than those
    of a frequent one.

    Args:
        strata: int64 ``[N]``, the class of each row.

    Examples:
        >>> import torch
        >>> order = BalancedOrder(torch.tensor([0, 0, 0, 0, 0, 1]))
        >>> order.take(6, torch.Generator().manual_seed(0)).tolist().count(5)
        3
    """

    def __init__(self, strata: Tensor) -> None:
        self._rows = [(strata == c).nonzero().flatten() for c in strata.unique().tolist()]
        self._orders = [RowOrder(len(rows)) for rows in self._rows]
        self._turns = RowOrder(len(self._rows))

    def take(self, n: int, generator: torch.Generator) -> Tensor:
        """The next ``n`` row indices, int64 ``[n]``."""
        turns = self._turns.take(n, generator)
        taken = torch.empty(n, dtype=torch.int64)
        for c in turns.unique().tolist():
            places = (turns == c).nonzero().flatten()
            taken[places] = self._rows[c][self._orders[c].take(len(places), generator)]
        return taken

    def state_dict(self) -> dict[str, Any]:
        """The orders of the classes and of the rows of each; not copied."""
        return {
            "turns": self._turns.state_dict(),
            "classes": [order.state_dict() for order in self._orders],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore saved orders."""
        self._turns.load_state_dict(state["turns"])
        # Their number differs only if the user has resumed the training with other data.
        for order, saved in zip(self._orders, state["classes"], strict=False):
            order.load_state_dict(saved)


class Draws:
    """Everything that a run draws at random: rows of tasks, as batches on the device, and names.

    Args:
        tasks: the tasks, by the name of their row order.
        generator: source of every draw but dropout, which uses torch's global generator.
        device: where batches go.
        by_length: whether to put rows of similar length into the same batch.
        at_once: most rows of a batch; None for no limit.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        generator: torch.Generator,
        device: torch.device,
        by_length: bool = True,
        at_once: int | None = None,
    ) -> None:
        self.generator = generator
        self.at_once = at_once
        self.orders = {
            name: RowOrder(len(task)) if task.strata is None else BalancedOrder(task.strata)
            for name, task in tasks.items()
        }
        self._tasks = dict(tasks)
        self._device = device
        self._by_length = by_length

    @property
    def heads(self) -> list[nn.Module]:
        """The head of every task."""
        return [task.head for task in self._tasks.values()]

    def take(self, order: str, count: int) -> Tensor:
        """Indices of the next rows of a task, int64 ``[count]``."""
        return self.orders[order].take(count, self.generator)

    def rows(self, order: str, count: int, parts: int = 1) -> list[Batch]:
        """The next rows of a task, see `batches`."""
        return self.batches(order, self.take(order, count), parts)

    def batches(self, order: str, indices: Tensor, parts: int = 1) -> list[Batch]:
        """Rows of a task, as the batches in which they go through the body.

        The rows of a task that couples them stay in one batch, whatever their lengths and number.

        Args:
            order: name of the row order.
            indices: int64 ``[B]``, the rows.
            parts: least number of batches for each group of rows of similar length.
        """
        task, rows = self._tasks[order], len(indices)
        if task.couples_rows:
            return [self._batch(task, indices)]
        groups = [list(range(rows))]
        if self._by_length and task.lengths is not None:
            groups = group_by_length(task.lengths[indices].tolist(), PASS_OVERHEAD)
        return [
            replace(self._batch(task, numbers), numbers=numbers)
            for group in groups
            for size in [min(self.at_once or rows, math.ceil(len(group) / parts))]
            for start in range(0, len(group), size)
            for numbers in [indices[group[start : start + size]]]
        ]

    def ride(self, task: Task, batches: Sequence[Batch]) -> dict[str, Tensor]:
        """The targets of a task that shares the rows of ``batches``."""
        targets = task.ride(batches, self.generator)
        return {name: to_device(value, self._device) for name, value in targets.items()}

    def every_row(self, order: str, at_once: int) -> Iterator[Batch]:
        """Every row of a task once, shortest first, in batches of at most ``at_once`` rows."""
        task = self._tasks[order]
        lengths = task.lengths
        rows = torch.arange(len(task)) if lengths is None else torch.argsort(lengths, stable=True)
        for part in rows.split(min(at_once, self.at_once or at_once)):
            yield self._batch(task, part)

    def _batch(self, task: Task, indices: Tensor) -> Batch:
        batch = task.batch(indices, self.generator).to(self._device)
        return task.prepared(batch, self.generator)

    def some(
        self, names: tuple[str, ...], n: int, weights: Sequence[float] | None = None
    ) -> tuple[str, ...]:
        """Draw ``n`` of ``names`` without replacement.

        Args:
            names: what to draw from.
            n: how many to draw.
            weights: of each name, which is drawn in proportion to its weight among those left;
                None for equal weights.
        """
        if weights is None:
            drawn = torch.randperm(len(names), generator=self.generator)[:n]
        else:
            odds = torch.tensor(weights, dtype=torch.float64)
            drawn = torch.multinomial(odds, n, generator=self.generator)
        return tuple(names[i] for i in drawn.tolist())

    def state_dict(self) -> dict[str, Any]:
        """Generators and row orders. Called before every step, so it copies nothing large."""
        generators = {
            "bench": self.generator.get_state(),
            "torch": torch.default_generator.get_state(),
        }
        if self._device.type == "cuda":
            generators["device"] = torch.cuda.get_rng_state(self._device)
        orders = {name: order.state_dict() for name, order in self.orders.items()}
        return {"generators": generators, "rows": orders}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, so that later draws repeat."""
        generators = state["generators"]
        for name, order in self.orders.items():
            order.load_state_dict(state["rows"][name])
        self.generator.set_state(generators["bench"])
        torch.default_generator.set_state(generators["torch"])
        # A state saved on another kind of device has no generator state for this one.
        if self._device.type == "cuda" and "device" in generators:
            torch.cuda.set_rng_state(generators["device"], self._device)


def separate_dropout(seed: int, steps: int, processes: Processes) -> None:
    """Give every process but the first its own dropout seed, before a round.

    Dropout draws from torch's global generator; processes that compute different rows should also
    drop different units. What they drop depends on seed and steps alone, so that a resumed training
    drops the same.

    Args:
        seed: seed of the training.
        steps: steps taken so far.
        processes: the processes that share the training.
    """
    if not processes.first:
        torch.manual_seed(seed + OTHER_DROPOUT * processes.rank + steps)


def share_rows(total: int, coefficients: Mapping[str, float]) -> dict[str, int]:
    """Share rows among tasks in proportion to their coefficients, at least one each.

    The loss of a task that does not compare its rows is the mean over its own targets, so shares
    change the variance of its gradient, not its expectation.

    Args:
        total: number of rows to share.
        coefficients: of the tasks, by name.

    Returns:
        Rows of each task, rounded by largest remainder. They add up to ``total`` unless there are
        more tasks than rows.
    """
    weight = sum(coefficients.values())
    if weight == 0:
        coefficients, weight = dict.fromkeys(coefficients, 1.0), float(len(coefficients))
    spare = max(total - len(coefficients), 0)
    exact = {name: spare * c / weight for name, c in coefficients.items()}
    rows = {name: 1 + int(share) for name, share in exact.items()}
    left = max(total, len(coefficients)) - sum(rows.values())
    by_remainder = sorted(exact, key=lambda name: int(exact[name]) - exact[name])
    for name in by_remainder[:left]:
        rows[name] += 1
    return rows


def rides(task: Task, end_task: Task) -> bool:
    """Whether ``task`` shares the end task's rows and its pass through the body."""
    return task.shares is not None and task.shares == end_task.shares


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
        elif task.couples_rows:
            needs.append((max(2 * task.views, budget.auxiliary), task.name))
    rows, name = max(needs, key=lambda need: need[0])
    if budget.at_once is not None and rows > budget.at_once:
        raise ConfigError(
            f"--micro-batch-size {budget.at_once}: {name} needs its {rows} rows in one pass "
            "through the encoder, because it compares them with each other or shares the end "
            f"task's pass; give {rows} or more, take fewer rows a step, or leave the objective out"
        )
    return rows, name


def draw_segments(
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
    Shares count rows of the body: an objective with two views draws half as many. A task that
    compares its rows gets an equal share whatever its coefficient, because its loss depends on how
    many there are, and at least two rows, even beyond the budget: with one, there is nothing to
    learn.

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

    def rider(task: Task, batches: Sequence[Batch]) -> Rider:
        return Rider(task, draws.ride(task, batches), coefficients[task.name])

    indices = draws.take("end-task", budget.end_task)
    batches = draws.batches("end-task", indices, parts)
    riders = [rider(task, batches) for task in auxiliaries if rides(task, end_task)]
    end = Segment(end_task, batches, coefficients[end_task.name], riders)
    others = [task for task in auxiliaries if not rides(task, end_task)]
    if not others:
        return end, []
    equal = max(1, budget.auxiliary // len(others))
    shares = {task.name: max(2 * task.views, equal) for task in others if task.couples_rows}
    apart = {task.name: coefficients[task.name] for task in others if task.name not in shares}
    if apart:
        shares |= share_rows(budget.auxiliary - sum(shares.values()), apart)
    segments = []
    for lead, *followers in _groups(others):
        order = f"auxiliary:{lead.name}"
        rows = max(1, max(shares[task.name] for task in (lead, *followers)) // lead.views)
        taken = indices[:rows] if lead.of_step else draws.take(order, rows)
        batches = draws.batches(order, taken)
        if draws.at_once is not None and sum(batch.rows for batch in batches) > draws.at_once:
            for task in followers:
                own = [replace(batch, targets=draws.ride(task, [batch])) for batch in batches]
                segments.append(Segment(task, own, coefficients[task.name]))
            riders = []
        else:
            riders = [rider(task, batches) for task in followers]
        segments.append(Segment(lead, batches, coefficients[lead.name], riders))
    return end, segments


def _groups(tasks: Sequence[Task]) -> list[list[Task]]:
    """Groups of tasks that share rows, in the order of each group's first task.

    A task that couples rows leads its group, because its rows must stay in one batch.
    """
    groups: dict[tuple[bool, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.shares is None, task.shares or task.name), []).append(task)
    return [sorted(group, key=lambda task: not task.couples_rows) for group in groups.values()]
