"""The transform span-mask: SpanBERT (Joshi et al., TACL 2020), section 3.1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from aang_core import RegisterPrimitive, hookimpl, number_option

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from aang_core import Corruption, Vocabulary

AANG_PLUGIN_API = 1
P, LONGEST = 0.2, 10


class SpanMask:
    """Spans of whole words become mask tokens; their lengths are Geo(0.2), at most 10, mean 3.8.

    Args:
        rate: the share of the ordinary tokens to mask.
    """

    def __init__(self, rate: float = 0.15) -> None:
        meaning = "the share of tokens to mask, above 0 and at most 1"
        self.rate = number_option("span-mask.rate", rate, meaning, low=0, high=1, above_low=True)

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        # Imported here: listing primitives imports this module, and should not load torch.
        import torch

        from aang_core import Corruption, word_starts

        starts = word_starts(ids, ordinary, vocabulary)
        selected = torch.zeros_like(ordinary)
        for row in range(len(ids)):
            selected[row, self._spans(ordinary[row], starts[row], generator)] = True
        return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)

    def _spans(self, ordinary: Tensor, starts: Tensor, generator: Generator) -> list[int]:
        import torch

        words = [list[int]() for _ in range(int(starts.sum()))]
        for place, word in zip(
            ordinary.nonzero()[:, 0].tolist(), starts.cumsum(0)[ordinary].tolist(), strict=True
        ):
            words[word - 1].append(place)
        lengths = torch.tensor([(1 - P) ** n for n in range(LONGEST)])
        chosen: list[int] = []
        budget = math.ceil(self.rate * sum(map(len, words)))
        while len(chosen) < budget:
            first = int(torch.randint(len(words), (), generator=generator))
            length = 1 + int(torch.multinomial(lengths, 1, generator=generator))
            span = [place for word in words[first : first + length] for place in word]
            # After a gap begins another text.
            span = [place for n, place in enumerate(span) if place == span[0] + n]
            if span[0] not in chosen:
                chosen += [place for place in span if place not in chosen]
        return chosen[:budget]


@hookimpl
def aang_register_transforms(register: RegisterPrimitive) -> None:
    """Register the transform."""
    register("span-mask", "spans of words are masked", SpanMask, provides=("masks-tokens",))
