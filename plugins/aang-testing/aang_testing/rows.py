"""Rows of tokens, and hypothesis strategies that make awkward ones."""

from dataclasses import dataclass, replace

import torch
from aang.assembly.objective_task import PlacedRows, place_rows
from aang.corpora.tokens import PaddedRows
from aang.task_types.choose import task_type_named
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import NO_LABEL, TaskType
from hypothesis import strategies as st
from torch import Tensor

from aang_core.objectives.stages import (
    CorruptedRows,
    Corruption,
    DocumentStatistics,
    Vocabulary,
)

PAD, FIRST, LAST, MASK = range(4)
CLASSES = 3
SINGLE = SingleLabel.name
_FORMS = (" the", " Paris", " NATO", "ing", "Ton", "ED", ",", " 42", "\ufffd", ".", "?", ")")
VOCABULARY = Vocabulary(
    size=40,
    mask_id=MASK,
    ordinary=torch.arange(MASK + 1, 40),
    decode=lambda: ("",) * (MASK + 1) + _FORMS * 3,
)
"""Forty token ids: padding, the two special tokens around every row, mask, and 36 of text.

There are twelve texts with three ids each: words, names, abbreviations, parts of these, half a
character, and what ends a sentence.
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

    def placed(self, corruption: Corruption, token_labels: Tensor | None = None) -> PlacedRows:
        """These rows as the encoder reads them after a transform has returned ``corruption``.

        Args:
            corruption: what the transform returned.
            token_labels: ``[B, T]`` int64, the label of each token before, -100 where it has none;
                None if tokens have no labels.
        """
        padded = PaddedRows(self.ids, self.real, self.ordinary, None, None, PAD, 0, token_labels)
        return place_rows(padded, corruption, 10 * self.ids.shape[1])


@st.composite
def token_rows(draw: st.DrawFn, max_rows: int = 4, max_tokens: int = 12) -> SampleRows:
    """Rows from a single special token up to full ones; the longest need not fill the batch."""
    tokens = draw(st.integers(1, max_tokens))
    lengths = draw(st.lists(st.integers(1, tokens), min_size=1, max_size=max_rows))
    return SampleRows.of_lengths(lengths, tokens, draw(st.integers(0, 2**32)))


@st.composite
def corrupted_rows(
    draw: st.DrawFn,
    labelled: bool = True,
    views: int = 1,
    kind: str = SINGLE,
) -> CorruptedRows:
    """Rows after some transform, with any share of tokens selected, from none to all.

    Some selected tokens are masked, some replaced and some kept. One row in four, at random,
    has no target at all. Half of the batches have deleted, inserted and moved tokens, too. With
    ``labelled``, the rows have the labels of an end task of this ``kind``: of three classes, or
    numbers. Each row has ``views`` views, all first views before all second ones.
    """
    return _corrupted(
        draw(token_rows()).repeated(views),
        draw(st.sampled_from([0.0, 0.15, 0.5, 1.0])),
        torch.Generator().manual_seed(draw(st.integers(0, 2**32))),
        documents=draw(st.integers(1, 1000)),
        moved=draw(st.booleans()),
        labelled=labelled,
        views=views,
        kind=kind,
    )


def selected_rows(labelled: bool, views: int, kind: str) -> CorruptedRows:
    """One batch of three long rows in which half of the tokens are selected, the same each time.

    Hypothesis may draw few batches in which several rows have targets; here all three have some.
    """
    rows = SampleRows.of_lengths([9, 12, 7], 12, seed=0).repeated(views)
    return _corrupted(
        rows,
        0.5,
        torch.Generator().manual_seed(0),
        of_rows=1.0,
        documents=100,
        moved=False,
        labelled=labelled,
        views=views,
        kind=kind,
    )


def _corrupted(
    rows: SampleRows,
    rate: float,
    generator: torch.Generator,
    *,
    of_rows: float = 0.75,
    documents: int,
    moved: bool,
    labelled: bool,
    views: int,
    kind: str,
) -> CorruptedRows:
    """Select ``rate`` of the tokens, in ``of_rows`` of the rows, and corrupt them."""
    selected = rows.ordinary & (torch.rand(rows.ids.shape, generator=generator) < rate)
    random_ids = torch.randint(MASK + 1, VOCABULARY.size, rows.ids.shape, generator=generator)
    selected &= torch.rand((len(rows.ids), 1), generator=generator) < of_rows
    fate = torch.rand(rows.ids.shape, generator=generator)
    corrupted = rows.ids.masked_fill(selected & (fate < 0.5), MASK)
    corrupted = torch.where(selected & (fate > 0.8), random_ids, corrupted)
    corruption = Corruption(corrupted, selected)
    if moved:
        corruption = _moved(corruption, rows, generator)
    task_type = sample_kind(kind)
    tagged = labelled and task_type.reads_every_token
    placed = rows.placed(corruption, _tags(rows, views, generator) if tagged else None)
    real = placed.rows.real
    # A total order of the real tokens, for outputs that require a reading order.
    order = torch.rand(real.shape, generator=generator).argsort(1)
    order = order.masked_fill(~real, real.shape[1])
    return CorruptedRows(
        original=placed.original,
        corrupted=placed.rows.ids,
        selected=placed.selected,
        ordinary=placed.rows.ordinary,
        real=real,
        labels=_labels(task_type, len(rows.ids) // views, views, generator) if labelled else None,
        statistics=DocumentStatistics(
            documents,
            torch.randint(documents + 1, (VOCABULARY.size,), generator=generator),
        ),
        sees=(order.unsqueeze(1) <= order.unsqueeze(2)) & real.unsqueeze(1),
        vocabulary=VOCABULARY,
        views=views,
        before=placed.before,
        token_labels=placed.rows.token_labels,
    )


def sample_kind(name: str) -> TaskType:
    """A made-up end task of a kind, with three classes if the kind has any."""
    kind = task_type_named(name)()
    return kind if kind.labels else replace(kind, labels=tuple("abc"[:CLASSES]))


def _labels(kind: TaskType, rows: int, views: int, generator: torch.Generator) -> Tensor | None:
    """A label of every row, the same in all its views; None for a kind that labels tokens."""
    if kind.reads_every_token:
        return None
    labels = kind.sample_labels(rows, generator)
    return labels.repeat(views, *[1] * (labels.dim() - 1))


def _tags(rows: SampleRows, views: int, generator: torch.Generator) -> Tensor:
    """A label for half of the ordinary tokens, as if each word had two; the same in all views."""
    shape = len(rows.ids) // views, rows.ids.shape[1]
    tags = torch.randint(CLASSES, shape, generator=generator)
    first = torch.rand(shape, generator=generator) < 0.5
    return tags.masked_fill(~first, NO_LABEL).repeat(views, 1).masked_fill(~rows.ordinary, NO_LABEL)


def _moved(corruption: Corruption, rows: SampleRows, generator: torch.Generator) -> Corruption:
    """Exchange ordinary tokens, delete a fifth of them, and insert a mask token after a fifth."""
    shape = rows.ids.shape
    place = torch.arange(shape[1]).expand(shape)
    # Ordinary tokens are together, after the first token, so their order is all that changes.
    key = torch.where(rows.ordinary, torch.rand(shape, generator=generator), place * 2.0)
    key = torch.where(rows.ordinary, key + 0.5, key)
    origin = key.argsort(dim=1)
    kept = ~rows.ordinary | (torch.rand(shape, generator=generator) < 0.8)
    masks = rows.ordinary & (torch.rand(shape, generator=generator) < 0.2)

    def with_masks(values: Tensor, of_mask: Tensor) -> Tensor:
        return torch.stack([values.gather(1, origin), of_mask], dim=2).flatten(1)

    nothing = torch.zeros(shape, dtype=torch.bool)
    return Corruption(
        ids=with_masks(corruption.ids, torch.full(shape, MASK)),
        selected=with_masks(corruption.selected & kept, nothing),
        real=with_masks(kept, masks),
        origin=with_masks(place, torch.full(shape, -1)),
    )
