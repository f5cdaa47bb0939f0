"""What distinguishes the three transforms from each other."""

import math

import torch
from aang_plugin_bert.bert_op import BertOp
from aang_plugin_bert.mask import Mask
from aang_plugin_bert.replace import Replace
from aang_testing import SampleRows, token_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aang_core import Transform, Vocabulary

torch.set_num_threads(1)


def within(count: int, trials: int, probability: float) -> bool:
    """Whether a binomial count is within five standard deviations, two in a million aside."""
    spread = math.sqrt(trials * probability * (1 - probability))
    return abs(count - trials * probability) <= 5 * spread


def many(transform: Transform) -> tuple[SampleRows, Tensor, Tensor]:
    rows = SampleRows.of_lengths([256] * 256, tokens=256, seed=1)
    generator = torch.Generator().manual_seed(2)
    ids, selected, *_ = transform(rows.ids, rows.ordinary, rows.vocabulary, generator)
    return rows, ids, selected


@settings(deadline=None)
@given(rows=token_rows(), seed=st.integers(0, 1000))
def test_mask_masks_exactly_the_selected_tokens(rows: SampleRows, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    ids, selected, *_ = Mask(0.5)(rows.ids, rows.ordinary, rows.vocabulary, generator)
    assert torch.equal(ids == rows.vocabulary.mask_id, selected)
    assert torch.equal(ids[~selected], rows.ids[~selected])


def test_fifteen_percent_of_the_ordinary_tokens_are_selected() -> None:
    for transform in (Mask(), Replace(), BertOp()):
        rows, _, selected = many(transform)
        assert within(int(selected.sum()), int(rows.ordinary.sum()), 0.15)


def test_replace_is_uniform_over_the_ordinary_vocabulary_at_the_selected_tokens_only() -> None:
    rows, ids, selected = many(Replace())
    assert torch.equal(ids[~selected], rows.ids[~selected])
    size = rows.vocabulary.ordinary.numel()
    counts = torch.bincount(ids[selected], minlength=rows.vocabulary.size)
    assert counts[rows.vocabulary.ordinary].sum() == selected.sum()
    for count in counts[rows.vocabulary.ordinary].tolist():
        assert within(count, int(selected.sum()), 1 / size)


def test_replace_draws_what_replaces_a_token_without_regard_to_it() -> None:
    rows, ids, selected = many(Replace())
    kept = int((ids == rows.ids)[selected].sum())
    assert within(kept, int(selected.sum()), 1 / rows.vocabulary.ordinary.numel())


def test_bert_op_masks_80_percent_replaces_10_and_keeps_10() -> None:
    rows, ids, selected = many(BertOp())
    assert torch.equal(ids[~selected], rows.ids[~selected])
    chosen, before = ids[selected], rows.ids[selected]
    trials = len(chosen)
    masked = int((chosen == rows.vocabulary.mask_id).sum())
    kept = int((chosen == before).sum())
    # One replaced token in V' is replaced by itself.
    itself = 0.1 / rows.vocabulary.ordinary.numel()
    assert within(masked, trials, 0.8)
    assert within(kept, trials, 0.1 + itself)
    assert within(trials - masked - kept, trials, 0.1 - itself)


def test_no_special_token_is_ever_drawn() -> None:
    ordinary = torch.tensor([7, 11])
    vocabulary = Vocabulary(size=12, mask_id=3, ordinary=ordinary, decode=list)
    ids = torch.full((4, 64), 7)
    for transform in (Replace(1.0), BertOp(1.0)):
        generator = torch.Generator().manual_seed(0)
        corrupted, *_ = transform(
            ids, torch.ones_like(ids, dtype=torch.bool), vocabulary, generator
        )
        assert set(corrupted.unique().tolist()) <= {3, 7, 11}
