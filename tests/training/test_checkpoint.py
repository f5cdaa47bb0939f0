"""A checkpoint holds all of a training, of whatever modules it is."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from aang_core import DataError, OptimizerSettings, TaskCard, TensorTask, load_plugins
from tests.support.gradients import DevHeadSettings, EngineSettings, find_dev_heads
from tests.support.training import (
    RowBudget,
    RunTasks,
    Schedule,
    StepSettings,
    Trainer,
    TrainingSettings,
    Watching,
    load_checkpoint,
    make_trainer,
    save_checkpoint,
)

ROWS = RowBudget(5, 4, 6)
DRAWN = find_dev_heads("drawn", "adamw", load_plugins().registry)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "factored": {"step": StepSettings(ROWS, weights_every=2)},
    "averaged": {"dev_head": DevHeadSettings(rows=9, average=0.8)},
    "drawn": {
        "dev_head": DevHeadSettings("drawn", 9, plugins=DRAWN),
        "engine": EngineSettings(task_clip=0.5),
    },
    "draws": {"step": StepSettings(ROWS, draws_per_step=2)},
    "momentum": {"optimizer": OptimizerSettings(0.01, 0.01, optimizer="sgd")},
}


def squared(predicted: Tensor, wanted: Tensor) -> Tensor:
    return (predicted.squeeze(1) - wanted).square()


def trainer(
    options: Mapping[str, Any],
    seed: int = 0,
    helpers: str = "abc",
    *,
    frozen: bool = False,
    evaluate: Callable[[], Mapping[str, float]] | None = None,
    observers: tuple[Any, ...] = (),
) -> Trainer:
    """frozen: whether the first layer is not trained."""
    torch.manual_seed(seed)
    inputs = {"input": torch.linspace(-1, 1, 21).unsqueeze(1)}
    body = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 4))
    body[0].requires_grad_(not frozen)

    def task(name: str, slope: float) -> TensorTask:
        targets = slope * inputs["input"].squeeze(1)
        return TensorTask(name, nn.Linear(4, 1), inputs, targets, squared, {"slope": name})

    end, *others = [task(name, i) for i, name in enumerate(("end", *helpers), start=1)]
    cards = [TaskCard(other.name, other.factors) for other in others]
    weighter = load_plugins().registry.weighter("factored").make(TaskCard("end"), cards, n=2)
    defaults: dict[str, Any] = {
        "optimizer": OptimizerSettings(0.01, 0.01),
        "schedule": Schedule(40, 4, 40, "accuracy"),
        "step": StepSettings(ROWS),
        "seed": seed,
    }
    return make_trainer(
        *(body, RunTasks(end, end, others), weighter),
        TrainingSettings(**{**defaults, **options}),
        evaluate=evaluate or (lambda: {"accuracy": -float(body[3].weight.detach().norm())}),
        watching=Watching(observers),
    )


def rounds(trained: Trainer, count: int) -> None:
    for _ in range(count):
        trained.bench.begin_round()
        trained.weighter.round(trained.bench)


def same(one: Any, other: Any) -> bool:
    """Whether two states are alike, bit by bit."""
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    return bool(one == other)


@pytest.mark.parametrize("case", OPTIONS)
def test_training_goes_on_bit_by_bit(tmp_path: Path, case: str) -> None:
    whole = trainer(OPTIONS[case])
    rounds(whole, 5)
    save_checkpoint(tmp_path, whole)
    rounds(whole, 4)
    expected, last = whole.state_dict(), whole.bench.last
    # Another seed, so that whatever is not restored differs.
    again = trainer(OPTIONS[case], seed=9)
    load_checkpoint(tmp_path, again)
    assert again.bench.steps == 5
    rounds(again, 4)
    assert again.bench.last == last
    assert same(expected, again.state_dict())


class At:
    """Saves a checkpoint after some steps."""

    def __init__(self, steps: int, folder: Path) -> None:
        self.steps, self.folder = steps, folder

    def reached(self, trained: Trainer) -> None:
        if trained.bench.steps == self.steps:
            save_checkpoint(self.folder, trained)

    def save(self, trained: Trainer) -> None:
        raise AssertionError("no round fails")


def test_a_whole_training_ends_as_if_it_had_not_been_interrupted(tmp_path: Path) -> None:
    """Between two evaluations: losses since the last one, best state and patience included.

    The best score is that of step 2, and after three evaluations without a better one, in step 8,
    the training ends.
    """
    scores = {0: 0.1, 2: 0.5, 4: 0.3, 6: 0.5, 8: 0.2}
    options = {"schedule": Schedule(40, 2, 3, "accuracy")}

    def made(seed: int) -> tuple[Trainer, list[Mapping[str, float]]]:
        seen: list[Mapping[str, float]] = []

        class Losses:
            def after_round(self, *given: object) -> None:
                """Looks at evaluations alone."""

            def after_evaluation(
                self, step: int, dev: object, best: bool, losses: Mapping[str, float]
            ) -> None:
                seen.append(losses)

        def evaluate() -> Mapping[str, float]:
            return {"accuracy": scores[one.bench.steps]}

        one = trainer(options, seed, evaluate=evaluate, observers=(Losses(),))
        return one, seen

    whole, losses = made(0)
    whole.boundary = At(5, tmp_path)
    assert whole.train().best_step == 2
    assert whole.bench.steps == 8
    again, rest = made(9)
    load_checkpoint(tmp_path, again)
    assert again.bench.steps == 5
    again.train()
    assert rest == losses[3:]
    assert all(rest)
    assert same(whole.state_dict(), again.state_dict())


def test_the_clock_goes_on_from_what_it_was(tmp_path: Path) -> None:
    """What was trained before an interruption counts against the limit."""
    whole = trainer({})
    whole.clock.seconds = 50.0
    save_checkpoint(tmp_path, whole)
    again = trainer({})
    again.clock.limit = 50.0
    load_checkpoint(tmp_path, again)
    again.train()
    assert again.clock.seconds >= 50.0
    assert again.bench.steps == 0


def test_another_format_is_refused_in_one_line(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, trainer({}))
    rest = tmp_path / "state.json"
    state = json.loads(rest.read_text(encoding="utf-8"))
    del state["format"]
    rest.write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(DataError, match="another version of AANG saved this checkpoint") as error:
        load_checkpoint(tmp_path, trainer({}))
    assert "\n" not in str(error.value)


def test_another_set_of_tasks_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, trainer({}))
    with pytest.raises(DataError, match=r"belongs to another model or space; they differ in '[cd]"):
        load_checkpoint(tmp_path, trainer({}, helpers="abd"))


def test_what_is_not_trained_is_not_saved(tmp_path: Path) -> None:
    """The digest tells whether it is still the same; the best state has none of it, either."""
    whole = trainer({}, frozen=True)
    whole.train()
    save_checkpoint(tmp_path, whole)
    saved = load_file(tmp_path / "state.safetensors")
    assert "module|body|3.weight" in saved
    assert "progress|best_state|body.3.weight" in saved
    assert not [name for name in saved if name.endswith(("body|0.weight", "body.0.weight"))]
    again = trainer({}, frozen=True)
    load_checkpoint(tmp_path, again)
    assert same(whole.state_dict(), again.state_dict())
    with pytest.raises(
        DataError, match=r"the frozen weights of the encoder have changed since .* restore that"
    ):
        load_checkpoint(tmp_path, trainer({}, seed=9, frozen=True))
