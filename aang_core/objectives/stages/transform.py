"""The transform stage: how an input is corrupted (AANG, section 3, stage 2)."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from aang_core.objectives.stages.vocabulary import Vocabulary

SELECTION_RATE = 0.15
"""Share of the ordinary tokens that become prediction targets (BERT, section 3.1)."""


class Corruption(NamedTuple):
    """What a transform returns.

    A transform that leaves every token at its place returns ``ids`` and ``selected``. One that
    deletes, inserts or moves tokens says with ``real`` which are left, and with ``origin`` where
    each came from; rows may then have another number of tokens, T'. Padding may be anywhere:
    AANG moves the tokens that are left to the beginning of their row. It cuts a row that has become
    too long for the encoder. Special tokens have to stay, in their order, the first one at the
    beginning.

    Attributes:
        ids: ``[B, T']`` int64, the corrupted input; T' = T without ``origin``.
        selected: ``[B, T']`` bool, the prediction targets; a subset of the ordinary tokens that are
            left, and none that was inserted.
        real: ``[B, T']`` bool, the tokens that are left; None for all. What was padding stays
            padding, whether it is marked here or not.
        origin: ``[B, T']`` int64, the place in the given row that each token came from; -1 for one
            that was inserted. None if every token is where it was.

    Examples:
        >>> import torch
        >>> from aang_core import Corruption
        >>> ids, selected = torch.tensor([[1, 7, 2]]), torch.tensor([[False, True, False]])
        >>> Corruption(ids.masked_fill(selected, 0), selected).ids
        tensor([[1, 0, 2]])

        The row 1 7 8 2 without its third token, and with its middle tokens exchanged:

        >>> ids = torch.tensor([[1, 7, 8, 2]])
        >>> nothing = torch.zeros_like(ids, dtype=torch.bool)
        >>> left = torch.tensor([[True, True, False, True]])
        >>> deleted = Corruption(ids, nothing, real=left)
        >>> order = torch.tensor([[0, 2, 1, 3]])
        >>> exchanged = Corruption(ids.gather(1, order), nothing, origin=order)
    """

    ids: Tensor
    selected: Tensor
    real: Tensor | None = None
    origin: Tensor | None = None


class Transform(Protocol):
    """A transform primitive, made by calling its registered target with the user's options.

    Examples:
        >>> from aang_core import Corruption, Transform, select_tokens
        >>> class Mask:
        ...     def __call__(self, ids, ordinary, vocabulary, generator):
        ...         selected = select_tokens(ordinary, generator)
        ...         return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)
        >>> transform: Transform = Mask()
    """

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """Corrupt a batch.

        Args:
            ids: ``[B, T]`` int64, never changed in place.
            ordinary: ``[B, T]`` bool, True at tokens that are neither special nor padding.
            vocabulary: the tokenizer's tokens.
            generator: the only source of randomness.
        """
        ...


def select_tokens(
    ordinary: Tensor, generator: torch.Generator, rate: float = SELECTION_RATE
) -> Tensor:
    """Select each ordinary token independently with probability ``rate``.

    Args:
        ordinary: ``[B, T]`` bool, True at tokens that are neither special nor padding.
        generator: source of the draws, on the device of ``ordinary``.
        rate: the probability.

    Returns:
        ``[B, T]`` bool.

    Examples:
        >>> import torch
        >>> from aang_core import select_tokens
        >>> ordinary = torch.tensor([[False, True, True, False]])
        >>> select_tokens(ordinary, torch.Generator(), rate=1.0)
        tensor([[False,  True,  True, False]])
    """
    drawn = torch.rand(ordinary.shape, generator=generator, device=ordinary.device)
    return ordinary & (drawn < rate)


def random_tokens(shape: torch.Size, vocabulary: Vocabulary, generator: torch.Generator) -> Tensor:
    """Token ids drawn uniformly from the vocabulary's ordinary tokens, int64.

    Args:
        shape: of the result.
        vocabulary: the tokenizer's tokens.
        generator: source of the draws.

    Examples:
        >>> import torch
        >>> from aang_core import Vocabulary, random_tokens
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: [""] * 6)
        >>> drawn = random_tokens(torch.Size([2, 3]), words, torch.Generator().manual_seed(0))
        >>> drawn.shape, int(drawn.min()) >= 4
        (torch.Size([2, 3]), True)
    """
    drawn = torch.randint(
        vocabulary.ordinary.numel(), shape, generator=generator, device=vocabulary.ordinary.device
    )
    return vocabulary.ordinary[drawn]


class NoOp:
    """The transform that leaves the input as it is (AANG, Table 1).

    It still selects 15% of the ordinary tokens as prediction targets.
    """

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """Return ``ids`` ``[B, T]`` themselves, and the tokens that are to be predicted."""
        return Corruption(ids, select_tokens(ordinary, generator))
