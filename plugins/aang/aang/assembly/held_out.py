"""Which texts are held out from the training of an encoder, to evaluate it."""

import torch
from torch import Tensor

HELD_OUT_FRACTION = 0.1
MOST_HELD_OUT = 512
"""More texts would add little, and all of them go through the encoder at every evaluation."""


def hold_out_of(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw a tenth of ``count`` texts, at most 512, to hold out.

    Returns:
        The indices of the held-out texts and those of the others, ascending.
    """
    held_out = min(MOST_HELD_OUT, max(1, round(HELD_OUT_FRACTION * count)))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return order[:held_out].sort().values, order[held_out:].sort().values
