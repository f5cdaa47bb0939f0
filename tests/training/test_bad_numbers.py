"""NaN or infinite losses and gradients: reported by task and step, and not learned from."""

import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from aang_core import FitResult, TensorTask, fit
from aang_core.errors import NumericalError

ROWS = 32
BATCH = 8


def squared(predicted: Tensor, wanted: Tensor) -> Tensor:
    return (predicted.squeeze(1) - wanted).square()


def rooted(predicted: Tensor, wanted: Tensor) -> Tensor:
    """A finite loss whose derivative is infinite where the prediction is what is wanted."""
    return squared(predicted, wanted).sqrt()


def task(name: str, bad: float | None = None, bad_rows: int = 1, **more: Any) -> TensorTask:
    """Rows of a line; ``bad`` is what is wanted of the first of them."""
    x = torch.linspace(-1, 1, ROWS).unsqueeze(1)
    wanted = 2.0 * x.squeeze(1)
    if bad is not None:
        wanted[:bad_rows] = bad
    return TensorTask(name, nn.Linear(4, 1), {"input": x}, wanted, more.get("loss", squared))


def train(
    end: TensorTask, helpers: list[TensorTask], weighter: str = "static", **options: Any
) -> tuple[FitResult, nn.Module]:
    torch.manual_seed(0)
    body = nn.Linear(1, 4)
    result = fit(
        body,
        end,
        helpers,
        **{"dev": task("end"), **options},
        evaluate=lambda: {"accuracy": 0.5},
        weighter=weighter,
        steps=12,
        eval_every=6,
        batch_size=BATCH,
        dev_batch_size=BATCH,
        aux_batch_size=BATCH,
    )
    return result, body


CASES: dict[str, tuple[Callable[[], tuple[TensorTask, list[TensorTask]]], str]] = {
    "a loss": (
        lambda: (task("end"), [task("good"), task("ill", math.nan, 8)]),
        r"step \d+: the loss of ill is nan",
    ),
    "an infinite loss": (
        lambda: (task("end"), [task("ill", math.inf, 8), task("good")]),
        r"step \d+: the loss of ill is inf",
    ),
    "the loss of the end task": (
        lambda: (task("end", math.nan, 8), [task("good")]),
        r"step \d+: the loss of end is nan",
    ),
}


@pytest.mark.parametrize("weighter", ["single-task", "static", "factored", "alpha-vil", "diw"])
@pytest.mark.parametrize("case", CASES)
def test_the_task_and_the_step_are_named(case: str, weighter: str) -> None:
    """For every kind of weighter, whether it measures gradients or not."""
    make, message = CASES[case]
    end, helpers = make()
    if weighter == "single-task" and end.targets.isfinite().all():
        helpers, message = [], "loss of end"
        end = task("end", math.nan, 8)
    with pytest.raises(NumericalError, match=message):
        train(end, helpers, weighter)


@pytest.mark.parametrize("gradients", ["stream", "packed"])
@pytest.mark.parametrize("weighter", ["static", "factored"])
def test_a_gradient_is_named_where_the_loss_is_finite(weighter: str, gradients: str) -> None:
    ill = task("ill", loss=rooted)
    with torch.no_grad():
        for parameter in ill.head.parameters():
            parameter.zero_()
    ill.targets.zero_()
    with pytest.raises(NumericalError, match="step 1: the gradient of ill is not finite"):
        train(task("end"), [task("good"), ill], weighter, gradients=gradients)


def test_the_dev_gradient_is_named() -> None:
    """It decides the weights, so what is wrong with it would be wrong with them."""
    with pytest.raises(NumericalError, match="gradient of end on dev rows is not finite"):
        train(task("end"), [task("good")], "factored", dev=task("end", math.nan, ROWS))


def test_a_gradient_too_large_for_its_norm() -> None:
    huge = task("huge")
    huge.targets.mul_(1e30)
    with pytest.raises(NumericalError, match="huge"):
        train(task("end"), [huge])


@pytest.mark.parametrize("weighter", ["static", "factored", "alpha-vil"])
def test_skipping_leaves_the_step_out(weighter: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing becomes NaN; the step is reported, counted and recorded."""
    with caplog.at_level(logging.WARNING):
        result, body = train(
            task("end"), [task("good"), task("ill", math.nan, 8)], weighter, on_nan="skip"
        )
    assert all(p.isfinite().all() for p in body.parameters())
    assert all(map(math.isfinite, result.weights.values()))
    told = [m for m in caplog.messages if "is left out: the loss of ill is nan" in m]
    assert 1 <= len(told) == result.history[-1]["skipped"]


def test_a_skipped_step_changes_no_parameter() -> None:
    """With one bad step in two, the model is what the good one made of it."""
    ill = task("ill", math.nan, ROWS)
    torch.manual_seed(0)
    body = nn.Linear(1, 4)
    before = body.weight.detach().clone()
    with pytest.raises(NumericalError, match="10th step in a row"):
        fit(
            body,
            task("end"),
            [ill],
            dev=task("end"),
            evaluate=lambda: {"accuracy": 0.5},
            weighter="static",
            steps=50,
            on_nan="skip",
        )
    assert torch.equal(body.weight, before)


def test_a_score_that_is_nan_stops_training() -> None:
    with pytest.raises(NumericalError, match="step 0: the accuracy of the model is nan"):
        fit(
            nn.Linear(1, 4),
            task("end"),
            [],
            dev=task("end"),
            evaluate=lambda: {"accuracy": math.nan},
            weighter="single-task",
        )
