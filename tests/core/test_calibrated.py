"""A temperature that suits rows best, and what a dev gradient through it says."""

import pytest
import torch
from torch import Tensor, nn

from aang_core import Batch, TensorTask
from tests.support.diagnosis import Calibrated

ROWS, FEATURES, CLASSES = 60, 5, 3


def task() -> tuple[TensorTask, Tensor]:
    """Labels that a random linear head predicts in part, and the features of their rows."""
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(ROWS, FEATURES, generator=generator)
    head = nn.Linear(FEATURES, CLASSES)
    with torch.no_grad():
        head.weight.copy_(torch.randn(CLASSES, FEATURES, generator=generator))
        head.bias.zero_()
        noise = torch.randn(ROWS, CLASSES, generator=generator)
        labels = (head(features) + 2 * noise).argmax(dim=1)
    loss = nn.CrossEntropyLoss(reduction="none")
    return TensorTask("end", head, {"input": features}, labels, loss), features


def times(head: nn.Module, factor: float) -> nn.Module:
    """A head whose logits are ``factor`` times those of ``head``."""
    other = nn.Linear(FEATURES, CLASSES)
    other.load_state_dict({name: factor * value for name, value in head.state_dict().items()})
    return other


def test_a_head_that_is_ten_times_as_sure_has_ten_times_the_temperature() -> None:
    end, features = task()
    batches = [Batch({}, {"targets": end.targets}, ROWS)]
    fitted = Calibrated.of(end, end.head, [features], batches)
    cooled = Calibrated.of(end, times(end.head, 10), [features], batches)
    assert cooled.temperature == pytest.approx(10 * fitted.temperature, rel=1e-3)
    torch.testing.assert_close(cooled(features), fitted(features), rtol=1e-3, atol=1e-3)


def test_no_other_temperature_has_a_lower_loss() -> None:
    end, features = task()
    half = ROWS // 2
    halves = [Batch({}, {"targets": part}, half) for part in end.targets.split(half)]
    fitted = Calibrated.of(end, end.head, features.split(half), halves)

    @torch.no_grad()
    def loss(temperature: float) -> float:
        head = Calibrated(end.head, 1 / temperature)
        return float(end.losses(head, features, {"targets": end.targets}).mean())

    best = loss(fitted.temperature)
    assert all(loss(fitted.temperature * factor) > best for factor in (0.5, 0.9, 1.1, 2.0))


def test_the_gradient_does_not_ask_for_more_or_less_sureness() -> None:
    """Along features that grow, with which every logit grows, the loss does not change."""
    end, features = task()
    targets = {"targets": end.targets}
    sure = times(end.head, 10)
    calibrated = Calibrated.of(end, sure, [features], [Batch({}, targets, ROWS)])

    def slope(head: nn.Module) -> float:
        grown = torch.ones((), requires_grad=True)
        loss = end.losses(head, features * grown, targets).mean()
        return float(torch.autograd.grad(loss, [grown])[0])

    assert slope(sure) > 1
    assert abs(slope(calibrated)) < 1e-3


def test_a_head_worse_than_chance_becomes_flat_and_not_its_opposite() -> None:
    end, features = task()
    batches = [Batch({}, {"targets": end.targets}, ROWS)]
    flat = Calibrated.of(end, times(end.head, -1), [features], batches)
    assert flat.temperature == pytest.approx(1000.0)
