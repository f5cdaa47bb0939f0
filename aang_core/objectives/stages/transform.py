"""The transform stage: how an input is corrupted (AANG, section 3, stage 2)."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from aang_core.objectives.stages.vocabulary import Vocabulary

SELECTION_RATE = 0.15
"""Share of the ordinary tokens that become prediction targets (BERT, section 3.1)."""


class Corruption(NamedTuple):
    """What a transform returns.

    ids: ``[B, T]`` int64, the corrupted input.
    selected: ``[B, T]`` bool, the prediction targets; a subset of the ordinary tokens.
    """

    ids: Tensor
    selected: Tensor


class Transform(Protocol):
    """A transform primitive, made by calling its registered target with the user's options."""

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """Corrupt a batch.

        ids: ``[B, T]`` int64, never changed in place.
        ordinary: ``[B, T]`` bool, True at tokens that are neither special nor padding.
        generator: the only source of randomness.
        """
        ...


def select_tokens(
    ordinary: Tensor, generator: torch.Generator, rate: float = SELECTION_RATE
) -> Tensor:
    """Select each ordinary token independently with probability ``rate``: ``[B, T]`` bool."""
    drawn = torch.rand(ordinary.shape, generator=generator, device=ordinary.device)
    return ordinary & (drawn < rate)


def random_tokens(shape: torch.Size, vocabulary: Vocabulary, generator: torch.Generator) -> Tensor:
    """Token ids of the given shape, uniform over the vocabulary's ordinary tokens, int64."""
    drawn = torch.randint(
        vocabulary.ordinary.numel(), shape, generator=generator, device=vocabulary.ordinary.device
    )
    return vocabulary.ordinary[drawn]
