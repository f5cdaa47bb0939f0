"""The transform ``replace``."""

import torch
from torch import Generator, Tensor

from aang_core import SELECTION_RATE, Corruption, Vocabulary, random_tokens, select_tokens
from aang_plugin_bert.selection import selection_rate


class Replace:
    """Every selected token becomes a uniformly random token (AANG, section 3, stage 2; Figure 2).

    The random token may equal the original one. To find out which tokens differ, compare the ids.

    Args:
        rate: probability of selecting an ordinary token.

    Raises:
        ConfigError: ``rate`` is not in (0, 1].
    """

    def __init__(self, rate: float = SELECTION_RATE) -> None:
        self.rate = selection_rate(rate)

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        selected = select_tokens(ordinary, generator, self.rate)
        drawn = random_tokens(ids.shape, vocabulary, generator)
        return Corruption(torch.where(selected, drawn, ids), selected)
