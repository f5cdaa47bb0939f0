"""Which rows a step takes: random orders of each task's rows, and shares of a row budget."""

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from aang_core.gradients.shared_passes import PASS_OVERHEAD, group_by_length
from aang_core.tasks.saved import saved_count, wrong
from aang_core.tasks.task import Batch, Task, couples_rows


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

    def copy(self) -> "RowOrder":
        """An order that goes on from here by itself."""
        return copy.copy(self)

    def state_dict(self) -> dict[str, Any]:
        """Position and order, int64 ``[rows]``; not copied, because no order changes in place."""
        return {"position": self._position, "order": self._order}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved position and order.

        An order of another number of rows is left out, and a new pass begins: the user has resumed
        the training with other data.

        Raises:
            SavedStateError: the state is not that of an order.
        """
        order: Any = state.get("order")
        if not _is_order(order):
            raise wrong("order", "the numbers of all rows, each once", order)
        position = saved_count(state, "position", most=len(order))
        if len(order) in (0, self.rows):
            self._position, self._order = position, order


def _is_order(value: object) -> bool:
    """Whether it has every row once, or is empty because no pass has begun."""
    if not isinstance(value, Tensor) or value.dtype != torch.int64 or value.dim() != 1:
        return False
    rows = len(value)
    return not rows or (
        0 <= int(value.min()) <= int(value.max()) < rows
        and bool((torch.bincount(value, minlength=rows) == 1).all())
    )


def share_rows(total: int, coefficients: Mapping[str, float]) -> dict[str, int]:
    """Share rows among tasks in proportion to their coefficients, at least one each.

    The loss of a task is the mean over its own targets, so shares change the variance of its
    gradient, not its expectation.

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


def rows_of_draw(rows: int, draws: int, number: int) -> int:
    """How many of a step's rows each draw takes; the first draws take the remainder.

    Args:
        rows: rows of the step.
        draws: number of draws.
        number: which draw, from 0.

    Examples:
        >>> [rows_of_draw(10, 4, number) for number in range(4)]
        [3, 3, 2, 2]
    """
    return rows // draws + (number < rows % draws)


def make_batches(
    task: Task,
    indices: Tensor,
    generator: torch.Generator,
    *,
    at_once: int | None,
    by_length: bool,
    parts: int,
) -> list[Batch]:
    """Rows of a task, as the batches in which they go through the body.

    The rows of a task that couples them stay in one batch, whatever their lengths and number.

    Args:
        task: the task.
        indices: int64 ``[B]``, its rows.
        generator: source of the task's own draws.
        at_once: most rows of a batch; None for no limit.
        by_length: whether to batch rows of similar length together, if the task knows the lengths.
        parts: least number of batches for each group of rows of similar length.
    """
    rows = len(indices)
    if couples_rows(task):
        return [task.batch(indices, generator)]
    groups = [list(range(rows))]
    if by_length and task.lengths is not None:
        groups = group_by_length(task.lengths[indices].tolist(), PASS_OVERHEAD)
    return [
        replace(task.batch(numbers, generator), numbers=numbers)
        for group in groups
        for size in [min(at_once or rows, math.ceil(len(group) / parts))]
        for start in range(0, len(group), size)
        for numbers in [indices[group[start : start + size]]]
    ]
