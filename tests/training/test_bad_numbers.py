"""NaN or infinite losses and gradients: reported by task and step, and not learned from."""

import itertools
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from aang_core import FitResult, OptimizerSettings, TaskCard, TensorTask, fit, load_plugins
from tests.support.gradients import FIRST, EngineSettings
from tests.support.plugins import NumericalError
from tests.support.training import (
    RowBudget,
    RunTasks,
    Schedule,
    StepSettings,
    TrainingBench,
    TrainingSettings,
    make_trainer,
)

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


def infinite() -> TensorTask:
    """A task with a finite loss and an infinite gradient."""
    ill = task("ill", loss=rooted)
    with torch.no_grad():
        for parameter in ill.head.parameters():
            parameter.zero_()
    ill.targets.zero_()
    return ill


@pytest.mark.parametrize("gradients", ["stream", "packed"])
@pytest.mark.parametrize("weighter", ["static", "factored"])
def test_a_gradient_is_told_where_the_loss_is_finite(weighter: str, gradients: str) -> None:
    """Where nothing is measured, only that of all tasks together is known."""
    ill = infinite()
    with pytest.raises(NumericalError, match=r"step 1: the gradient of .*ill.* is not finite"):
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
    with pytest.raises(NumericalError, match="10th step"):
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


class Normed(nn.Module):
    """A layer whose output is normalised over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, input: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.layer(input))
        return normed


@pytest.mark.parametrize("weighter", ["static", "pcgrad"])
@pytest.mark.parametrize("gradient", [False, True], ids=["loss", "gradient"])
def test_a_skipped_step_changes_no_buffer(weighter: str, gradient: bool) -> None:
    """Running statistics would stay NaN for ever."""
    ill = infinite() if gradient else task("ill")
    if not gradient:
        ill.inputs["input"].fill_(math.nan)
    torch.manual_seed(0)
    body = Normed()
    before = {name: buffer.clone() for name, buffer in body.named_buffers()}
    with pytest.raises(NumericalError, match="10th step in a row"):
        fit(
            *(body, task("end"), [ill]),
            dev=task("end"),
            evaluate=lambda: {"accuracy": 0.5},
            weighter=weighter,
            steps=50,
            on_nan="skip",
        )
    for name, buffer in body.named_buffers():
        assert torch.equal(buffer, before[name]), name


def test_a_bad_draw_undoes_the_good_ones_of_its_step() -> None:
    """Of the two draws of each step, the second is NaN."""
    end, calls = task("end"), itertools.count(1)

    def loss(predicted: Tensor, wanted: Tensor) -> Tensor:
        factor = math.nan if next(calls) % 2 == 0 else 1.0
        return factor * (predicted.squeeze(1) - wanted).square()

    end = TensorTask("end", end.head, end.inputs, end.targets, loss)
    body = Normed()
    with pytest.raises(NumericalError, match="10th step in a row"):
        fit(
            *(body, end, []),
            dev=task("end"),
            evaluate=lambda: {"accuracy": 0.5},
            weighter="single-task",
            **{"steps": 50, "draws_per_step": 2, "on_nan": "skip"},
        )
    assert int(body.norm.num_batches_tracked) == 0


def test_an_attempt_that_overflows_changes_no_buffer() -> None:
    """A step in half precision that is repeated passes each batch once through the statistics."""
    batches = []
    for scale in (1.0, 2.0**40):
        body = Normed()
        bench, in_half = half_precision_round(task("good"), scale=scale, body=body)
        assert (len(in_half) > 2) == (scale > 1)
        assert bench.numbers.skipped == 0
        batches.append(int(body.norm.num_batches_tracked))
    assert batches == [2, 2]


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


def half_precision_round(
    helper: TensorTask,
    weighter: str = "static",
    scale: float = FIRST,
    body: nn.Module | None = None,
) -> tuple[TrainingBench, list[bool]]:
    """One round in fp16 that skips bad steps.

    Args:
        helper: the task beside the end task.
        weighter: name of the weighter.
        scale: the loss scale before the round.
        body: the module that both tasks share; by default, a linear layer.

    Returns:
        The bench, and for each pass through the body whether it was in fp16.
    """
    in_half: list[bool] = []

    def before(_: nn.Module, __: Any, inputs: dict[str, Tensor]) -> None:
        in_half.append(torch.is_autocast_enabled("cpu"))

    torch.manual_seed(0)
    body, end = body or nn.Linear(1, 4), task("end")
    body.register_forward_pre_hook(before, with_kwargs=True)
    primitive = load_plugins().registry.weighter(weighter)
    trainer = make_trainer(
        body,
        RunTasks(end, end, [helper]),
        primitive.make(TaskCard("end"), [TaskCard(helper.name)]),
        TrainingSettings(
            optimizer=OptimizerSettings(lr=1e-3, head_lr=1e-3),
            schedule=Schedule(1, 1, 1, "accuracy"),
            step=StepSettings(RowBudget(BATCH, BATCH, BATCH), on_nan="skip"),
            seed=0,
            engine=EngineSettings(precision="fp16"),
        ),
        evaluate=lambda: {"accuracy": 0.5},
    )
    state = trainer.bench.state_dict()
    trainer.bench.load_state_dict({**state, "scale": {"value": scale, "good": 7}})
    trainer.weighter.round(trainer.bench)
    return trainer.bench, in_half


@pytest.mark.parametrize("weighter", ["static", "pcgrad"])
def test_a_bad_loss_leaves_the_loss_scale_as_it_was(
    weighter: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is bad at every scale, so the step is not repeated."""
    bench, in_half = half_precision_round(task("ill", math.nan, ROWS), weighter)
    assert "step 1 is left out: the loss of ill is nan" in caplog.text
    assert in_half == [True, True]
    assert bench.state_dict()["scale"] == {"value": FIRST, "good": 7}


@pytest.mark.parametrize("weighter", ["static", "pcgrad"])
def test_a_gradient_that_no_scale_makes_finite_leaves_it_too(
    weighter: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The step is repeated down to a scale of one."""
    bench, in_half = half_precision_round(infinite(), weighter)
    assert "step 1 is left out: the gradient of ill" in caplog.text
    assert in_half == [True, True] * 17
    assert bench.state_dict()["scale"] == {"value": FIRST, "good": 7}


@pytest.mark.parametrize("weighter", ["static", "pcgrad"])
def test_an_overflow_is_no_problem(weighter: str) -> None:
    """A smaller scale makes the step finite, so there is nothing to say."""
    bench, in_half = half_precision_round(task("good"), weighter, scale=2.0**30)
    assert bench.numbers.skipped == 0
    assert len(in_half) > 2
    assert all(in_half)
    assert bench.state_dict()["scale"]["value"] == 2.0**30 / 2 ** (len(in_half) // 2 - 1)
