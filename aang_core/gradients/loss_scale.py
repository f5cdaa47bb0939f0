"""The scale of losses in half precision (Micikevicius et al., Mixed Precision Training, 2018)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from aang_core.tasks.saved import saved_count, saved_number, wrong
from aang_core.tasks.task import RowLosses

FIRST = 2.0**16
"""The scale at the start of training."""
_GROWS_AFTER = 2000


class LossScale:
    """The factor on losses before a backward pass that keeps small gradients from vanishing.

    The smallest positive number in fp16 is 6e-8; gradients of activations are often smaller. A
    power of two scales them without rounding. Gradients of parameters are divided by it as soon as
    they are computed, so signals, clipping and steps see the true ones. A step whose gradients
    overflow is repeated at half the scale on the same rows; after 2,000 good steps the scale
    doubles (section 3.2). torch's ``GradScaler`` skips such a step instead of repeating it.

    Args:
        moves: False fixes the scale at one.
    """

    def __init__(self, *, moves: bool) -> None:
        self.value = FIRST if moves else 1.0
        self.moves = moves
        self._good = 0

    def on(self, losses: RowLosses) -> RowLosses:
        """The same losses with a scaled gradient."""
        if self.value == 1.0:
            return losses
        # fp16 may not be able to represent the scale itself.
        sums = losses.sums.to(torch.promote_types(losses.sums.dtype, torch.float32))
        scaled = _ScaledGradient.apply(sums, self.value)  # type: ignore[no-untyped-call]
        return RowLosses(scaled, losses.counts)

    def off(self, gradient: Tensor) -> Tensor:
        """The true gradient, given the gradient of scaled losses."""
        return gradient if self.value == 1.0 else gradient / self.value

    def good(self) -> None:
        """Record a step with finite gradients."""
        if not self.moves:
            return
        self._good += 1
        if self._good == _GROWS_AFTER:
            self.value, self._good = 2 * self.value, 0

    def halve(self) -> bool:
        """Halve the scale after gradients that were not finite.

        Returns:
            Whether repeating the step may help; False if the scale cannot get smaller.
        """
        self._good = 0
        if not self.moves or self.value == 1.0:
            return False
        self.value /= 2
        return True

    def state_dict(self) -> dict[str, float]:
        """The scale, and the number of good steps at it."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state.

        Raises:
            SavedStateError: it is not such a state.
        """
        value, good = saved_number(state, "value"), saved_count(state, "good", most=_GROWS_AFTER)
        if value < 1 or not (self.moves or value == 1):
            raise wrong("value", "1 or more" if self.moves else "1", value)
        self.value, self._good = value, good


class _ScaledGradient(torch.autograd.Function):
    """The identity, with its gradient multiplied by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None
