"""The contract of every transform, what else aang check-plugin looks at, and what is its own."""

import pytest
import torch
from aang_plugin_span_mask import SpanMask
from aang_testing import VOCABULARY
from aang_testing.conformance import Check, checks_of

from aang_core import ConfigError


@pytest.mark.parametrize("check", checks_of("aang-plugin-span-mask"), ids=lambda check: check.name)
def test_it_keeps_its_contracts(check: Check) -> None:
    check.run()


def test_spans_are_whole_words_within_the_budget() -> None:
    """Words of two tokens; 15% of 400 are 60, in spans of 3.8 words where none overlap or meet."""
    ids = torch.tensor([[1, *([4, 7] * 200), 2]] * 32)
    ordinary = (ids != 1) & (ids != 2)
    generator = torch.Generator().manual_seed(0)
    corrupted, selected, *_ = SpanMask()(ids, ordinary, VOCABULARY, generator)
    assert selected.sum(dim=1).tolist() == [60] * 32
    assert torch.equal(corrupted, ids.masked_fill(selected, VOCABULARY.mask_id))
    assert torch.equal(selected[:, 1:-1:2] & selected[:, 2::2], selected[:, 1:-1:2])
    spans = (selected[:, 1:] & ~selected[:, :-1]).sum().item()
    assert 3.0 < 32 * 30 / spans < 5.0


def test_no_span_reaches_into_the_other_text() -> None:
    """All of the first text is masked or none of it: it is one word, and so is the second."""
    ids = torch.tensor([[1, 4, 7, 7, 2, 7, 7, 7, 2]])
    ordinary = (ids != 1) & (ids != 2)
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        selected = SpanMask(0.5)(ids, ordinary, VOCABULARY, generator).selected[0]
        assert selected.tolist()[1:4] == [bool(selected[1])] * 3
        assert selected.tolist()[5:8] == [not selected[1]] * 3


@pytest.mark.parametrize("rate", [0, 1.5, "all"])
def test_a_rate_that_is_none(rate: float) -> None:
    with pytest.raises(ConfigError, match=r"span-mask\.rate is .*; give the share"):
        SpanMask(rate)
