"""What primitives may know of the encoder's tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that there are.

    size: number of token ids, V.
    mask_id: id of the mask token.
    ordinary: ``[V']`` int64, the ids that stand for text, so no special token. A random token is
        drawn from these only: a padding id drawn in the middle of a row would move the positions
        of models that count them from the ids, as RoBERTa does.
    decode: makes :attr:`texts`; called when they are first asked for.
    """

    size: int
    mask_id: int
    ordinary: Tensor
    decode: Callable[[], Sequence[str]]

    @cached_property
    def texts(self) -> Sequence[str]:
        """What each of the V ids reads as behind other text: ``" Word"``, ``"ing"``, ``","``.

        A space in front says that the token begins a word. Capitals are there if the tokenizer
        keeps them. ``""`` for a special token; a token that is part of a character has U+FFFD.
        Decoding takes about a second for 50,000 tokens, once.
        """
        return self.decode()

    @cached_property
    def _spaces(self) -> tuple[Tensor, Tensor]:
        """Whether each text begins, and whether it ends, with a space: ``[V]`` bool both."""
        begins = torch.tensor([text[:1].isspace() for text in self.texts])
        return begins, torch.tensor([text[-1:].isspace() for text in self.texts])


def word_starts(ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Which ordinary tokens begin a word, ``[B, T]`` bool: the others go on with the one before.

    A word begins behind a space, a special token, or nothing. Punctuation stays with the word that
    it follows without a space; BERT's tokenizer makes words of most marks.

    ids: ``[B, T]`` int64. ordinary: ``[B, T]`` bool.
    """
    begins, ends = (table.to(ids.device)[ids] for table in vocabulary._spaces)
    parted = (ends | ~ordinary).roll(1, 1)
    parted[:, :1] = True
    return ordinary & (begins | parted)
