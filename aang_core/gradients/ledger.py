"""What a step adds up over the gradients of many tasks, one parameter at a time."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.signals import GradientStatistics, assemble_statistics
from aang_core.gradients.sparse import SparseRows

_STACK_BYTES = {"cpu": 2**18}
_STACK_BYTES_ACCELERATOR = 2**28
"""How much of several tasks' gradients of one parameter is made at once. On a CPU a gradient that
stays in the cache is cheapest; an accelerator wants few large kernels."""

Gradient = Tensor | SparseRows


class Ledger:
    """Dots, squares and the weighted sum of the gradients of K tasks, the end task last.

    body: θ; statistics run over its parameters alone. coefficients: of the K tasks' losses.

    scale: of the gradients that are entered, v among them; those handed over are the true ones.

    For every parameter the auxiliary tasks' gradients must be entered before the end task's.
    """

    def __init__(
        self, body: Sequence[nn.Parameter], coefficients: Sequence[float], scale: float = 1.0
    ) -> None:
        like = body[0]
        self.v: dict[nn.Parameter, Gradient] = {}
        self.totals: dict[nn.Parameter, Tensor] = {}
        self.end = len(coefficients) - 1
        self._scale = scale
        self._body = set(body)
        self._coefficients = list(coefficients)
        self._on_device = torch.tensor(coefficients, dtype=like.dtype).to(like.device)
        self._dots = torch.zeros_like(self._on_device)
        self._squares = torch.zeros_like(self._on_device)
        self._auxiliary_square = torch.zeros_like(self._on_device[0])
        self._dev_square = torch.zeros_like(self._on_device[0])
        self._ended: set[nn.Parameter] = set()

    def stack_size(self, parameter: nn.Parameter) -> int:
        """Of how many tasks the gradient of a parameter is best made at once."""
        limit = _STACK_BYTES.get(parameter.device.type, _STACK_BYTES_ACCELERATOR)
        return max(1, limit // (parameter.numel() * parameter.element_size()))

    def add_dev(self, gradient: Gradient) -> None:
        """Count a parameter's part of v into its norm."""
        self._dev_square += _square(gradient)

    def add(
        self, parameter: nn.Parameter, first: int, gradients: Tensor, v: Gradient | None
    ) -> None:
        """Enter the gradients ``[n, *shape]`` of the tasks from number ``first`` on.

        v: the parameter's part of the dev gradient.
        """
        self._before(parameter, first)
        flat = gradients.flatten(1)
        tasks = slice(first, first + len(flat))
        if parameter in self._body:
            self._squares[tasks] += torch.linalg.vecdot(flat, flat)
            if isinstance(v, SparseRows):
                for i, gradient in enumerate(gradients, start=first):
                    self._dots[i] += (v.of(gradient) * v.values).sum()
            elif v is not None:
                self._dots[tasks] += flat @ v.flatten()
        if len(flat) == 1:
            self._add_to_total(parameter, gradients[0], self._coefficients[first])
        else:
            weighted = torch.mv(flat.T, self._on_device[tasks]).view(parameter.shape)
            self._add_to_total(parameter, weighted, 1.0)

    def add_sparse(
        self, parameter: nn.Parameter, task: int, gradient: SparseRows, v: Gradient | None
    ) -> None:
        """Enter the gradient of one task."""
        self._before(parameter, task)
        if parameter in self._body:
            self._squares[task] += gradient.square()
            if isinstance(v, SparseRows):
                self._dots[task] += gradient.dot(v, len(parameter))
            elif v is not None:
                self._dots[task] += (gradient.of(v) * gradient.values).sum()
        if parameter not in self.totals:
            self.totals[parameter] = torch.zeros_like(parameter)
        gradient.add_to(self.totals[parameter], self._coefficients[task])

    def add_cross(self, task: int, *, square: Tensor, dot: Tensor | None) -> None:
        """Enter what two parts of one gradient, entered apart, have in common."""
        self._squares[task] += square
        if dot is not None:
            self._dots[task] += dot

    def finish(self, tasks: Sequence[str]) -> GradientStatistics:
        """Hand the sums over as the parameters' gradients; the statistics of the tasks."""
        for parameter, total in self.totals.items():
            if parameter in self._body and parameter not in self._ended:
                self._auxiliary_square += _square(total)
            parameter.grad = total if self._scale == 1.0 else total / self._scale
        square = self._scale**2
        return assemble_statistics(
            tasks,
            self._coefficients[:-1],
            dots=self._dots / square,
            squares=self._squares / square,
            auxiliary_square=self._auxiliary_square / square,
            dev_square=self._dev_square / square,
        )

    def _before(self, parameter: nn.Parameter, task: int) -> None:
        """The auxiliary sum stands alone until the end task's gradient comes."""
        if task != self.end or parameter in self._ended:
            return
        self._ended.add(parameter)
        if parameter in self.totals and parameter in self._body:
            self._auxiliary_square += _square(self.totals[parameter])

    def _add_to_total(self, parameter: nn.Parameter, gradient: Tensor, weight: float) -> None:
        if parameter in self.totals:
            self.totals[parameter].add_(gradient, alpha=weight)
        else:
            self.totals[parameter] = gradient * weight


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
