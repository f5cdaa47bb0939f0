"""The representation stage: which tokens a token may attend to (AANG, section 3, stage 3)."""

from typing import Protocol

import torch
from torch import Tensor


class Representation(Protocol):
    """A representation primitive, made by calling its target with the user's options.

    Examples:
        >>> import torch
        >>> from aang_core import Representation
        >>> class LeftToRight:
        ...     def __call__(self, real, generator):
        ...         rows, tokens = real.shape
        ...         return real.unsqueeze(1).expand(rows, tokens, tokens).tril()
        >>> representation: Representation = LeftToRight()
        >>> representation(torch.tensor([[True, True, False]]), torch.Generator()).int()
        tensor([[[1, 0, 0],
                 [1, 1, 0],
                 [1, 1, 0]]], dtype=torch.int32)
    """

    def __call__(self, real: Tensor, generator: torch.Generator) -> Tensor:
        """Choose which tokens each token may attend to.

        Args:
            real: ``[B, T]`` bool, True at every token that is not padding, special ones included.
            generator: the only source of randomness.

        Returns:
            ``[B, T, T]`` bool; entry ``[b, i, j]`` says whether token i sees token j. No token sees
            padding, and every real token sees at least one token.
        """
        ...
