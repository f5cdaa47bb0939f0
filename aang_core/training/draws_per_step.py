"""A step made of several draws, each with objectives and rows of its own.

AANG's released code makes an optimiser step of four such draws. Each measures cosines of its own;
the step takes the mean of the gradients, and the weights learn from the mean of the cosines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from aang_core.tasks.weighting import Signal, StepSignals, mean_signals
from aang_core.training.optimization import Optimization, Trial
from aang_core.training.step_gradient import GradientMaker, StepGradient, StepRows


@dataclass(frozen=True)
class MeanGradient:
    """What was measured in each draw while the gradient of a step was made."""

    draws: Sequence[StepGradient]

    @property
    def problem(self) -> str | None:
        """What is wrong with the numbers of a draw; None if all are good."""
        return self.draws[-1].problem

    def signals(self, wanted: frozenset[Signal]) -> StepSignals | None:
        """The signals that are wanted, of all draws together; None if nothing was measured."""
        measured = [signals for draw in self.draws if (signals := draw.signals(wanted))]
        return mean_signals(measured) if measured else None


def mean_gradient(
    maker: GradientMaker,
    draws: Sequence[Callable[[], StepRows]],
    training: Optimization | Trial,
    step: int,
) -> MeanGradient:
    """Leave the mean of the draws' gradients, clipped, in ``.grad``.

    A draw runs out of memory, or out of the range of half precision, on its own and is made again
    on its own. A draw whose numbers are bad ends the step: its problem is told and there is no
    gradient. Several draws take one more buffer of the model's size.

    Args:
        maker: Makes the gradient of each.
        draws: The rows of each, drawn when called.
        training: What the gradient is clipped for.
        step: Its number, for messages.

    Raises:
        OutOfMemoryError: The memory does not do for one row at a time.
    """
    if len(draws) == 1:
        return MeanGradient([maker.make(draws[0], training, step)])
    made: list[StepGradient] = []
    mean: dict[nn.Parameter, Tensor] = {}
    for draw in draws:
        made.append(maker.make(draw, _Unclipped(training), step))
        if made[-1].problem is not None:
            return MeanGradient(made)
        for parameter in training.parameters:
            if parameter.grad is None:
                continue
            part = parameter.grad.div_(len(draws))
            parameter.grad = None
            mean[parameter] = mean[parameter].add_(part) if parameter in mean else part
    for parameter, gradient in mean.items():
        parameter.grad = gradient
    training.clip()
    return MeanGradient(made)


class _Unclipped:
    """Looks at the norm of a draw's gradient; the mean of all draws is what is clipped."""

    def __init__(self, training: Optimization | Trial) -> None:
        self._training = training

    def clip(self) -> Tensor:
        gradients = [p.grad for p in self._training.parameters if p.grad is not None]
        return torch.nn.utils.get_total_norm(gradients, foreach=True)
