"""Rows of tokens, and hypothesis strategies that make awkward ones."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from aang_core.objectives.stages import CorruptedRows, DocumentStatistics, Vocabulary

PAD, FIRST, LAST, MASK = range(4)
CLASSES = 3
_FORMS = (" the", " Paris", " NATO", "ing", "Ton", "ED", ",", " 42", "\ufffd")
VOCABULARY = Vocabulary(
    size=40,
    mask_id=MASK,
    ordinary=torch.arange(MASK + 1, 40),
    decode=lambda: ("",) * (MASK + 1) + _FORMS * 4,
)
"""Forty token ids: padding, the two special tokens around every row, mask, and 36 of text.

There are nine texts with four ids each: words, names, abbreviations, parts of these, and half a
character.
"""


@dataclass(frozen=True)
class SampleRows:
    """A batch of tokenised texts; B rows, T tokens, padded on the right.

    Attributes:
        ids: ``[B, T]`` int64.
        real: ``[B, T]`` bool, not padding.
        ordinary: ``[B, T]`` bool, neither special nor padding.
        vocabulary: the tokens.
    """

    ids: Tensor
    real: Tensor
    ordinary: Tensor
    vocabulary: Vocabulary

    @staticmethod
    def of_lengths(lengths: list[int], tokens: int, seed: int) -> "SampleRows":
        """Random text in rows of the given numbers of real tokens, padded to ``tokens``."""
        generator = torch.Generator().manual_seed(seed)
        length = torch.tensor(lengths).unsqueeze(1)
        place = torch.arange(tokens).unsqueeze(0)
        real = place < length
        ordinary = (place > 0) & (place < length - 1)
        drawn = torch.randint(MASK + 1, VOCABULARY.size, real.shape, generator=generator)
        ids = torch.where(ordinary, drawn, LAST).masked_fill(~real, PAD)
        ids[:, 0] = FIRST
        return SampleRows(ids, real, ordinary, VOCABULARY)

    def repeated(self, times: int) -> "SampleRows":
        """All rows, ``times`` times over."""
        ids, real, ordinary = (c.repeat(times, 1) for c in (self.ids, self.real, self.ordinary))
        return SampleRows(ids, real, ordinary, self.vocabulary)


@st.composite
def token_rows(draw: st.DrawFn, max_rows: int = 4, max_tokens: int = 12) -> SampleRows:
    """Rows from a single special token up to full ones; the longest need not fill the batch."""
    tokens = draw(st.integers(1, max_tokens))
    lengths = draw(st.lists(st.integers(1, tokens), min_size=1, max_size=max_rows))
    return SampleRows.of_lengths(lengths, tokens, draw(st.integers(0, 2**32)))


@st.composite
def corrupted_rows(draw: st.DrawFn, labelled: bool = True, views: int = 1) -> CorruptedRows:
    """Rows after some transform, with any share of tokens selected, from none to all.

    Of the selected tokens some are masked, some replaced and some kept. With ``labelled``, the rows
    have labels of three classes. Each row has ``views`` views, all first views before all second
    ones.
    """
    rows = draw(token_rows()).repeated(views)
    rate = draw(st.sampled_from([0.0, 0.15, 0.5, 1.0]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    selected = rows.ordinary & (torch.rand(rows.ids.shape, generator=generator) < rate)
    random_ids = torch.randint(MASK + 1, VOCABULARY.size, rows.ids.shape, generator=generator)
    # One row in four, at random, has no target at all.
    selected &= torch.rand((len(rows.ids), 1), generator=generator) < 0.75
    fate = torch.rand(rows.ids.shape, generator=generator)
    corrupted = rows.ids.masked_fill(selected & (fate < 0.5), MASK)
    corrupted = torch.where(selected & (fate > 0.8), random_ids, corrupted)
    documents = draw(st.integers(1, 1000))
    # A total order of the real tokens, for outputs that require a reading order.
    order = torch.rand(rows.ids.shape, generator=generator).argsort(1)
    order = order.masked_fill(~rows.real, rows.ids.shape[1])
    return CorruptedRows(
        original=rows.ids,
        corrupted=corrupted,
        selected=selected,
        ordinary=rows.ordinary,
        real=rows.real,
        labels=(
            torch.randint(CLASSES, (len(rows.ids) // views,), generator=generator).repeat(views)
            if labelled
            else None
        ),
        statistics=DocumentStatistics(
            documents,
            torch.randint(documents + 1, (VOCABULARY.size,), generator=generator),
        ),
        sees=(order.unsqueeze(1) <= order.unsqueeze(2)) & rows.real.unsqueeze(1),
        vocabulary=VOCABULARY,
        views=views,
    )
