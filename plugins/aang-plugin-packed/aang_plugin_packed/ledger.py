"""Sums over the gradients of a step's tasks, one parameter and several tasks at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from aang_core.gradients import GradientStatistics, assemble_statistics, to_device

_STACK_BYTES = {"cpu": 2**18}
_STACK_BYTES_ACCELERATOR = 2**28
"""Most bytes of several tasks' gradients of one parameter that are computed at once. On a CPU,
gradients that stay in the cache are cheapest; an accelerator wants few large kernels."""


class SparseRows(NamedTuple):
    """The gradient of an embedding: rows of a ``[V, ...]`` matrix whose other rows are zero.

    torch's sparse tensors are not used, because coalescing them waits for the device.

    Attributes:
        ids: ``[N]`` int64, each row at most once; V in unused places.
        values: ``[N, ...]``, zero in unused places.
    """

    ids: Tensor
    values: Tensor

    @classmethod
    def summed(cls, ids: Tensor, values: Tensor, size: int) -> "SparseRows":
        """Sum the values of equal ids.

        There are as many places as values, so that the host need not wait for the number of
        different ids.

        Args:
            ids: ``[N]`` int64, rows of the matrix.
            values: ``[N, ...]``.
            size: number of rows of the matrix, V.
        """
        order, place, unique = _places(ids, size)
        return cls(unique, torch.zeros_like(values).index_add_(0, place, values[order]))

    def of(self, matrix: Tensor) -> Tensor:
        """The same rows of a dense ``matrix``, ``[N, ...]``; an arbitrary row in unused places."""
        return matrix[self.ids.clamp(max=len(matrix) - 1)]

    def dot(self, other: "SparseRows", size: int) -> Tensor:
        """Inner product of two matrices of ``size`` rows, a scalar."""
        place = torch.full((size + 1,), len(other.ids), device=self.ids.device)
        place[other.ids] = torch.arange(len(other.ids), device=self.ids.device)
        place[size] = len(other.ids)
        found = place[self.ids]
        # A row of zeros for rows that the other does not have.
        padded = torch.cat([other.values, torch.zeros_like(other.values[:1])])
        return (self.values * padded[found]).sum()

    def add_to(self, total: Tensor, coefficient: float) -> None:
        """Add ``coefficient`` times this to ``total``, a dense matrix of V rows."""
        valid = self.ids.clamp(max=len(total) - 1)
        total.index_add_(0, valid, self.values, alpha=coefficient)


def touched(ids: Tensor, matrix: Tensor) -> Tensor:
    """The rows of a dense matrix at the places of ``SparseRows.summed`` with the same ids.

    Args:
        ids: ``[N]`` int64, rows of the matrix.
        matrix: ``[V, ...]``.

    Returns:
        ``[N, ...]``, with an arbitrary row in unused places.
    """
    _, _, unique = _places(ids, len(matrix))
    return matrix[unique.clamp(max=len(matrix) - 1)]


def _places(ids: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The order that sorts ``ids`` ``[N]``, the place of each sorted id, the id of each place."""
    ordered, order = ids.sort(stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    place = first.cumsum(0) - 1
    return order, place, torch.full_like(ordered, size).scatter_(0, place, ordered)


Gradient = Tensor | SparseRows


class Ledger:
    """Dots, squares and the weighted sum of K tasks' gradients.

    A gradient with coefficient zero is measured, but leaves no zeros in the sum: an optimiser would
    move a parameter along its momentum for them, and a head that only this task has should rest.

    For every parameter, the auxiliary tasks' gradients must be entered before those of the end
    task, the last: when that arrives, the norm of their sum is computed.

    Args:
        body: θ; statistics cover only these parameters.
        coefficients: of the tasks' losses.
        scale: loss scale of the gradients entered, v included; results are divided by it.

    Attributes:
        v: the dev gradient, by parameter.
        end: number of the end task.
    """

    def __init__(
        self, body: Sequence[nn.Parameter], coefficients: Sequence[float], scale: float
    ) -> None:
        self.v: dict[nn.Parameter, Gradient] = {}
        self.end = len(coefficients) - 1
        self._totals: dict[nn.Parameter, Tensor] = {}
        self._body = set(body)
        self._scale = scale
        self._coefficients = coefficients
        weights = torch.tensor(coefficients, dtype=torch.float64)
        self._weights = to_device(weights, body[0].device)
        self._zero = torch.zeros((), device=body[0].device)
        self._dots: list[list[Tensor]] = [[] for _ in coefficients]
        self._squares: list[list[Tensor]] = [[] for _ in coefficients]
        self._dev_squares: list[Tensor] = []
        self._auxiliary_squares: dict[nn.Parameter, Tensor | None] = {}

    def enter_v(self, parameter: nn.Parameter, gradient: Gradient) -> None:
        """Enter a parameter's part of the dev gradient."""
        self.v[parameter] = gradient
        self._dev_squares.append(_square(gradient))

    def weigh(self, parameter: nn.Parameter, task: int, gradient: Tensor) -> None:
        """Add a dense gradient to the weighted sum; the ledger may keep and modify it."""
        self._before(parameter, task)
        if self._coefficients[task] == 0.0:
            return
        if parameter in self._totals:
            self._totals[parameter].add_(gradient, alpha=self._coefficients[task])
        else:
            self._totals[parameter] = gradient.mul_(self._coefficients[task])

    def add(self, parameter: nn.Parameter, first: int, gradients: Tensor) -> None:
        """Measure and weigh the gradients of consecutive tasks.

        Args:
            parameter: the parameter.
            first: number of the first task.
            gradients: ``[n, *shape]``, one for each task; copied.
        """
        flat = gradients.flatten(1)
        if parameter in self._body:
            self._measure(parameter, first, gradients, flat)
        if len(flat) == 1:
            known = parameter in self._totals
            self.weigh(parameter, first, gradients[0] if known else gradients[0].clone())
            return
        if not any(self._coefficients[first : first + len(flat)]):
            return
        weights = self._weights[first : first + len(flat)].to(flat.dtype)
        weighted = torch.mv(flat.T, weights).view(parameter.shape)
        if parameter in self._totals:
            self._totals[parameter].add_(weighted)
        else:
            self._totals[parameter] = weighted

    def _measure(
        self, parameter: nn.Parameter, first: int, gradients: Tensor, flat: Tensor
    ) -> None:
        v = self.v.get(parameter)
        for task, square in enumerate(_dots(flat, flat), first):
            self._squares[task].append(square)
        dots: Sequence[Tensor]
        if isinstance(v, SparseRows):
            dots = [(v.of(gradient) * v.values).sum() for gradient in gradients]
        else:
            dots = [] if v is None else _dots(flat, v.reshape(1, -1))
        for task, dot in enumerate(dots, first):
            self._dots[task].append(dot)

    def add_sparse(self, parameter: nn.Parameter, task: int, gradient: SparseRows) -> None:
        """Measure and weigh one task's gradient of an embedding."""
        self._before(parameter, task)
        self._squares[task].append(_square(gradient))
        v = self.v.get(parameter)
        if isinstance(v, SparseRows):
            self._dots[task].append(gradient.dot(v, len(parameter)))
        elif v is not None:
            self._dots[task].append((gradient.of(v) * gradient.values).sum())
        if self._coefficients[task] == 0.0:
            return
        if parameter not in self._totals:
            self._totals[parameter] = torch.zeros_like(parameter)
        gradient.add_to(self._totals[parameter], self._coefficients[task])

    def add_cross(self, task: int, *, square: Tensor, dot: Tensor | None) -> None:
        """Enter the cross terms of a task's gradient whose two parts were entered separately."""
        self._squares[task].append(square)
        if dot is not None:
            self._dots[task].append(dot)

    def release(self) -> None:
        """Put the sums into the parameters' ``.grad``."""
        for parameter, total in self._totals.items():
            parameter.grad = total if self._scale == 1.0 else total / self._scale

    def statistics(self, tasks: Sequence[str]) -> GradientStatistics:
        """The statistics of all tasks, given their names."""
        for parameter in self._totals:
            # For parameters that the end task does not reach.
            self._before(parameter, self.end)
        squares = [self._auxiliary_squares.get(parameter) for parameter in self._totals]
        scale = self._scale**2
        return assemble_statistics(
            tasks,
            self._coefficients[:-1],
            dots=torch.stack([self._sum(parts) for parts in self._dots]) / scale,
            squares=torch.stack([self._sum(parts) for parts in self._squares]) / scale,
            auxiliary_square=self._sum([s for s in squares if s is not None]) / scale,
            dev_square=self._sum(self._dev_squares) / scale,
        )

    def _before(self, parameter: nn.Parameter, task: int) -> None:
        """Before the end task's gradient is added, square the sum of the auxiliary ones."""
        if task != self.end or parameter not in self._body:
            return
        if parameter not in self._auxiliary_squares:
            total = self._totals.get(parameter)
            self._auxiliary_squares[parameter] = None if total is None else _square(total)

    def _sum(self, scalars: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(scalars)).sum() if scalars else self._zero


def _dots(left: Tensor, right: Tensor) -> Sequence[Tensor]:
    """The inner product of each row of ``left`` with its row, or the only row, of ``right``."""
    if len(left) == 1:
        return [torch.dot(left[0], right[0])]
    dots: Tensor = left @ right[0] if len(right) == 1 else torch.linalg.vecdot(left, right)
    return dots.unbind()


def _square(gradient: Gradient) -> Tensor:
    if isinstance(gradient, SparseRows):
        return gradient.values.square().sum()
    flat = gradient.reshape(-1)
    return torch.dot(flat, flat)


def in_stacks(
    parameter: nn.Parameter, numbers: Sequence[int], make: Callable[[Sequence[int]], None]
) -> None:
    """Call ``make`` for runs of consecutive tasks, as long as suits a parameter's size."""
    limit = _STACK_BYTES.get(parameter.device.type, _STACK_BYTES_ACCELERATOR)
    size = max(1, limit // (parameter.numel() * parameter.element_size()))
    run: list[int] = []
    for number in numbers:
        if run and (number != run[-1] + 1 or len(run) == size):
            make(run)
            run = []
        run.append(number)
    if run:
        make(run)
