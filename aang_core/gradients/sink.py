"""Where a backward pass leaves its gradients: taken one by one, entered and dropped."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from aang_core.gradients.ledger import Ledger
from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip


class GradientSink:
    """Enters each parameter's gradient in a ledger as soon as backward has made it.

    Args:
        ledger: Adds them up. Its v is entered before the first task begins.
        parameters: All that are trained, of the body and of heads.
        measures: False only adds up.
        scale: Of the losses.
        clip: Of each task's gradient over the body. With a limit, the body's part is held back
            until its norm is known, when the next task begins or a sum is asked for: one more
            buffer of the body's size.
    """

    def __init__(
        self,
        ledger: Ledger,
        parameters: Sequence[nn.Parameter],
        *,
        measures: bool,
        scale: LossScale,
        clip: TaskClip = UNCLIPPED,
    ) -> None:
        self.measures = measures or clip.norm is not None
        self._ledger = ledger
        self._parameters = dict.fromkeys(parameters)
        self._scale = scale
        self._clip = clip
        self._task = -1
        self._divisor: Tensor | None = None
        self._held: dict[nn.Parameter, Tensor] = {}
        self._waiting = False

    def begin(self, coefficient: float, *, in_parts: bool = False) -> None:
        """The gradients that follow belong to the next task, whose loss weighs ``coefficient``.

        in_parts: they add up in ``.grad`` until :meth:`last_part`.
        """
        self.settle()
        self._task = self._ledger.begin(coefficient)
        self._divisor = None
        self._waiting = in_parts

    def last_part(self, divisor: Tensor) -> None:
        """Take what the next backward pass adds up to, divided by a scalar."""
        self._divisor = divisor
        self._waiting = False

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Listen to the parameters."""
        hooks = [p.register_post_accumulate_grad_hook(self._take) for p in self._parameters]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def take_left_over(self) -> None:
        """Take what was added up in parts and the last backward pass has not reached."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                self._take(parameter)

    def settle(self) -> None:
        """Clip what is held back of the last task, and add it up."""
        if not self._held:
            return
        factor = self._clip.factor(self._ledger.square(self._task))
        for parameter, gradient in self._held.items():
            self._ledger.weigh(parameter, self._task, gradient.mul_(factor))
        self._held = {}

    def _take(self, parameter: Tensor) -> None:
        if self._waiting:
            return
        assert isinstance(parameter, nn.Parameter)
        gradient = parameter.grad
        assert gradient is not None
        parameter.grad = None
        if self._divisor is not None:
            gradient.div_(self._divisor)
        gradient = self._scale.off(gradient)
        if self.measures:
            self._ledger.measure(parameter, self._task, gradient)
        if self._clip.norm is None or not self._ledger.of_body(parameter):
            self._ledger.weigh(parameter, self._task, gradient)
            return
        held = self._held.get(parameter)
        self._held[parameter] = gradient if held is None else held.add_(gradient)


def trained(*modules: nn.Module) -> list[nn.Parameter]:
    """The trained parameters of modules, each once, in an order that all processes share."""
    return list(dict.fromkeys(p for m in modules for p in m.parameters() if p.requires_grad))
