"""The transform that leaves the input as it is (AANG, Table 1)."""

import torch
from torch import Tensor

from aang_core.objectives.stages.transform import Corruption, select_tokens
from aang_core.objectives.stages.vocabulary import Vocabulary


class NoOp:
    """Changes nothing, but still selects 15% of the ordinary tokens as prediction targets."""

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """Return ``ids`` ``[B, T]`` themselves, and the tokens that are to be predicted."""
        return Corruption(ids, select_tokens(ordinary, generator))
