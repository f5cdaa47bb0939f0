"""The transform that leaves the input as it is (AANG, Table 1)."""

import torch
from torch import Tensor

from aang_core.objectives.stages.transform import Corruption, select_tokens
from aang_core.objectives.stages.vocabulary import Vocabulary


class NoOp:
    """Changes nothing; 15% of the ordinary tokens are still selected as prediction targets."""

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """Return ``ids`` ``[B, T]`` themselves and which tokens are to be predicted."""
        return Corruption(ids, select_tokens(ordinary, generator))
