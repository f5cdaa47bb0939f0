"""The scale of losses in half precision (Micikevicius et al., Mixed Precision Training, 2018)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from aang_core.tasks.task import RowLosses

FIRST = 2.0**16
"""The factor that training begins with."""
_GROWS_AFTER = 2000


class LossScale:
    """What losses are multiplied by before a backward pass, so that small gradients do not vanish.

    Numbers of sixteen bits with a five-bit exponent end at 6e-8; gradients of activations are often
    smaller. A power of two scales them without rounding, and is divided out again where the
    parameters' gradients are taken, so that signals, clipping and steps see the true ones. A step
    whose gradients overflow is made again at half the scale, from the same rows; after 2,000 good
    ones the scale doubles (section 3.2).

    moves: False fixes it at one.
    """

    def __init__(self, *, moves: bool) -> None:
        self.value = FIRST if moves else 1.0
        self.moves = moves
        self._good = 0

    def on(self, losses: RowLosses) -> RowLosses:
        """The same losses, whose gradient is scaled."""
        if self.value == 1.0:
            return losses
        # Sixteen bits may not hold the scale itself.
        sums = losses.sums.to(torch.promote_types(losses.sums.dtype, torch.float32))
        scaled = _ScaledGradient.apply(sums, self.value)  # type: ignore[no-untyped-call]
        return RowLosses(scaled, losses.counts)

    def off(self, gradient: Tensor) -> Tensor:
        """The true gradient, of one that was made of scaled losses."""
        return gradient if self.value == 1.0 else gradient / self.value

    def good(self) -> None:
        """A step's gradients were finite."""
        if not self.moves:
            return
        self._good += 1
        if self._good == _GROWS_AFTER:
            self.value, self._good = 2 * self.value, 0

    def halve(self) -> bool:
        """A step's gradients were not; whether a smaller scale may help."""
        self._good = 0
        if not self.moves or self.value == 1.0:
            return False
        self.value /= 2
        return True

    def state_dict(self) -> dict[str, float]:
        """Where it stands, for checkpoints."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.value, self._good = float(state["value"]), int(state["good"])


class _ScaledGradient(torch.autograd.Function):
    """The identity, whose gradient is multiplied."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None
