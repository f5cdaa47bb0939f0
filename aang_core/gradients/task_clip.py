"""Clipping each task's body gradient before it is weighted, as AANG's code does."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn


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

    def clipped(
        self, gradient: Mapping[nn.Parameter, Tensor], body: Sequence[nn.Parameter]
    ) -> Mapping[nn.Parameter, Tensor]:
        """Clip a task's gradient.

        Args:
            gradient: the gradient of body and head.
            body: the parameters to clip over.

        Returns:
            The gradient with its body part clipped.
        """
        of_body = dict.fromkeys(p for p in body if p in gradient)
        if self.norm is None or not of_body:
            return gradient
        factor = self.factor(torch.stack([gradient[p].square().sum() for p in of_body]).sum())
        return {p: g * factor if p in of_body else g for p, g in gradient.items()}


UNCLIPPED = TaskClip()
"""No limit."""
