"""All trainings are put together by one set of rules."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from aang_core import (
    ConfigError,
    OptimizerSettings,
    PluginError,
    StepwiseWeighter,
    TaskCard,
    TensorTask,
    fit,
    fitting,
    load_plugins,
)
from tests.support.gradients import (
    DevHeadSettings,
    DistributedEngine,
    EngineSettings,
    PackedEngine,
    Passes,
    Several,
    StreamEngine,
    as_argument,
    as_option,
    check_engine,
    choose_dev_head,
    choose_engine,
    find_engine,
)
from tests.support.training import (
    ALONE,
    OTHER_DROPOUT,
    Processes,
    RowBudget,
    RunTasks,
    Schedule,
    StepSettings,
    Trainer,
    TrainingSettings,
    make_trainer,
)


class Second(Several):
    """The second of two processes, whose company says what it says itself."""

    def __init__(self) -> None:
        super().__init__(rank=1, size=2)

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return list(tensors)

    def largest(self, number: int) -> int:
        return number

    def of_first(self, tensor: Tensor) -> Tensor:
        return tensor

    def agree(self, numbers: Sequence[float]) -> list[float]:
        return list(numbers)


class Even(StepwiseWeighter):
    """Weighs all tasks equally, or as given."""

    def __init__(self, names: Sequence[str], give: Mapping[str, float] | None = None) -> None:
        self._weights = give or dict.fromkeys(names, 1 / len(names))

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return {name: self._weights[name] for name in ("end", *sampled)}

    def weights(self) -> Mapping[str, float]:
        return self._weights

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing changes."""


def squared(predicted: Tensor, wanted: Tensor) -> Tensor:
    return (predicted.squeeze(1) - wanted).square()


def task(name: str) -> TensorTask:
    x = torch.linspace(-1, 1, 16).unsqueeze(1)
    return TensorTask(name, nn.Linear(3, 1), {"input": x}, x.squeeze(1), squared)


def fitted(weighter: Any = "static", **options: Any) -> Any:
    end = task("end")
    return fit(
        *(nn.Linear(1, 3), end, [task("other")]),
        dev=end,
        evaluate=lambda: {"accuracy": 0.0},
        weighter=weighter,
        steps=2,
        **options,
    )


PLUGIN = find_engine("packed", load_plugins().registry)

PACKED = [
    ({"save_memory": True}, {}, "save_memory", "needs the activations of all layers"),
    ({"compile": True}, {}, "compile", "looks at every module"),
    ({"task_clip": 0.5}, {}, "task_clip", "drops each gradient before it is whole"),
    ({}, {"average": 0.5}, "dev_average", "drops each gradient before it is whole"),
]


@pytest.mark.parametrize(("engine", "dev_head", "name", "reason"), PACKED)
def test_what_packed_cannot_support_is_refused_in_the_callers_words(
    engine: dict[str, Any], dev_head: dict[str, Any], name: str, reason: str
) -> None:
    """The sentence is the same for an option and for an argument, but for their names."""
    settings = EngineSettings("packed", plugin=PLUGIN, **engine), DevHeadSettings(**dev_head)
    said = []
    for called in (as_option, as_argument):
        with pytest.raises(ConfigError, match=reason) as error:
            check_engine(*settings, called=called)
        said.append(str(error.value))
    by_option = said[0].replace(as_option("gradients", "packed"), "…").replace(as_option(name), "…")
    by_argument = said[1].replace("gradients='packed'", "…").replace(name, "…")
    assert by_option == by_argument
    check_engine(replace(settings[0], kind="auto"), settings[1])


@pytest.mark.parametrize("options", [{"task_clip": 0.5}, {"dev_average": 0.5}])
def test_fit_names_its_arguments(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"^gradients='packed': .* {next(iter(options))} needs"):
        fitted(gradients="packed", **options)


def test_fit_refuses_packed_in_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``aang train`` does, where it once took the stream engine and said nothing."""
    monkeypatch.setattr(fitting, "processes_of_environment", lambda device: Second())
    with pytest.raises(ConfigError, match=r"^gradients='packed': runs in one process"):
        fitted(gradients="packed")


def test_the_engine_follows_the_options() -> None:
    body = nn.Linear(1, 3)
    head = choose_dev_head(DevHeadSettings("end-task"), Passes(body, "fp32"), torch.Generator())
    packed = EngineSettings("packed", plugin=PLUGIN)
    assert issubclass(PackedEngine, type(choose_engine(packed, body, head)))
    # On a CPU the stream engine is as fast.
    assert isinstance(choose_engine(EngineSettings("auto"), body, head), StreamEngine)
    several = choose_engine(EngineSettings("auto"), body, head, processes=Second())
    assert issubclass(DistributedEngine, type(several))


@pytest.mark.parametrize(
    ("give", "said"),
    [
        ({"end": 1.0}, "weights: expected one for each of the 2 tasks, got 1 weights, none for"),
        ({"end": 1.5, "other": -0.5}, "the weight of other: expected a finite number"),
        ({"end": 1.0, "other": 1.0}, "the sum of the weights: expected 1, got 2"),
    ],
)
def test_fit_checks_a_weighter_that_is_handed_to_it(give: dict[str, float], said: str) -> None:
    with pytest.raises(PluginError, match=f"^weighter Even: {said}"):
        fitted(Even(["end", "other"], give))


def test_weights_that_turn_bad_are_told_when_they_do() -> None:
    class Drifting(Even):
        def round(self, bench: Any) -> None:
            super().round(bench)
            self._weights = {"end": 1.0}

    with pytest.raises(PluginError, match="weighter Drifting: weights: expected one for each"):
        fitted(Drifting(["end", "other"]))


def test_an_error_of_the_callers_own_weighter_is_let_pass() -> None:
    class Raising(Even):
        def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fitted(Raising(["end", "other"]))


def test_a_round_that_takes_one_draw_is_told_so_in_the_callers_words() -> None:
    with pytest.raises(
        ConfigError, match=r"^draws_per_step=2: a round of this weighter is no step"
    ):
        fitted("alpha-vil", draws_per_step=2)


def test_a_task_with_coefficient_zero_keeps_its_head() -> None:
    """AdamW moves on along its momentum where a gradient is zero, but not where there is none."""
    torch.manual_seed(0)
    made = trainer(ALONE, steps=100, helpers=[task("helper")])
    head = made.bench.modules["end"]
    for _ in range(3):
        made.bench.step({"end": 1.0}, frozenset())
    before = head.weight.detach().clone()
    for _ in range(3):
        made.bench.step({"end": 0.0, "helper": 1.0}, frozenset())
    assert torch.equal(head.weight, before)


def trainer(processes: Processes, steps: int = 1, helpers: Sequence[TensorTask] = ()) -> Trainer:
    end = task("end")
    primitive = load_plugins().registry.weighter("single-task")
    return make_trainer(
        *(nn.Linear(1, 3), RunTasks(end, end, helpers), primitive.make(TaskCard("end"), [])),
        TrainingSettings(
            optimizer=OptimizerSettings(lr=0.1, head_lr=0.1),
            schedule=Schedule(steps, 1, 9, "accuracy"),
            step=StepSettings(RowBudget(4, 4, 4)),
            seed=11,
        ),
        evaluate=lambda: {"accuracy": 0.0},
        processes=processes,
    )


def test_each_process_draws_dropout_of_its_own() -> None:
    """The first continues torch's generator; the others are seeded differently."""
    torch.manual_seed(5)
    trainer(ALONE).train()
    assert torch.initial_seed() == 5
    trainer(Second()).train()
    assert torch.initial_seed() == 11 + OTHER_DROPOUT
    resumed = trainer(Second(), steps=4)
    resumed.bench.steps = 3
    resumed.train()
    assert torch.initial_seed() == 11 + OTHER_DROPOUT + 3
