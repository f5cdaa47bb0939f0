"""The representation stage: which tokens a token may attend to (AANG, section 3, stage 3)."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from aang_core.objectives.stages.vocabulary import Vocabulary


class Representation(Protocol):
    """A representation primitive, made by calling its target with the user's options.

    One that has to know the tokens implements :class:`TextRepresentation` instead.

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


@dataclass(frozen=True)
class ShownRows:
    """Rows as the encoder reads them, after the transform; B rows, T tokens.

    Attributes:
        ids: ``[B, T]`` int64, never changed in place.
        real: ``[B, T]`` bool, not padding.
        ordinary: ``[B, T]`` bool, neither special nor padding. Special tokens separate the two
            texts of a row that has two.
        vocabulary: the tokenizer's tokens.

    Examples:
        >>> import torch
        >>> from aang_core import ShownRows, sentence_starts
        >>> from aang_testing import VOCABULARY
        >>> ids = torch.tensor([[1, 4, 5, 2, 6, 2]])
        >>> rows = ShownRows(ids, real=ids > 0, ordinary=ids > 3, vocabulary=VOCABULARY)
        >>> sentence_starts(rows.ids, rows.ordinary, rows.vocabulary).nonzero()[:, 1]
        tensor([1, 4])
    """

    ids: Tensor
    real: Tensor
    ordinary: Tensor
    vocabulary: Vocabulary


@runtime_checkable
class TextRepresentation(Protocol):
    """A representation that depends on the tokens of a row, such as its sentences.

    Examples:
        >>> import torch
        >>> from aang_core import ShownRows, TextRepresentation, Vocabulary
        >>> class OwnText:
        ...     def of_text(self, rows, generator):
        ...         text = (~rows.ordinary).cumsum(dim=1)
        ...         return (text.unsqueeze(1) == text.unsqueeze(2)) & rows.real.unsqueeze(1)
        >>> isinstance(OwnText(), TextRepresentation)
        True
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: [""] * 6)
        >>> ids = torch.tensor([[1, 4, 2, 5]])
        >>> rows = ShownRows(ids, real=ids > 0, ordinary=ids > 3, vocabulary=words)
        >>> OwnText().of_text(rows, torch.Generator()).int()
        tensor([[[1, 1, 0, 0],
                 [1, 1, 0, 0],
                 [0, 0, 1, 1],
                 [0, 0, 1, 1]]], dtype=torch.int32)
    """

    def of_text(self, rows: ShownRows, generator: torch.Generator) -> Tensor:
        """Choose which tokens each token may attend to, as :class:`Representation` does.

        Args:
            rows: the rows, with their tokens.
            generator: the only source of randomness.

        Returns:
            ``[B, T, T]`` bool, as :class:`Representation` returns it.
        """
        ...
