"""What a step measures: sums over the gradients of its tasks, taken as backward computes them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from aang_core.gradients.passes import LossScale
from aang_core.tasks.task import to_device
from aang_core.tasks.workbench import AGAINST_DEV, Signal, StepSignals


class TaskClip:
    """Multiplies a task's body gradient by min(1, norm / ‖g_k‖).

    Without it, a loss whose gradient is ten times as long as the end task's has ten times its
    influence at equal coefficients. Heads are not clipped, because each belongs to one task. A
    task's signals are those of its unclipped gradient; its cosine is the same either way. The
    signals of the auxiliary tasks' weighted sum are those of the clipped gradients' sum, because
    that is what training uses.

    Args:
        norm: largest ‖g_k‖ over the body's parameters; None for no limit.
    """

    def __init__(self, norm: float | None = None) -> None:
        self.norm = norm

    def factor(self, square: Tensor) -> Tensor:
        """The factor for a gradient.

        Args:
            square: squared norms of gradients, of any shape.

        Returns:
            A factor for each, of the same shape.
        """
        if self.norm is None:
            return torch.ones_like(square)
        return (self.norm / square.sqrt().clamp(min=torch.finfo(square.dtype).tiny)).clamp(max=1.0)


UNCLIPPED = TaskClip()
"""No limit."""


@dataclass(frozen=True)
class GradientStatistics:
    """What an engine measured in one step, still on the device.

    Attributes:
        tasks: names of the K measured tasks, including the end task.
        dots: ``[K]``, ⟨g_k, v⟩ over the body; zeros in a step without v.
        squares: ``[K]``, ‖g_k‖² over the body.
        auxiliary_dot: scalar, ⟨Σ_k w_k g_k, v⟩ over the auxiliary tasks, with weights normalised
            to one.
        auxiliary_norm: scalar, ‖Σ_k w_k g_k‖ over the auxiliary tasks.
        dev_norm: scalar, ‖v‖; zero in a step without v.
    """

    tasks: Sequence[str]
    dots: Tensor
    squares: Tensor
    auxiliary_dot: Tensor
    auxiliary_norm: Tensor
    dev_norm: Tensor

    def read(self, signals: frozenset[Signal]) -> StepSignals:
        """Transfer the statistics from the device, once, and select the ``signals``."""
        return self.selected(self.values().tolist(), signals)

    def values(self) -> Tensor:
        """All statistics as one float64 tensor ``[2 K + 3]``, still on the device."""
        scalars = torch.stack([self.auxiliary_dot, self.auxiliary_norm, self.dev_norm])
        return torch.cat([self.dots, self.squares.sqrt(), scalars]).double()

    def selected(self, values: Sequence[float], signals: frozenset[Signal]) -> StepSignals:
        """Select signals.

        Args:
            values: the numbers of `values`, on the host.
            signals: the signals to select.
        """
        k = len(self.tasks)
        dot = dict(zip(self.tasks, values[:k], strict=True))
        norm = dict(zip(self.tasks, values[k : 2 * k], strict=True))
        auxiliary_dot, auxiliary_norm, dev_norm = values[2 * k :]
        auxiliary: dict[Signal, float] = {
            "cosine": _cosine(auxiliary_dot, auxiliary_norm, dev_norm),
            "dot": auxiliary_dot,
            "norm": auxiliary_norm,
        }
        return StepSignals(
            cosine={t: _cosine(dot[t], norm[t], dev_norm) for t in self.tasks}
            if "cosine" in signals
            else {},
            dot=dot if "dot" in signals else {},
            norm=norm if "norm" in signals else {},
            auxiliary={name: value for name, value in auxiliary.items() if name in signals},
            dev_norm=dev_norm if signals & AGAINST_DEV else None,
        )


def assemble_statistics(
    tasks: Sequence[str],
    coefficients: Sequence[float],
    *,
    dots: Tensor,
    squares: Tensor,
    auxiliary_square: Tensor,
    dev_square: Tensor,
    clip: TaskClip = UNCLIPPED,
) -> GradientStatistics:
    """Statistics of K tasks from what an engine measured.

    Args:
        tasks: names of the tasks; the end task is last.
        coefficients: of the K − 1 auxiliary tasks.
        dots: ``[K]``, ⟨g_k, v⟩ of unclipped gradients.
        squares: ``[K]``, ‖g_k‖² of unclipped gradients.
        auxiliary_square: scalar, squared norm of Σ_k coefficient_k g_k, each g_k clipped by
            ``clip``.
        dev_square: scalar, ‖v‖².
        clip: how task gradients were clipped.
    """
    # Without v there are no dots to take the dtype from.
    weights = to_device(torch.tensor(coefficients, dtype=squares.dtype), squares.device)
    share = weights.sum().clamp(min=torch.finfo(squares.dtype).tiny)
    return GradientStatistics(
        tasks=tasks,
        dots=dots,
        squares=squares,
        auxiliary_dot=(weights * clip.factor(squares[:-1]) * dots[:-1]).sum() / share,
        auxiliary_norm=auxiliary_square.sqrt() / share,
        dev_norm=dev_square.sqrt(),
    )


def _cosine(dot: float, norm: float, dev_norm: float) -> float:
    """The cosine; zero instead of NaN for a zero gradient, which has no direction."""
    length = norm * dev_norm
    return 0.0 if length == 0.0 else dot / length


class Ledger:
    """Dots, squares and the weighted sum of K tasks' gradients, for every engine.

    A gradient with coefficient zero is measured, but leaves no zeros in the sum: an optimiser would
    move a parameter along its momentum for them, and a head that only this task has should rest.

    For every parameter, the auxiliary tasks' gradients must be entered before the end task's: when
    that arrives, the norm of their sum is computed.

    Args:
        body: θ; statistics cover only these parameters.
        device: device of the model.
        end: number of the end task; None if its gradient is not entered.
        scale: loss scale of the gradients entered, v included; results are divided by it.

    Attributes:
        body: θ.
        v: the dev gradient, by parameter.
        totals: the weighted sum so far, by parameter.
        coefficients: of each task's loss.
        dots: parts of each task's ⟨g_k, v⟩, scalars.
        squares: parts of each task's ‖g_k‖², scalars.
        dev_squares: parts of ‖v‖², scalars.
    """

    def __init__(
        self,
        body: Sequence[nn.Parameter],
        device: torch.device,
        *,
        end: int | None = None,
        scale: float = 1.0,
    ) -> None:
        self.v: dict[nn.Parameter, Tensor] = {}
        self.totals: dict[nn.Parameter, Tensor] = {}
        self.end = end
        self.body = set(body)
        self._device = device
        self._scale = scale
        self.coefficients: list[float] = []
        self.dots: list[list[Tensor]] = []
        self.squares: list[list[Tensor]] = []
        self.dev_squares: list[Tensor] = []
        self._auxiliary_squares: dict[nn.Parameter, Tensor | None] = {}

    def begin(self, coefficient: float) -> int:
        """Add a task whose loss has this coefficient, and return its number."""
        self.coefficients.append(coefficient)
        self.dots.append([])
        self.squares.append([])
        return len(self.coefficients) - 1

    def enter_v(self, parameter: nn.Parameter, gradient: Tensor) -> None:
        """Enter a parameter's part of the dev gradient."""
        self.v[parameter] = gradient
        self.dev_squares.append(_square(gradient))

    def measure(self, parameter: nn.Parameter, task: int, gradient: Tensor) -> None:
        """Add a gradient to its task's dot and square."""
        if parameter not in self.body:
            return
        flat = gradient.reshape(-1)
        self.squares[task].append(torch.dot(flat, flat))
        v = self.v.get(parameter)
        if v is not None:
            self.dots[task].append(torch.dot(flat, v.reshape(-1)))

    def weigh(self, parameter: nn.Parameter, task: int, gradient: Tensor) -> None:
        """Add a gradient to the weighted sum; the ledger may keep and modify it."""
        self.before(parameter, task)
        if self.coefficients[task] == 0.0:
            return
        if parameter in self.totals:
            self.totals[parameter].add_(gradient, alpha=self.coefficients[task])
        else:
            self.totals[parameter] = gradient.mul_(self.coefficients[task])

    def measured(self) -> tuple[Tensor, Tensor]:
        """Dots and squares of all tasks, ``[K]`` each."""
        dots, squares = (
            torch.stack([self._sum(part) for part in parts]) for parts in (self.dots, self.squares)
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
            # Needed for parameters that the end task does not reach.
            self.before(parameter, len(tasks) - 1)
        of_auxiliaries = [
            square for p in self.totals if (square := self._auxiliary_squares.get(p)) is not None
        ]
        scale = self._scale**2
        return assemble_statistics(
            tasks,
            self.coefficients[:-1],
            dots=dots / scale,
            squares=squares / scale,
            auxiliary_square=self._sum(of_auxiliaries) / scale,
            dev_square=self._sum(self.dev_squares) / scale,
            clip=clip,
        )

    def before(self, parameter: nn.Parameter, task: int) -> None:
        """Square the sum of the auxiliary gradients, before the end task's is added."""
        if task != self.end or parameter not in self.body:
            return
        if parameter not in self._auxiliary_squares:
            total = self.totals.get(parameter)
            self._auxiliary_squares[parameter] = None if total is None else _square(total)

    def _sum(self, scalars: Sequence[Tensor]) -> Tensor:
        """The sum of scalars, a scalar; zero if there are none."""
        if scalars:
            return torch.stack(list(scalars)).sum()
        return torch.zeros((), device=self._device)


def _square(gradient: Tensor) -> Tensor:
    flat = gradient.reshape(-1)
    return torch.dot(flat, flat)


class StreamLedger(Ledger):
    """A ledger that takes each parameter's gradient as soon as backward has computed it.

    Args:
        body: θ; statistics cover only these parameters.
        parameters: all trained parameters, of the body and of heads.
        device: device of the model.
        end: number of the end task; None if its gradient is not entered.
        scale: the loss scale.
        clip: clips each task's body gradient. With a limit, the body's part is held back until
            its norm is known, which needs one more buffer of the body's size.
    """

    def __init__(
        self,
        body: Sequence[nn.Parameter],
        parameters: Sequence[nn.Parameter],
        device: torch.device,
        *,
        end: int | None,
        scale: LossScale,
        clip: TaskClip,
    ) -> None:
        super().__init__(body, device, end=end)
        self._parameters = dict.fromkeys(parameters)
        self._loss_scale = scale
        self._clip = clip
        self._divisor: Tensor | None = None
        self._held: dict[nn.Parameter, Tensor] = {}
        self._waiting = False

    def begin(self, coefficient: float, *, in_parts: bool = False) -> int:
        """Start the next task; the gradients that follow belong to it.

        Args:
            coefficient: of its loss.
            in_parts: whether gradients of several backward passes are summed in ``.grad`` until
                `last_part` is called.
        """
        self._settle()
        self._divisor = None
        self._waiting = in_parts
        return super().begin(coefficient)

    def last_part(self, divisor: Tensor) -> None:
        """Take the sum after the next backward pass, divided by ``divisor``, a scalar."""
        self._divisor = divisor
        self._waiting = False

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Inside the block, take gradients as backward computes them."""
        hooks = [p.register_post_accumulate_grad_hook(self._take) for p in self._parameters]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
        self._settle()

    def take_left_over(self) -> None:
        """Take sums of earlier parts that the last backward pass did not reach."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                self._take(parameter)

    def _take(self, parameter: Tensor) -> None:
        if self._waiting:
            return
        assert isinstance(parameter, nn.Parameter)
        gradient = parameter.grad
        assert gradient is not None
        parameter.grad = None
        if self._divisor is not None:
            gradient.div_(self._divisor)
        gradient = self._loss_scale.off(gradient)
        task = len(self.coefficients) - 1
        self.measure(parameter, task, gradient)
        if self._clip.norm is None or parameter not in self.body:
            self.weigh(parameter, task, gradient)
            return
        held = self._held.get(parameter)
        self._held[parameter] = gradient if held is None else held.add_(gradient)

    def _settle(self) -> None:
        """Clip and add what is held back from the last task."""
        if not self._held:
            return
        task = len(self.coefficients) - 1
        factor = self._clip.factor(self._sum(self.squares[task]))
        for parameter, gradient in self._held.items():
            self.weigh(parameter, task, gradient.mul_(factor))
        self._held = {}
