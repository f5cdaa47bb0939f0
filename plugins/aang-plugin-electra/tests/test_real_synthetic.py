"""Which tokens are asked about, and what the loss is."""

import math

import torch
from aang_plugin_electra.real_synthetic import RealSynthetic
from aang_testing import VOCABULARY, check_output
from torch import Tensor, nn

from aang_core import CorruptedRows, DocumentStatistics

torch.set_num_threads(1)


def rows() -> CorruptedRows:
    """Token 2 replaced, token 3 masked (id 3), token 4 replaced by itself; specials at the ends."""
    original = torch.tensor([[1, 10, 11, 12, 13, 2]])
    corrupted = torch.tensor([[1, 10, 30, 3, 13, 2]])
    ordinary = torch.tensor([[0, 1, 1, 1, 1, 0]], dtype=torch.bool)
    return CorruptedRows(
        original=original,
        corrupted=corrupted,
        selected=torch.tensor([[0, 0, 1, 1, 1, 0]], dtype=torch.bool),
        ordinary=ordinary,
        real=torch.ones_like(ordinary),
        labels=None,
        statistics=DocumentStatistics(1, torch.ones(40, dtype=torch.int64)),
        sees=torch.ones(1, 6, 6, dtype=torch.bool),
        vocabulary=VOCABULARY,
    )


class Certain(nn.Module):
    """Says of every token that it was replaced, with logit 2."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden.sum(dim=-1) * 0 + 2.0


def test_it_keeps_the_contract() -> None:
    check_output(RealSynthetic())


def test_replaced_tokens_are_synthetic_masks_are_not_asked_about() -> None:
    """A token replaced by itself is real."""
    targets = RealSynthetic().targets(rows())
    assert targets["asked"].tolist() == [[False, True, True, False, True, False]]
    assert targets["replaced"].tolist() == [[0, 0, 1, 0, 0, 0]]


def test_the_loss_is_binary_cross_entropy() -> None:
    """One replaced token and two real ones, at logit 2."""
    output = RealSynthetic()
    losses = output.losses(Certain(), torch.zeros(1, 6, 8), output.targets(rows()))
    right, wrong = math.log1p(math.exp(-2)), math.log1p(math.exp(2))
    assert losses.counts.tolist() == [3]
    assert losses.sums.item() == torch.tensor(right + 2 * wrong).item()
