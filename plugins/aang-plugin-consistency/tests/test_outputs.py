"""Both outputs on examples worked out by hand, and what every output keeps to."""

import math

import pytest
import torch
from aang_plugin_consistency.both_views import balanced
from aang_plugin_consistency.consistency import Consistency
from aang_plugin_consistency.pseudo_label import PseudoLabel
from aang_testing import SmallHeads, check_output
from torch import Tensor, nn

from aang_core import ConfigError, RowLosses


class FirstTokenLogits(nn.Module):
    """Takes the first token's hidden state as the logits."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden[:, 0]


def rows(*odds: tuple[float, ...]) -> Tensor:
    """Hidden states ``[2N, 1, C]`` whose softmax has these odds; all clean rows come first."""
    return torch.tensor(odds, dtype=torch.float64).log().unsqueeze(1).requires_grad_()


def losses_of(output: Consistency | PseudoLabel, hidden: Tensor) -> RowLosses:
    return output.losses(FirstTokenLogits(), hidden, {})


@pytest.mark.parametrize(
    "output", [Consistency(), Consistency(balance=0.5), PseudoLabel(), PseudoLabel(threshold=0)]
)
def test_the_contract(output: Consistency | PseudoLabel) -> None:
    check_output(output)
    check_output(output, labelled=False)


def test_consistency_by_hand() -> None:
    """Clean 9:1, corrupted 1:1. With τ = 1/2 the target is 81:1.

    KL = 81/82 · ln(2 · 81/82) + 1/82 · ln(2/82).
    """
    hidden = rows((9, 1), (1, 1))
    losses = losses_of(Consistency(temperature=0.5, threshold=0.89), hidden)
    expected = 81 / 82 * math.log(2 * 81 / 82) + 1 / 82 * math.log(2 / 82)
    assert losses.sums.tolist() == pytest.approx([0, expected], abs=1e-12)
    assert losses.counts.tolist() == [0, 1]


def test_its_gradient_is_that_of_the_cross_entropy_of_the_corrupted_view() -> None:
    """q − p for the corrupted text's logits, (1/2, 1/2) − (3/4, 1/4), and none for the clean's."""
    hidden = rows((3, 1), (1, 1))
    losses_of(Consistency(temperature=1, threshold=0), hidden).mean().backward()
    assert hidden.grad is not None
    assert hidden.grad[1, 0].tolist() == pytest.approx([-0.25, 0.25])
    assert hidden.grad[0].tolist() == [[0, 0]]


def test_pseudo_label_by_hand() -> None:
    """The first text is of class 0 with 19/20, the second is not sure, and both are counted."""
    hidden = rows((19, 1), (3, 1), (1, 3), (1, 3))
    losses = losses_of(PseudoLabel(threshold=0.94), hidden)
    assert losses.sums.tolist() == pytest.approx([0, 0, math.log(4), 0])
    assert losses.counts.tolist() == [0, 0, 1, 1]
    assert losses.mean().item() == pytest.approx(math.log(4) / 2)


def test_pseudo_label_has_no_gradient_at_the_clean_view_and_where_it_is_not_sure() -> None:
    hidden = rows((19, 1), (3, 1), (1, 3), (1, 3))
    losses_of(PseudoLabel(threshold=0.94), hidden).sums.sum().backward()
    assert hidden.grad is not None
    assert hidden.grad[:2].eq(0).all()
    assert hidden.grad[2, 0].tolist() == pytest.approx([-0.75, 0.75])
    assert hidden.grad[3].eq(0).all()


def test_the_clean_view_gives_the_head_no_gradient() -> None:
    """With a corrupted text of which nothing is left, only the bias learns."""
    torch.manual_seed(0)
    head = SmallHeads().end_task()
    hidden = torch.cat([torch.randn(2, 3, 8), torch.zeros(2, 3, 8)])
    Consistency(temperature=1, threshold=0).losses(head, hidden, {}).mean().backward()
    gradients = {name: p.grad for name, p in head.named_parameters()}
    weight, bias = (next(g for n, g in gradients.items() if k in n) for k in ("weight", "bias"))
    assert weight is not None
    assert bias is not None
    assert weight.eq(0).all()
    assert bias.ne(0).any()


def test_balancing_makes_rare_classes_likelier() -> None:
    """Means over both texts: (3/4, 1/4). The first text's 1 : 0 stays, the second's 1/2 : 1/2
    becomes 2/3 : 2 or 1 : 3, and at half strength 1 : √3."""
    predicted = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
    assert balanced(predicted, 0) is predicted
    assert balanced(predicted, 1).flatten().tolist() == pytest.approx([1, 0, 0.25, 0.75])
    half = balanced(predicted, 0.5)
    assert (half[1, 1] / half[1, 0]).item() == pytest.approx(math.sqrt(3))


def test_balancing_decides_which_class_and_how_sure() -> None:
    """As above: balanced, the second text is of class 1 with 3/4 instead of of neither."""
    hidden = rows((1, 1e-12), (1, 1), (1, 1), (1, 3))
    losses = losses_of(PseudoLabel(threshold=0.75 - 1e-9, balance=1), hidden)
    assert losses.sums[2:].tolist() == pytest.approx([math.log(2), math.log(4 / 3)])


def test_a_prediction_of_exactly_zero_is_no_nan() -> None:
    logits = torch.tensor([[[2000.0, 0.0]], [[0.0, 2000.0]]], requires_grad=True)
    for output in (Consistency(), Consistency(balance=1), PseudoLabel()):
        losses = losses_of(output, logits)
        (gradient,) = torch.autograd.grad(losses.mean(), logits)
        assert bool(losses.sums.isfinite().all())
        assert bool(gradient.isfinite().all())


def test_half_precision_does_not_round_the_probabilities() -> None:
    hidden = rows((19, 1), (1, 3)).detach().to(torch.bfloat16).requires_grad_()
    losses = losses_of(PseudoLabel(threshold=0), hidden)
    assert losses.sums.dtype == torch.float32


@pytest.mark.parametrize("output", [Consistency, PseudoLabel])
def test_they_predict_through_the_end_task_s_head(
    output: type[Consistency] | type[PseudoLabel],
) -> None:
    heads = SmallHeads()
    (own,) = {id(p) for p in heads.end_task().parameters() if p.dim() > 1}
    assert own in {id(p) for p in output().head(heads).parameters()}


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        (Consistency, {"temperature": 0}, "temperature is 0; give a number above 0"),
        (
            Consistency,
            {"threshold": 1.5},
            "threshold is 1.5; give a number of at least 0 and at most 1",
        ),
        (Consistency, {"balance": -1}, "balance is -1; give a number of at least 0"),
        (PseudoLabel, {"threshold": "high"}, "threshold is 'high'"),
        (PseudoLabel, {"balance": True}, "balance is True"),
    ],
)
def test_options_without_a_meaning(
    output: type[Consistency] | type[PseudoLabel], options: dict[str, float], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        output(**options)
