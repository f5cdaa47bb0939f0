"""What the bench gives to weighters that draw, look at dev and know how long the run is."""

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from aang_testing import Pull, RecordingWorkbench, quadratic_problem
from torch import nn

from aang_core import (
    AangError,
    ConfigError,
    PluginError,
    StepSignals,
    TaskCard,
    TensorTask,
    Weighter,
    fit,
    load_plugins,
)
from tests.support.plugins import CheckedWeighter, WeighterError
from tests.support.runs import (
    Assembly,
    TrainConfig,
    assemble,
    build_trainer,
    part_of,
    prepare_sources,
    resolve_config,
    score_rows,
)
from tests.support.training import DevSet, TrainingBench

CPU = torch.device("cpu")
NAMES = ["gpt-style", "xlnet-style", "bert-style"]


def built(options: dict[str, Any], **more: Any) -> tuple[TrainConfig, Assembly, TrainingBench]:
    config = resolve_config({}, {**options, "weighter": "static", "space": "x+y+z", **more})
    torch.manual_seed(config.seed)
    assembly = assemble(prepare_sources(config, load_plugins().registry))
    return config, assembly, build_trainer(assembly, CPU).bench


def chances(weights: dict[str, float], n: int) -> dict[str, float]:
    """How likely each is among n drawn one after the other, over all orders."""
    found = dict.fromkeys(weights, 0.0)
    for order in itertools.permutations(weights, n):
        chance, left = 1.0, sum(weights.values())
        for name in order:
            chance, left = chance * weights[name] / left, left - weights[name]
        for name in order:
            found[name] += chance
    return found


@pytest.mark.parametrize("n", [1, 2])
def test_tasks_are_drawn_in_proportion_to_their_weights(options: dict[str, Any], n: int) -> None:
    """By the bench of a training and by the one of weighters' own tests."""
    _, _, bench = built(options)
    names = bench.sample(None)
    weights = dict(zip(names, (5.0, 2.0, 1.0), strict=True))
    for one in (bench, RecordingWorkbench("end-task", names)):
        drawn = [one.sample(n, weights) for _ in range(3000)]
        assert all(len(set(sample)) == n for sample in drawn)
        counts = Counter(name for sample in drawn for name in sample)
        for name, chance in chances(weights, n).items():
            error = (chance * (1 - chance) / 3000) ** 0.5
            assert abs(counts[name] / 3000 - chance) < 4 * error


def test_a_weighted_draw_comes_from_the_generator_of_the_run(options: dict[str, Any]) -> None:
    _, _, bench = built(options)
    weights = dict(zip(bench.sample(None), (5.0, 2.0, 1.0), strict=True))
    state = bench.generator.get_state()
    first = [bench.sample(2, weights) for _ in range(10)]
    bench.generator.set_state(state)
    assert [bench.sample(2, weights) for _ in range(10)] == first
    state = bench.generator.get_state()
    assert bench.sample(None, weights) == bench.sample(3, weights) == tuple(weights)
    assert torch.equal(bench.generator.get_state(), state), "all of them need no draw"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1.0, -1.0, 1.0), "not negative, got -1.0"),
        ((1.0, float("nan"), 1.0), "got nan"),
        ((1.0, 0.0, 0.0), "a draw of 2 tasks, of which fewer"),
    ],
)
def test_weights_that_nothing_can_be_drawn_by_are_refused(
    options: dict[str, Any], weights: tuple[float, ...], message: str
) -> None:
    _, _, bench = built(options)
    with pytest.raises(WeighterError, match=message):
        bench.sample(2, dict(zip(bench.sample(None), weights, strict=True)))
    with pytest.raises(WeighterError, match="not those of the auxiliary tasks: other"):
        bench.sample(2, {**dict.fromkeys(bench.sample(None), 1.0), "other": 1.0})


def test_parts_of_dev_are_nested_and_fixed_by_the_seed() -> None:
    whole = torch.arange(40)
    assert torch.equal(part_of(40, 40, 3), whole)
    assert torch.equal(part_of(40, 99, 3), whole)
    small, large = part_of(40, 10, 3), part_of(40, 25, 3)
    assert len(small) == 10
    assert set(small.tolist()) < set(large.tolist())
    assert torch.equal(small, part_of(40, 10, 3))
    assert not torch.equal(small, part_of(40, 10, 4))


def test_a_dev_score_may_be_of_some_rows(options: dict[str, Any]) -> None:
    """The same ones each time; drawing them and scoring them leaves all generators as they were."""
    config, assembly, bench = built(options, metric="accuracy")
    for _ in range(3):
        bench.step({"end-task": 1.0}, frozenset())
    states = bench.generator.get_state(), torch.default_generator.get_state()
    part = part_of(len(assembly.dev), 7, config.seed)
    expected = score_rows(assembly, assembly.dev, part=part)["accuracy"]
    assert bench.dev_score(7) == bench.dev_score(7) == expected
    assert (7 * expected) == pytest.approx(round(7 * expected))
    whole = score_rows(assembly, assembly.dev)["accuracy"]
    assert bench.dev_score() == bench.dev_score(10**6) == whole
    assert torch.equal(bench.generator.get_state(), states[0])
    assert torch.equal(torch.default_generator.get_state(), states[1])
    with pytest.raises(WeighterError, match="0 rows"):
        bench.dev_score(0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_dev_score_that_is_not_finite_is_refused(value: float) -> None:
    """By the bench of a training and by the one of weighters' own tests."""
    end = Pull("end", (0.0, 0.0))
    recording = RecordingWorkbench("end", [], score=lambda coefficients: value)
    for bench in (quadratic_problem(end, [], score=lambda theta: value).bench, recording):
        with pytest.raises(AangError, match=f"dev score is {value}: training has diverged"):
            bench.dev_score()


def test_what_is_held_out_of_dev_is_what_weighters_are_scored_on(options: dict[str, Any]) -> None:
    """So that the rows that choose the best model have not taught the weights."""
    _, assembly, bench = built(options, meta_fraction=0.5)
    assert len(assembly.meta) == len(assembly.dev) == 20
    assert bench.dev_score() == score_rows(assembly, assembly.meta.rows)["macro-f1"]


def test_steps_left_are_those_of_the_run(options: dict[str, Any]) -> None:
    _, _, bench = built(options, steps=2)
    left = [bench.steps_left]
    for _ in range(3):
        bench.step({"end-task": 1.0}, frozenset())
        left.append(bench.steps_left)
    assert left == [2, 1, 0, 0]


def test_a_run_of_rounds_takes_no_step_too_many(options: dict[str, Any], tmp_path: Path) -> None:
    """Eight steps in rounds of three are three, three and two."""
    config = resolve_config(
        {}, {**options, "weighter": "factored-bandit", "set": {"factored-bandit": {"k": 3}}}
    )
    torch.manual_seed(config.seed)
    trainer = build_trainer(assemble(prepare_sources(config, load_plugins().registry)), CPU)
    trainer.train()
    assert trainer.bench.steps == 8


def squared(got: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return (got.squeeze(-1) - wanted).square()


def test_a_round_longer_than_the_run_is_refused_without_text_too() -> None:
    body, head = nn.Linear(1, 2), nn.Linear(2, 1)
    task = TensorTask("end", head, {"input": torch.zeros(4, 1)}, torch.zeros(4), squared)
    with pytest.raises(ConfigError, match=r"rounds of 10 steps, and the run has 9.*--steps 10"):
        fit(
            *(body, task, []),
            dev=task,
            evaluate=lambda: {"accuracy": 0.0},
            weighter="autosem",
            steps=9,
        )


class Odd(Weighter):
    """A weighter of rounds of no known length."""

    round_steps: Any = 0

    def __init__(self, end_task: TaskCard, auxiliaries: list[TaskCard]) -> None:
        self._end_task = end_task.name

    def round(self, bench: Any) -> None: ...

    def weights(self) -> dict[str, float]:
        return {self._end_task: 1.0}


@pytest.mark.parametrize("steps", [0, -1, 2.5, "three", True])
def test_the_steps_of_a_round_must_be_a_number_of_steps(steps: Any) -> None:
    primitive = load_plugins().registry.weighter("static")
    weighter = Odd(TaskCard("end"), [])
    weighter.round_steps = steps
    with pytest.raises(PluginError, match="round_steps: expected a whole number"):
        CheckedWeighter(weighter, primitive, ["end"])


@pytest.mark.parametrize(
    ("weighter", "option"),
    [
        ("static", "alternate"),
        ("alpha-vil", "offload"),
        ("diw", "offload"),
        ("forkmerge", "offload"),
        ("tapweight", "offload"),
        ("factored-bandit", "rewind"),
    ],
)
def test_a_word_switches_nothing_on(weighter: str, option: str) -> None:
    primitive = load_plugins().registry.weighter(weighter)
    with pytest.raises(ConfigError, match=f"weighter option {option} is 'no'; give true or false"):
        primitive.make(TaskCard("end"), [TaskCard("a")], **{option: "no"})


def test_a_bench_without_a_score_says_so(options: dict[str, Any]) -> None:
    _, _, bench = built(options)
    with bench.aside() as draws:
        dev_set = DevSet(bench.body, bench.tasks.end_task, draws, 4, None, bench.processes)
    with pytest.raises(AangError, match="give the bench a score"):
        dev_set.score(3)


def test_made_up_signals_that_lack_one_that_is_asked_for_are_refused() -> None:
    """The message says which part of the signals lacks it."""
    empty = StepSignals({}, {}, {}, {}, None, {"end": 1.0})
    bench = RecordingWorkbench("end", ["a"], measure=lambda coefficients: empty)
    with pytest.raises(AssertionError, match=r"auxiliary of .*a value of the signal loss"):
        bench.step({"end": 1.0}, frozenset({"loss"}))
