"""The transform ``mask``."""

from torch import Generator, Tensor

from aang_core import SELECTION_RATE, Corruption, Vocabulary, select_tokens
from aang_plugin_bert.selection import selection_rate


class Mask:
    """Every selected token becomes the mask token (AANG, section 3, stage 2; Figure 2).

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
        return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)
