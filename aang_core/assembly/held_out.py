"""Which texts an encoder is not trained on, so that they can tell how well it reads."""

import torch
from torch import Tensor

HELD_OUT_FRACTION = 0.1
MOST_HELD_OUT = 512
"""More texts tell no more, and all are passed through the encoder at every evaluation."""


def hold_out_of(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Of ``count`` texts a tenth, at most 512, drawn with ``seed``, and the others, sorted."""
    held_out = min(MOST_HELD_OUT, max(1, round(HELD_OUT_FRACTION * count)))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return order[:held_out].sort().values, order[held_out:].sort().values
