"""The contract of every output, what else aang check-plugin looks at, and what is its own."""

import math

import pytest
import torch
from aang_plugin_r_drop import RDrop
from aang_testing import SmallHeads
from aang_testing.conformance import Check, checks_of
from torch import nn


@pytest.mark.parametrize("check", checks_of("aang-plugin-r-drop"), ids=lambda check: check.name)
def test_it_keeps_its_contracts(check: Check) -> None:
    check.run()


def test_the_loss_is_the_mean_of_both_divergences() -> None:
    """Of two texts the first is predicted alike twice, the second with odds 1:1 and 3:1."""
    logits = torch.tensor([[0.3, 0.1], [0.0, 0.0], [0.3, 0.1], [math.log(3), 0.0]])
    hidden = logits.unsqueeze(1)
    losses = RDrop().losses(nn.Flatten(), hidden, {})
    there = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    back = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert losses.sums.tolist() == pytest.approx([0, (there + back) / 2, 0, 0], abs=1e-6)
    assert losses.counts.tolist() == [1, 1, 0, 0]


def test_it_trains_the_head_of_the_end_task() -> None:
    heads = SmallHeads()
    own = {id(parameter) for parameter in heads.end_task().parameters()}
    assert {id(parameter) for parameter in RDrop().head(heads).parameters()} == own
