"""Every task's body gradient clipped to a norm before it is weighted, as AANG's code does."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn


class TaskClip:
    """min(1, norm / ‖g_k‖): what a task's body gradient is multiplied by.

    A loss whose gradient is ten times as long as the end task's has ten times its say in a step,
    whatever their coefficients are. Heads are left alone, as each belongs to one task. Signals are
    those of the gradients as they are: a cosine is the same for both. Of the weighted sum of the
    auxiliary tasks, they are those of the sum that is trained with.

    norm: the most that ‖g_k‖ may be over the body's parameters; None for no limit.
    """

    def __init__(self, norm: float | None = None) -> None:
        self.norm = norm

    def factor(self, square: Tensor) -> Tensor:
        """What to multiply a gradient by whose squared norm is ``square``; of its shape."""
        if self.norm is None:
            return torch.ones_like(square)
        return (self.norm / square.sqrt().clamp(min=torch.finfo(square.dtype).tiny)).clamp(max=1.0)

    def clipped(
        self, gradient: Mapping[nn.Parameter, Tensor], body: Sequence[nn.Parameter]
    ) -> Mapping[nn.Parameter, Tensor]:
        """A task's whole gradient, what it has of ``body`` clipped."""
        of_body = dict.fromkeys(p for p in body if p in gradient)
        if self.norm is None or not of_body:
            return gradient
        factor = self.factor(torch.stack([gradient[p].square().sum() for p in of_body]).sum())
        return {p: g * factor if p in of_body else g for p, g in gradient.items()}


UNCLIPPED = TaskClip()
"""No limit."""
