"""Sums over the gradients of a step's tasks, one parameter at a time."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.signals import GradientStatistics, assemble_statistics
from aang_core.gradients.sparse import SparseRows
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip
from aang_core.tasks.moving import to_device

_STACK_BYTES = {"cpu": 2**18}
_STACK_BYTES_ACCELERATOR = 2**28
"""Most bytes of several tasks' gradients of one parameter that are computed at once. On a CPU,
gradients that stay in the cache are cheapest; an accelerator wants few large kernels."""

Gradient = Tensor | SparseRows


class Ledger:
    """Dots, squares and the weighted sum of K tasks' gradients, for every engine.

    A gradient with coefficient zero is measured, but leaves no zeros in the sum: an optimiser would
    move a parameter along its momentum for them, and a head that only this task has should rest.

    For every parameter, the auxiliary tasks' gradients must be entered before the end task's: when
    that arrives, the norm of their sum is computed.

    Args:
        body: θ; statistics cover only these parameters.
        device: device of the model.
        coefficients: of the losses of tasks known in advance; `begin` adds others.
        end: number of the end task; None for a step that measures nothing.
        scale: loss scale of the gradients entered, v included; results are divided by it.

    Attributes:
        v: the dev gradient, by parameter.
        totals: the weighted sum so far, by parameter.
    """

    def __init__(
        self,
        body: Sequence[nn.Parameter],
        device: torch.device,
        coefficients: Sequence[float] = (),
        *,
        end: int | None = None,
        scale: float = 1.0,
    ) -> None:
        self.v: dict[nn.Parameter, Gradient] = {}
        self.totals: dict[nn.Parameter, Tensor] = {}
        self.end = end
        self._body = set(body)
        self._device = device
        self._scale = scale
        self._coefficients: list[float] = []
        self._dots: list[list[Tensor]] = []
        self._squares: list[list[Tensor]] = []
        self._dev_squares: list[Tensor] = []
        self._auxiliary_squares: dict[nn.Parameter, Tensor | None] = {}
        self._weights: Tensor | None = None
        for coefficient in coefficients:
            self.begin(coefficient)

    def begin(self, coefficient: float) -> int:
        """Add a task and return its number.

        Args:
            coefficient: of its loss.
        """
        self._coefficients.append(coefficient)
        self._dots.append([])
        self._squares.append([])
        return len(self._coefficients) - 1

    def stack_size(self, parameter: nn.Parameter) -> int:
        """Best number of tasks whose gradients of a parameter are computed at once."""
        limit = _STACK_BYTES.get(parameter.device.type, _STACK_BYTES_ACCELERATOR)
        return max(1, limit // (parameter.numel() * parameter.element_size()))

    def of_body(self, parameter: nn.Parameter) -> bool:
        """Whether statistics cover a parameter."""
        return parameter in self._body

    def enter_v(self, parameter: nn.Parameter, gradient: Gradient) -> None:
        """Enter a parameter's part of the dev gradient."""
        self.v[parameter] = gradient
        self._dev_squares.append(_square(gradient))

    def measure(self, parameter: nn.Parameter, task: int, gradient: Tensor) -> None:
        """Add a dense gradient to its task's dot and square."""
        if parameter not in self._body:
            return
        flat = gradient.reshape(-1)
        self._squares[task].append(torch.dot(flat, flat))
        v = self.v.get(parameter)
        if isinstance(v, SparseRows):
            self._dots[task].append((v.of(gradient) * v.values).sum())
        elif v is not None:
            self._dots[task].append(torch.dot(flat, v.reshape(-1)))

    def weigh(self, parameter: nn.Parameter, task: int, gradient: Tensor) -> None:
        """Add a dense gradient to the weighted sum; the ledger may keep and modify it."""
        self._before(parameter, task)
        if self._coefficients[task] == 0.0:
            return
        if parameter in self.totals:
            self.totals[parameter].add_(gradient, alpha=self._coefficients[task])
        else:
            self.totals[parameter] = gradient.mul_(self._coefficients[task])

    def add(self, parameter: nn.Parameter, first: int, gradients: Tensor) -> None:
        """Measure and weigh the gradients of consecutive tasks.

        Args:
            parameter: the parameter.
            first: number of the first task.
            gradients: ``[n, *shape]``, one for each task; copied.
        """
        if len(gradients) == 1:
            self.measure(parameter, first, gradients[0])
            known = parameter in self.totals
            self.weigh(parameter, first, gradients[0] if known else gradients[0].clone())
            return
        self._before(parameter, first)
        flat = gradients.flatten(1)
        if parameter in self._body:
            self._measure_stack(parameter, first, gradients, flat)
        if not any(self._coefficients[first : first + len(flat)]):
            return
        if self._weights is None:
            weights = torch.tensor(self._coefficients, dtype=flat.dtype)
            self._weights = to_device(weights, self._device)
        weighted = torch.mv(flat.T, self._weights[first : first + len(flat)]).view(parameter.shape)
        if parameter in self.totals:
            self.totals[parameter].add_(weighted)
        else:
            self.totals[parameter] = weighted

    def _measure_stack(
        self, parameter: nn.Parameter, first: int, gradients: Tensor, flat: Tensor
    ) -> None:
        for task, square in enumerate(torch.linalg.vecdot(flat, flat).unbind(), first):
            self._squares[task].append(square)
        v = self.v.get(parameter)
        if v is None:
            return
        if isinstance(v, SparseRows):
            dots = [(v.of(gradient) * v.values).sum() for gradient in gradients]
        else:
            dots = list((flat @ v.flatten()).unbind())
        for task, dot in enumerate(dots, first):
            self._dots[task].append(dot)

    def add_sparse(self, parameter: nn.Parameter, task: int, gradient: SparseRows) -> None:
        """Measure and weigh one task's sparse gradient."""
        self._before(parameter, task)
        if parameter in self._body:
            self._squares[task].append(gradient.square())
            v = self.v.get(parameter)
            if isinstance(v, SparseRows):
                self._dots[task].append(gradient.dot(v, len(parameter)))
            elif v is not None:
                self._dots[task].append((gradient.of(v) * gradient.values).sum())
        if self._coefficients[task] == 0.0:
            return
        if parameter not in self.totals:
            self.totals[parameter] = torch.zeros_like(parameter)
        gradient.add_to(self.totals[parameter], self._coefficients[task])

    def add_cross(self, task: int, *, square: Tensor, dot: Tensor | None) -> None:
        """Enter the cross terms of a task's gradient whose two parts were entered separately."""
        self._squares[task].append(square)
        if dot is not None:
            self._dots[task].append(dot)

    def square(self, task: int) -> Tensor:
        """Squared norm of what has been measured of a task's gradient, a scalar."""
        return self._sum(self._squares[task])

    def measured(self) -> tuple[Tensor, Tensor]:
        """Dots and squares of all tasks, ``[K]`` each."""
        dots, squares = (
            torch.stack([self._sum(part) for part in parts])
            for parts in (self._dots, self._squares)
        )
        return dots, squares

    def release(self) -> None:
        """Put the sums into the parameters' ``.grad``."""
        for parameter, total in self.totals.items():
            parameter.grad = total if self._scale == 1.0 else total / self._scale

    def statistics(self, tasks: Sequence[str], clip: TaskClip = UNCLIPPED) -> GradientStatistics:
        """The statistics of all tasks.

        Args:
            tasks: their names; the end task is last.
            clip: how each task's gradient was clipped before it was weighed.
        """
        dots, squares = self.measured()
        for parameter in self.totals:
            # For parameters that the end task does not reach.
            self._before(parameter, len(tasks) - 1)
        of_auxiliaries = [
            square for p in self.totals if (square := self._auxiliary_squares.get(p)) is not None
        ]
        scale = self._scale**2
        return assemble_statistics(
            tasks,
            self._coefficients[:-1],
            dots=dots / scale,
            squares=squares / scale,
            auxiliary_square=self._sum(of_auxiliaries) / scale,
            dev_square=self._sum(self._dev_squares) / scale,
            clip=clip,
        )

    def _before(self, parameter: nn.Parameter, task: int) -> None:
        """Before the end task's gradient is added, square the sum of the auxiliary ones."""
        if task != self.end or parameter not in self._body:
            return
        if parameter not in self._auxiliary_squares:
            total = self.totals.get(parameter)
            self._auxiliary_squares[parameter] = None if total is None else _square(total)

    def _sum(self, scalars: Sequence[Tensor]) -> Tensor:
        """The sum of scalars, a scalar; zero if there are none."""
        if scalars:
            return torch.stack(list(scalars)).sum()
        return torch.zeros((), device=self._device)


def _square(gradient: Gradient) -> Tensor:
    if isinstance(gradient, SparseRows):
        return gradient.square()
    flat = gradient.reshape(-1)
    return torch.dot(flat, flat)


def in_stacks(numbers: Sequence[int], size: int, make: Callable[[Sequence[int]], None]) -> None:
    """Call ``make`` for runs of consecutive numbers, at most ``size`` long."""
    run: list[int] = []
    for number in numbers:
        if run and (number != run[-1] + 1 or len(run) == size):
            make(run)
            run = []
        run.append(number)
    if run:
        make(run)
