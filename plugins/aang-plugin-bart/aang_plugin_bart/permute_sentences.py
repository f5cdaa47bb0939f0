"""The transform ``permute-sentences``."""

import torch
from torch import Generator, Tensor

from aang_core import Corruption, Vocabulary, select_tokens, sentence_starts


class PermuteSentences:
    """The sentences of a text come in random order (BART, section 2.2, "sentence permutation").

    Sentences end with a full stop, a question mark or an exclamation mark. In a row with two texts,
    each keeps its sentences. Special tokens within a text, such as the unknown token, move with
    their sentence. 15% of the tokens are selected, as by ``no-op``, and move with theirs.

    Examples:
        >>> import torch
        >>> from aang_testing import VOCABULARY
        >>> from aang_plugin_bart.permute_sentences import PermuteSentences
        >>> VOCABULARY.texts[13]
        '.'
        >>> ids = torch.tensor([[1, 4, 13, 5, 7, 13, 2]])
        >>> ordinary = (ids != 1) & (ids != 2)
        >>> generator = torch.Generator().manual_seed(0)
        >>> PermuteSentences()(ids, ordinary, VOCABULARY, generator).ids
        tensor([[ 1,  5,  7, 13,  4, 13,  2]])
    """

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        starts = sentence_starts(ids, ordinary, vocabulary)
        place = torch.arange(ids.shape[1]).expand_as(ids)
        # Every token has the key of the first token of its sentence.
        first = place.masked_fill(~starts, 0).cummax(dim=1).values
        key = torch.rand(ids.shape, generator=generator).gather(1, first)
        # A token between texts comes before the text that follows it, which is sorted by itself.
        parts = vocabulary.parts_texts(ids, ordinary)
        text = parts.cumsum(dim=1)
        origin = key.masked_fill(parts, -1.0).argsort(dim=1, stable=True)
        origin = origin.gather(1, text.gather(1, origin).argsort(dim=1, stable=True))
        selected = select_tokens(ordinary, generator)
        return Corruption(ids.gather(1, origin), selected.gather(1, origin), origin=origin)
