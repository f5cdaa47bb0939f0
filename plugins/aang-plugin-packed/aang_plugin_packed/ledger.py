"""Sums over the gradients of a step's tasks, one parameter and several tasks at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from aang_core.gradients import Ledger, to_device

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

    def square(self) -> Tensor:
        """The squared norm, a scalar."""
        return self.values.square().sum()

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


class PackedLedger(Ledger):
    """A ledger that takes the gradients of several tasks at once, and sparse ones of embeddings.

    Args:
        body: θ; statistics cover only these parameters.
        coefficients: of the tasks' losses; the end task is last.
        scale: loss scale of the gradients entered, v included; results are divided by it.

    Attributes:
        end: number of the end task.
        sparse_v: the parts of v that are not in ``v``, by parameter.
    """

    end: int

    def __init__(
        self, body: Sequence[nn.Parameter], coefficients: Sequence[float], scale: float
    ) -> None:
        super().__init__(body, body[0].device, end=len(coefficients) - 1, scale=scale)
        for coefficient in coefficients:
            self.begin(coefficient)
        weights = torch.tensor(coefficients, dtype=torch.float64)
        self._weights = to_device(weights, body[0].device)
        self.sparse_v: dict[nn.Parameter, SparseRows] = {}

    def enter_sparse_v(self, parameter: nn.Parameter, gradient: SparseRows) -> None:
        """Enter an embedding's part of the dev gradient."""
        self.sparse_v[parameter] = gradient
        self.dev_squares.append(gradient.square())

    def forget_v(self, parameter: nn.Parameter) -> None:
        """Drop a parameter's part of the dev gradient, whose square stays."""
        self.v.pop(parameter, None)
        self.sparse_v.pop(parameter, None)

    def add(self, parameter: nn.Parameter, first: int, gradients: Tensor) -> None:
        """Measure and weigh the gradients of consecutive tasks.

        Args:
            parameter: the parameter.
            first: number of the first task.
            gradients: ``[n, *shape]``, one for each task; copied.
        """
        flat = gradients.flatten(1)
        if parameter in self.body:
            self._measure(parameter, first, gradients, flat)
        if len(flat) == 1:
            known = parameter in self.totals
            self.weigh(parameter, first, gradients[0] if known else gradients[0].clone())
            return
        if not any(self.coefficients[first : first + len(flat)]):
            return
        weights = self._weights[first : first + len(flat)].to(flat.dtype)
        weighted = torch.mv(flat.T, weights).view(parameter.shape)
        if parameter in self.totals:
            self.totals[parameter].add_(weighted)
        else:
            self.totals[parameter] = weighted

    def _measure(
        self, parameter: nn.Parameter, first: int, gradients: Tensor, flat: Tensor
    ) -> None:
        for task, square in enumerate(_dots(flat, flat), first):
            self.squares[task].append(square)
        dots: Sequence[Tensor] = []
        if (rows := self.sparse_v.get(parameter)) is not None:
            dots = [(rows.of(gradient) * rows.values).sum() for gradient in gradients]
        elif (v := self.v.get(parameter)) is not None:
            dots = _dots(flat, v.reshape(1, -1))
        for task, dot in enumerate(dots, first):
            self.dots[task].append(dot)

    def add_sparse(self, parameter: nn.Parameter, task: int, gradient: SparseRows) -> None:
        """Measure and weigh one task's gradient of an embedding."""
        self.before(parameter, task)
        self.squares[task].append(gradient.square())
        if (rows := self.sparse_v.get(parameter)) is not None:
            self.dots[task].append(gradient.dot(rows, len(parameter)))
        elif (v := self.v.get(parameter)) is not None:
            self.dots[task].append((gradient.of(v) * gradient.values).sum())
        if self.coefficients[task] == 0.0:
            return
        if parameter not in self.totals:
            self.totals[parameter] = torch.zeros_like(parameter)
        gradient.add_to(self.totals[parameter], self.coefficients[task])

    def add_cross(self, task: int, *, square: Tensor, dot: Tensor | None) -> None:
        """Enter the cross terms of a task's gradient whose two parts were entered separately."""
        self.squares[task].append(square)
        if dot is not None:
            self.dots[task].append(dot)


def _dots(left: Tensor, right: Tensor) -> Sequence[Tensor]:
    """The inner product of each row of ``left`` with its row, or the only row, of ``right``."""
    if len(left) == 1:
        return [torch.dot(left[0], right[0])]
    dots: Tensor = left @ right[0] if len(right) == 1 else torch.linalg.vecdot(left, right)
    return dots.unbind()


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
