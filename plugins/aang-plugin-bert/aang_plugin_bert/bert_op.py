"""The transform ``bert-op``."""

import torch
from torch import Generator, Tensor

from aang_core import SELECTION_RATE, Corruption, Vocabulary, random_tokens, select_tokens
from aang_plugin_bert.selection import selection_rate

MASKED = 0.8
REPLACED = 0.1


class BertOp:
    """Of the selected tokens 80% are masked, 10% replaced by a random token and 10% kept.

    BERT, section 3.1 (Task #1) and appendix A.1. AANG, section 3, describes the same in other
    words: mask 80% of the selected tokens and randomly replace 50% of the remaining ones.

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
        fate = torch.rand(ids.shape, generator=generator, device=ids.device)
        drawn = random_tokens(ids.shape, vocabulary, generator)
        masked = selected & (fate < MASKED)
        replaced = selected & (fate >= MASKED) & (fate < MASKED + REPLACED)
        corrupted = torch.where(replaced, drawn, ids).masked_fill(masked, vocabulary.mask_id)
        return Corruption(corrupted, selected)
