"""Where a backward pass leaves its gradients: measured, weighted, added up and dropped."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.signals import GradientStatistics, assemble_statistics
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip


class GradientSink:
    """Takes each parameter's gradient from backward, measures it, adds it up and drops it.

    body: θ, over whose parameters statistics run. heads: further modules that are trained.
    v: the dev gradient by parameter. measures: False only adds up. scale: of the losses.
    clip: of each task's gradient over the body. With a limit, the body's part is held back until
        its norm is known, when the next task begins or a sum is asked for: one more buffer of the
        body's size.
    """

    def __init__(
        self,
        body: nn.Module,
        heads: Sequence[nn.Module],
        v: Mapping[nn.Parameter, Tensor] | None = None,
        *,
        measures: bool = True,
        scale: LossScale | None = None,
        clip: TaskClip = UNCLIPPED,
    ) -> None:
        self.v = v or {}
        self._scale = scale or LossScale(moves=False)
        self.totals: dict[nn.Parameter, Tensor] = {}
        self._body = {p for p in body.parameters() if p.requires_grad}
        self._parameters = dict.fromkeys(
            p for module in (body, *heads) for p in module.parameters() if p.requires_grad
        )
        self._device = next(body.parameters()).device
        self._dots: list[list[Tensor]] = []
        self._squares: list[list[Tensor]] = []
        self._coefficient = 0.0
        self._divisor: Tensor | None = None
        self._clip = clip
        self._held: dict[nn.Parameter, Tensor] = {}
        self.measures = measures or clip.norm is not None
        self._paused = False

    def begin(self, coefficient: float) -> None:
        """The gradients that follow belong to the next task, whose loss weighs ``coefficient``."""
        self.settle()
        self._coefficient = coefficient
        self._divisor = None
        self._dots.append([])
        self._squares.append([])

    def divide_by(self, divisor: Tensor) -> None:
        """The gradients that follow are to be divided by ``divisor``, a scalar."""
        self._divisor = divisor

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Listen to the parameters."""
        hooks = [p.register_post_accumulate_grad_hook(self._take) for p in self._parameters]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let gradients add up in ``.grad`` meanwhile."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def take_left_over(self) -> None:
        """Take what was added up while paused and has not been reached since."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                self._take(parameter)

    def _take(self, parameter: Tensor) -> None:
        if self._paused:
            return
        assert isinstance(parameter, nn.Parameter)
        gradient = parameter.grad
        assert gradient is not None
        parameter.grad = None
        if self._divisor is not None:
            gradient.div_(self._divisor)
        gradient = self._scale.off(gradient)
        if self.measures and parameter in self._body:
            flat = gradient.reshape(-1)
            self._squares[-1].append(torch.dot(flat, flat))
            against = self.v.get(parameter)
            if against is not None:
                self._dots[-1].append(torch.dot(flat, against.reshape(-1)))
        if self._clip.norm is not None and parameter in self._body:
            held = self._held.get(parameter)
            self._held[parameter] = gradient if held is None else held.add_(gradient)
        else:
            self._add(parameter, gradient)

    def _add(self, parameter: nn.Parameter, gradient: Tensor) -> None:
        if parameter in self.totals:
            self.totals[parameter].add_(gradient, alpha=self._coefficient)
        else:
            self.totals[parameter] = gradient.mul_(self._coefficient)

    def settle(self) -> None:
        """Clip what is held back of the last task, and add it up."""
        if not self._held:
            return
        factor = self._clip.factor(sum_scalars(self._squares[-1], self._device))
        for parameter, gradient in self._held.items():
            self._add(parameter, gradient.mul_(factor))
        self._held = {}

    def body_square(self) -> Tensor:
        """Squared norm of what has been added up so far over the body's parameters, a scalar."""
        self.settle()
        return sum_scalars(
            [_square(total) for p, total in self.totals.items() if p in self._body], self._device
        )

    def release(self) -> None:
        """Hand the sums over as the parameters' gradients."""
        self.settle()
        for parameter, total in self.totals.items():
            parameter.grad = total

    def measured(self) -> tuple[list[Tensor], list[Tensor]]:
        """Dots and squares of the tasks in the order in which they began, scalars."""
        dots = [sum_scalars(part, self._device) for part in self._dots]
        return dots, [sum_scalars(part, self._device) for part in self._squares]

    def statistics(
        self, tasks: Sequence[str], coefficients: Sequence[float], auxiliary_square: Tensor
    ) -> GradientStatistics:
        """The statistics of the tasks in the order in which they began.

        coefficients: of the auxiliary tasks, which are all but the last.
        auxiliary_square: squared norm of their weighted sum.
        """
        dots, squares = self.measured()
        return assemble_statistics(
            tasks,
            coefficients,
            dots=torch.stack(dots),
            squares=torch.stack(squares),
            auxiliary_square=auxiliary_square,
            dev_square=sum_scalars([_square(g) for g in self.v.values()], self._device),
            clip=self._clip,
        )


def _square(gradient: Tensor) -> Tensor:
    flat = gradient.reshape(-1)
    return torch.dot(flat, flat)


def sum_scalars(scalars: Sequence[Tensor], device: torch.device) -> Tensor:
    """The sum of scalars, a scalar; zero for none."""
    return torch.stack(list(scalars)).sum() if scalars else torch.zeros((), device=device)
