"""What the end task's head says about both views of the rows."""

import torch
from torch import Tensor, nn

from aang_core import RowLosses, number_option


class BothViews:
    """Predictions for N rows, each shown clean and corrupted, over C classes.

    The predictions for the clean rows are targets, so no gradient goes through them. They are
    computed at least in single precision: a threshold of 0.95 leaves bfloat16 with seven numbers
    above it.

    Args:
        head: hidden states ``[2N, T, H]`` → logits ``[2N, C]``.
        hidden: ``[2N, T, H]``, the clean rows first.
        balance: how far the clean predictions of the batch are pulled towards equally frequent
            classes.

    Attributes:
        clean: ``[N, C]``, the probabilities of the clean rows, balanced; without gradient.
        corrupted: ``[N, C]``, the log-probabilities of the corrupted rows.
    """

    def __init__(self, head: nn.Module, hidden: Tensor, balance: float) -> None:
        clean, corrupted = hidden.chunk(2)
        with torch.no_grad():
            self.clean = balanced(_exact(head(clean)).softmax(dim=1), balance)
        self.corrupted = _exact(head(corrupted)).log_softmax(dim=1)

    def losses(self, losses: Tensor, threshold: float) -> RowLosses:
        """The losses ``[N]`` of the rows whose clean prediction reaches ``threshold``.

        The others have a loss of zero and count as well, as in both papers: while the model is sure
        of little, the objective weighs little.
        """
        sure = self.clean.amax(dim=1) >= threshold
        # The clean rows only serve as targets, and have no loss of their own.
        none = torch.zeros_like(losses)
        return RowLosses(torch.cat([none, losses * sure]), torch.cat([none, none + 1]))


def balanced(predicted: Tensor, strength: float) -> Tensor:
    """Divide probabilities by their mean over the rows, to the power of ``strength``.

    The distribution alignment of ReMixMatch (Berthelot et al., ICLR 2020, section 3.1) towards
    equally frequent classes, with the mean of the batch instead of a running one.

    Args:
        predicted: ``[N, C]``, probabilities.
        strength: 0 leaves them as they are, 1 divides them by the whole mean.
    """
    if strength == 0:
        return predicted
    tiny = torch.finfo(predicted.dtype).tiny
    rare = predicted / predicted.mean(dim=0).clamp(min=tiny).pow(strength)
    return rare / rare.sum(dim=1, keepdim=True)


def threshold_option(value: float) -> float:
    """Check the option ``threshold``.

    Raises:
        ConfigError: it is not a probability.
    """
    return number_option("output option threshold", value, low=0, high=1)


def balance_option(value: float) -> float:
    """Check the option ``balance``.

    Raises:
        ConfigError: it is not between 0 and 1.
    """
    return number_option("output option balance", value, low=0, high=1)


def _exact(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
