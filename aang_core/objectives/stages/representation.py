"""The representation stage: which tokens a token may see (AANG, section 3, stage 3)."""

from typing import Protocol

import torch
from torch import Tensor


class Representation(Protocol):
    """A representation primitive, made by calling its target with the user's options."""

    def __call__(self, real: Tensor, generator: torch.Generator) -> Tensor:
        """Who may attend to whom.

        real: ``[B, T]`` bool, True at every token that is not padding, special ones included.
        generator: the only source of randomness.

        Returns ``[B, T, T]`` bool; entry ``[b, i, j]`` says whether token i sees token j. Padding
        is never seen, and every real token sees at least one token.
        """
        ...
