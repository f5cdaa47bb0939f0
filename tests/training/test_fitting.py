"""Training of a user's own modules."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from aang_plugin_tartan.static import Static
from torch import Tensor, nn

from aang_core import (
    AangError,
    ConfigError,
    DataError,
    OptimizerSettings,
    TaskCard,
    TensorTask,
    UnknownNameError,
    fit,
)


def squared(predicted: Tensor, wanted: Tensor) -> Tensor:
    return (predicted.squeeze(1) - wanted).square()


def line(name: str, head: nn.Module, slope: float, rows: int = 64) -> TensorTask:
    x = torch.linspace(-1, 1, rows).unsqueeze(1)
    return TensorTask(name, head, {"input": x}, slope * x.squeeze(1), squared)


def trained(weighter: str, *, seed: int = 0, gradients: str = "stream") -> dict[str, float]:
    torch.manual_seed(0)
    body, head = nn.Linear(1, 4), nn.Linear(4, 1)
    end = line("end", head, 1.0)

    def evaluate() -> Mapping[str, float]:
        with torch.no_grad():
            error = squared(head(body(end.inputs["input"])), end.targets).mean().item()
        return {"accuracy": -error}

    helpers = [line("same", nn.Linear(4, 1), 2.0), line("other", nn.Linear(4, 1), -1.0)]
    result = fit(
        body,
        end,
        helpers,
        dev=end,
        evaluate=evaluate,
        weighter=weighter,
        steps=60,
        eval_every=20,
        seed=seed,
        gradients=gradients,
    )
    assert result.best_score == pytest.approx(evaluate()["accuracy"]), "the best state is kept"
    return {**result.weights, "score": result.best_score, "rounds": len(result.history)}


@pytest.mark.parametrize(
    "weighter",
    [
        *("single-task", "factored", "meta-tartan", "alpha-vil", "diw"),
        *("autosem", "factored-bandit"),
    ],
)
def test_every_weighter_trains_plain_modules(weighter: str) -> None:
    """The same seed gives the same weights and score."""
    assert trained(weighter) == trained(weighter)


@pytest.mark.parametrize("weighter", ["alpha-vil", "diw", "forkmerge", "tapweight"])
@pytest.mark.parametrize("steps", [1, 2, 7, 30])
def test_no_round_is_longer_than_the_run(weighter: str, steps: int) -> None:
    """Of 64 rows, four a step, a trial takes 16; diw needs two steps."""
    end = line("end", nn.Linear(4, 1), 1.0)
    result = fit(
        nn.Linear(1, 4),
        end,
        [line("same", nn.Linear(4, 1), 2.0), line("other", nn.Linear(4, 1), -1.0)],
        dev=end,
        evaluate=lambda: {"accuracy": 0.5},
        weighter=weighter,
        steps=steps,
        batch_size=4,
    )
    assert result.steps == max(steps, 2 if weighter == "diw" else 1)


def test_engines_agree_on_plain_modules() -> None:
    """Weights learned through either engine are the same to rounding."""
    stream, packed = (trained("factored", gradients=g) for g in ("stream", "packed"))
    assert packed == pytest.approx(stream, abs=1e-3)


def test_rows_must_match() -> None:
    """Inputs and targets of different numbers of rows are refused with both numbers."""
    with pytest.raises(DataError, match=r"'x': 3.*4"):
        TensorTask("a", nn.Linear(1, 1), {"x": torch.zeros(3, 1)}, torch.zeros(4), squared)


def test_a_loss_has_one_number_per_row() -> None:
    """Predictions ``[B, 1]`` less targets ``[B]`` are ``[B, B]``, and would train to something."""
    end = line("end", nn.Linear(4, 1), 1.0)
    for loss in (lambda p, t: (p - t).square(), lambda p, t: squared(p, t).mean()):
        wrong = TensorTask("end", end.head, end.inputs, end.targets, loss)
        with pytest.raises(DataError, match=r"'end': its loss has the shape .* for .* rows"):
            fit(nn.Linear(1, 4), wrong, [], dev=wrong, evaluate=lambda: {"accuracy": 0.5}, steps=1)


def test_scores_are_those_of_evaluation_mode() -> None:
    """At every evaluation, and afterwards: dropout and batch statistics would change them."""
    body = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4))
    end = line("end", nn.Sequential(nn.Dropout(), nn.Linear(4, 1)), 1.0)
    modes = []

    def evaluate() -> Mapping[str, float]:
        modes.append((body.training, end.head.training))
        return {"accuracy": 0.5}

    fit(body, end, [], dev=end, evaluate=evaluate, weighter="single-task", steps=4, eval_every=2)
    assert modes == [(False, False)] * 3
    assert not body.training


def test_a_frozen_batch_normalisation_keeps_its_statistics() -> None:
    """Others follow the batches."""
    body = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.BatchNorm1d(4))
    body[1].requires_grad_(False).eval()
    end = line("end", nn.Linear(4, 1), 1.0)
    scores = itertools.count()
    fit(
        *(body, end, []),
        dev=end,
        evaluate=lambda: {"accuracy": float(next(scores))},  # so that the last state is kept
        weighter="single-task",
        steps=2,
    )
    assert [int(body[i].num_batches_tracked) for i in (1, 2)] == [0, 2]


def test_a_body_of_several_outputs_has_no_signals() -> None:
    class Two(nn.Linear):
        def forward(self, input: Tensor) -> Any:
            return (super().forward(input),)

    class First(nn.Linear):
        def forward(self, input: Any) -> Tensor:
            return super().forward(input[0])

    end, other = (line(name, First(4, 1), 1.0) for name in ("end", "other"))
    run = {"dev": end, "evaluate": lambda: {"accuracy": 0.5}, "steps": 4}
    fit(Two(1, 4), end, [other], weighter="static", **run)
    with pytest.raises(AangError, match="the body returned a tuple, and signals against the dev"):
        fit(Two(1, 4), end, [other], weighter="factored", **run)


def test_a_body_that_nothing_can_train_is_refused() -> None:
    for body in (nn.Identity(), nn.Linear(1, 4).requires_grad_(False)):
        end = line("end", nn.Linear(4, 1), 1.0)
        with pytest.raises(ConfigError, match="no parameter of the body requires a gradient"):
            fit(body, end, [], dev=end, evaluate=lambda: {"accuracy": 0.5})


@pytest.mark.parametrize(
    ("name", "value"),
    [("lr", -1.0), ("lr", float("nan")), ("warmup", -3), ("weight_decay", -1), ("momentum", 1)],
)
def test_the_numbers_of_the_optimiser_are_checked(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        OptimizerSettings(**{"lr": 0.1, "head_lr": 0.1, name: value})  # type: ignore[arg-type]


def test_an_unknown_weighter_is_told() -> None:
    """With what is meant instead."""
    with pytest.raises(UnknownNameError, match="factored"):
        trained("factord")


def test_options_beside_a_weighter_of_ones_own_are_refused() -> None:
    end = line("end", nn.Linear(4, 1), 1.0)
    more: dict[str, Any] = {"dev": end, "evaluate": lambda: {"accuracy": 0.5}, "options": {"n": 6}}
    with pytest.raises(ConfigError, match="options n: are of a weighter given by name"):
        fit(nn.Linear(1, 4), end, [], weighter=Static(TaskCard("end"), []), **more)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "2 tasks are named 'a'"),
        (["a", "end"], "2 tasks are named 'end'"),
        (["body"], "a task is named 'body'"),
    ],
)
def test_every_task_needs_a_name_of_its_own(names: list[str], message: str) -> None:
    """Otherwise one task would take the place of another, or of the body."""
    end = line("end", nn.Linear(4, 1), 1.0)
    helpers = [line(name, nn.Linear(4, 1), 1.0) for name in names]
    with pytest.raises(ConfigError, match=message):
        fit(nn.Linear(1, 4), end, helpers, dev=end, evaluate=lambda: {"accuracy": 0.5}, steps=2)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("rmse", r"metric='rmse'.*choose r2"),
        ("loss", r"metric='loss'.*lower"),
        ("f1", r"metric='f1': evaluate returns rmse, loss; name one of them"),
    ],
)
def test_a_metric_that_cannot_choose_the_model_is_refused(metric: str, said: str) -> None:
    """The model with the highest score is kept, which would be the worst, or there is no score."""
    end = line("end", nn.Linear(4, 1), 1.0)
    with pytest.raises(ConfigError, match=said):
        fit(
            *(nn.Linear(1, 4), end, []),
            dev=end,
            evaluate=lambda: {"rmse": 0.5, "loss": 0.5},
            weighter="single-task",
            metric=metric,
            steps=2,
        )


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"draws_per_step": 0}, r"^draws_per_step=0: input should be greater than 0$"),
        ({"eval_every": 0}, r"^eval_every=0: input should be greater than 0$"),
        ({"meta_every": -1}, r"^meta_every=-1: "),
        ({"task_clip": 0.0}, r"^task_clip=0\.0: "),
        ({"on_nan": "ignore"}, r"^on_nan='ignore': input should be 'stop' or 'skip'$"),
        ({"batch_size": 2, "draws_per_step": 3}, r"^batch_size=2 is less than one row for each"),
        ({"step": 3}, r"^fit has no option step; it has options, steps, eval_every, "),
    ],
)
def test_what_no_training_can_have_is_refused(argument: dict[str, Any], message: str) -> None:
    end = line("end", nn.Linear(4, 1), 1.0)
    given = {"dev": end, "evaluate": lambda: {"accuracy": 0.5}, "weighter": "single-task"}
    with pytest.raises(ConfigError, match=message):
        fit(nn.Linear(1, 4), end, [], **given, **argument)


def test_a_task_derives_from_task() -> None:
    """It would lack what tasks need not define."""
    end = line("end", nn.Linear(4, 1), 1.0)

    class Alike:
        name, head, batch, losses = "alike", end.head, end.batch, end.losses

    with pytest.raises(ConfigError, match=r"Alike is no subclass of aang_core\.Task"):
        fit(
            *(nn.Linear(1, 4), end, [Alike()]),  # type: ignore[list-item]
            dev=end,
            evaluate=lambda: {"accuracy": 0.5},
            weighter="static",
        )


def test_the_end_tasks_head_keeps_its_best_state_and_the_others_their_last() -> None:
    torch.manual_seed(0)
    body, scores = nn.Linear(1, 4), iter([0.1, 0.9, 0.1, 0.1])
    end, helper = (line(name, nn.Linear(4, 1), 1.0) for name in ("end", "helper"))
    seen: list[list[Tensor]] = []

    class Watches:
        def after_round(self, step: int, record: Mapping[str, object]) -> None:
            seen.append([task.head.weight.detach().clone() for task in (end, helper)])

        def after_evaluation(self, *given: object) -> None:
            """Nothing changes."""

    result = fit(
        *(body, end, [helper]),
        dev=end,
        evaluate=lambda: {"accuracy": next(scores)},
        weighter="static",
        steps=6,
        eval_every=2,
        observers=[Watches()],
    )
    assert result.best_step == 2
    assert torch.equal(end.head.weight, seen[1][0])
    assert torch.equal(helper.head.weight, seen[-1][1])
