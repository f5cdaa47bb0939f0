"""Takes each gradient out of a backward pass, enters it in the ledger and drops it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from aang_core.gradients.ledger import Ledger
from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip


class GradientSink:
    """Enters each parameter's gradient in a ledger as soon as backward has computed it.

    Args:
        ledger: sums the gradients. v must be entered before the first task begins.
        parameters: all trained parameters, of the body and of heads.
        measures: False only sums gradients and measures nothing.
        scale: the loss scale.
        clip: clips each task's body gradient. With a limit, the body's part is held back until
            its norm is known, which needs one more buffer of the body's size.
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
        """Start the next task; the gradients that follow belong to it.

        Args:
            coefficient: of its loss.
            in_parts: whether gradients of several backward passes are summed in ``.grad`` until
                `last_part` is called.
        """
        self.settle()
        self._task = self._ledger.begin(coefficient)
        self._divisor = None
        self._waiting = in_parts

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

    def take_left_over(self) -> None:
        """Take sums of earlier parts that the last backward pass did not reach."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                self._take(parameter)

    def settle(self) -> None:
        """Clip and add what is held back of the last task."""
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
    """The trained parameters of modules, each once, in the same order in every process."""
    return list(dict.fromkeys(p for m in modules for p in m.parameters() if p.requires_grad))
