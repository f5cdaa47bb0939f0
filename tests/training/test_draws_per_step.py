"""Steps made of several draws, against the mean of the draws' gradients taken by autograd."""

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import (
    Batch,
    ConfigError,
    FitResult,
    OptimizerSettings,
    RowLosses,
    Signal,
    StepSignals,
    StepwiseWeighter,
    Task,
    fit,
)
from tests.support.gradients import EndTaskHead, GradientEngine, PackedEngine, StreamEngine
from tests.support.training import (
    Optimization,
    RowBudget,
    RunTasks,
    StepSettings,
    TrainingBench,
)

COSINE: frozenset[Signal] = frozenset({"cosine"})
ROWS = 40
RATE = 0.5


@dataclass
class Labelled(Task):
    """Classification of rows of numbers; remembers which rows it was asked for."""

    name: str
    inputs: Tensor
    labels: Tensor
    head: nn.Module
    factors: Mapping[str, str] = field(default_factory=dict)
    asked: list[list[int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        self.asked.append(rows.tolist())
        return Batch({"input": self.inputs[rows]}, {"labels": self.labels[rows]}, len(rows))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = functional.cross_entropy(head(features), targets["labels"], reduction="none")
        return RowLosses(losses, torch.ones_like(losses))

    def loss(self, body: nn.Module, rows: Sequence[int]) -> Tensor:
        places = torch.tensor(rows)
        return functional.cross_entropy(self.head(body(self.inputs[places])), self.labels[places])


@dataclass
class Made:
    body: nn.Module
    end: Labelled
    dev: Labelled
    others: dict[str, Labelled]
    bench: TrainingBench

    @property
    def parameters(self) -> list[nn.Parameter]:
        modules = [self.body, self.end.head, *(task.head for task in self.others.values())]
        return [p for module in modules for p in module.parameters()]


def make(packed: bool = False, max_grad_norm: float = 1e9, **more: Any) -> Made:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 6)).double()
    inputs = torch.randn(ROWS, 5, dtype=torch.float64)

    def task(name: str, column: int, head: nn.Module | None = None) -> Labelled:
        made = head or nn.Linear(6, 2).double()
        return Labelled(name, inputs, (inputs[:, column] > 0).long(), made)

    end = task("end", 0)
    dev = task("end", 0, end.head)
    others = {name: task(name, i) for i, name in enumerate("abc", 1)}
    engine: GradientEngine = (PackedEngine if packed else StreamEngine)(body, EndTaskHead())
    settings = OptimizerSettings(
        lr=RATE,
        head_lr=RATE,
        weight_decay=0.0,
        warmup=0.0,
        max_grad_norm=max_grad_norm,
        optimizer="sgd",
        momentum=0.0,
        schedule="constant",
    )
    heads = [end.head, *(t.head for t in others.values())]
    bench = TrainingBench(
        body,
        RunTasks(end, dev, list(others.values())),
        engine,
        Optimization(body, heads, settings, 100),
        StepSettings(RowBudget(10, 6, 8), **more),
        generator=torch.Generator().manual_seed(0),
        normalised=False,
    )
    return Made(body, end, dev, others, bench)


DRAWS = [
    {"end": 0.5, "a": 0.3, "b": 0.2},
    {"end": 0.5, "b": 0.1, "c": 0.15},  # sums to less than one
    {"end": 0.5, "a": 0.5},
]


def naive(made: Made) -> tuple[list[Tensor | None], list[dict[str, float]]]:
    """Gradients of the draws' mean loss over the rows asked for, and each one's cosines."""
    of_body = list(made.body.parameters())

    def flat(loss: Tensor) -> Tensor:
        parts = torch.autograd.grad(loss, of_body, retain_graph=True)
        return torch.cat([part.flatten() for part in parts])

    total = torch.zeros((), dtype=torch.float64)
    cosines = []
    asked = {name: iter(task.asked) for name, task in made.others.items()}
    for number, draw in enumerate(DRAWS):
        losses = {"end": made.end.loss(made.body, made.end.asked[number])}
        losses |= {k: made.others[k].loss(made.body, next(asked[k])) for k in draw if k != "end"}
        total = total + sum(c * losses[name] for name, c in draw.items()) / len(DRAWS)
        v = flat(made.dev.loss(made.body, made.dev.asked[number]))
        g = {name: flat(loss) for name, loss in losses.items()}
        mixed = sum((draw[k] * g[k] for k in draw if k != "end"), torch.zeros_like(v))
        cosines.append(
            {
                name: float(functional.cosine_similarity(gradient, v, dim=0))
                for name, gradient in {**g, "mixed": mixed}.items()
            }
        )
    return list(torch.autograd.grad(total, made.parameters, allow_unused=True)), cosines


@pytest.mark.parametrize("packed", [False, True], ids=["stream", "packed"])
def test_a_step_is_the_mean_of_its_draws(packed: bool) -> None:
    """Each draw has rows of its own; a task of one of three draws counts a third."""
    made = make(packed)
    before = [p.detach().clone() for p in made.parameters]
    signals = made.bench.step_over(DRAWS, COSINE)
    after = [p.detach().clone() for p in made.parameters]
    with torch.no_grad():
        for parameter, value in zip(made.parameters, before, strict=True):
            parameter.copy_(value)
    gradients, cosines = naive(made)
    for was, now, gradient in zip(before, after, gradients, strict=True):
        expected = was if gradient is None else was - RATE * gradient
        torch.testing.assert_close(now, expected, rtol=0, atol=1e-13)
    assert signals is not None
    for name in ("end", "a", "b", "c"):
        mean = math.fsum(one.get(name, 0.0) for one in cosines) / 3
        assert signals.cosine[name] == pytest.approx(mean, abs=1e-12)
    mixed = math.fsum(one["mixed"] for one in cosines) / 3
    assert signals.auxiliary["cosine"] == pytest.approx(mixed, abs=1e-12)
    # Ten, six and eight rows a step, over three draws.
    assert [len(rows) for rows in made.end.asked] == [4, 3, 3]
    assert [len(rows) for rows in made.dev.asked] == [2, 2, 2]
    assert [len(rows) for rows in made.others["a"].asked] == [2, 2]
    assert len({row for rows in made.end.asked for row in rows}) == 10
    assert made.bench.steps == 1
    assert made.bench.last is not None
    assert made.bench.last.coefficients == pytest.approx(
        {"end": 0.5, "a": 0.8 / 3, "b": 0.1, "c": 0.05}
    )


def test_the_mean_is_clipped_and_not_each_draw() -> None:
    free, clipped = make(), make(max_grad_norm=1e-3)
    moved = []
    for made in (free, clipped):
        before = [p.detach().clone() for p in made.parameters]
        made.bench.step_over(DRAWS, frozenset())
        parts = zip(made.parameters, before, strict=True)
        moved.append(torch.cat([(p.detach() - was).flatten() for p, was in parts]))
    assert float(moved[1].norm()) == pytest.approx(RATE * 1e-3, rel=1e-3)
    torch.testing.assert_close(moved[1] / moved[1].norm(), moved[0] / moved[0].norm())


def test_a_draw_with_bad_numbers_leaves_the_step_out() -> None:
    made = make(on_nan="skip")
    before = [p.detach().clone() for p in made.parameters]
    made.others["c"].inputs = made.others["c"].inputs * math.nan
    assert made.bench.step_over(DRAWS, COSINE) is None
    assert made.bench.steps == 1
    assert made.bench.numbers.skipped == 1
    for parameter, was in zip(made.parameters, before, strict=True):
        assert torch.equal(parameter, was)
        assert parameter.grad is None


@pytest.mark.parametrize(("rows", "draws"), [(128, 4), (10, 4), (3, 3), (7, 1)])
def test_draws_share_all_rows(rows: int, draws: int) -> None:
    budget = RowBudget(rows, 1, 1)
    parts = [budget.of_draw(draws, number).end_task for number in range(draws)]
    assert sum(parts) == rows
    assert max(parts) - min(parts) <= 1


class Counting(StepwiseWeighter):
    """Samples two of three tasks with equal weights and keeps the signals that it gets."""

    signals = COSINE
    sample_size = 2

    def __init__(self) -> None:
        self.told: list[tuple[list[str], StepSignals]] = []
        self.asked = 0

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        self.asked += 1
        return {"end": 0.5, **dict.fromkeys(sampled, 0.25)}

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        self.told.append((list(sampled), signals))

    def weights(self) -> Mapping[str, float]:
        return {"end": 1.0, "a": 0.0, "b": 0.0, "c": 0.0}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing is learned."""


def test_weights_learn_from_the_mean_of_several_steps_of_several_draws() -> None:
    """Every step is measured; after the third, the weighter gets the mean of the three."""
    made = make(draws_per_step=2, weights_every=3)
    weighter = Counting()
    steps: list[StepSignals] = []
    for _ in range(7):
        weighter.round(made.bench)
        assert made.bench.last is not None
        assert made.bench.last.signals is not None
        steps.append(made.bench.last.signals)
    assert weighter.asked == 14
    assert len(weighter.told) == 2
    for (sampled, signals), part in zip(weighter.told, (steps[:3], steps[3:6]), strict=True):
        assert "end" not in sampled
        assert set(sampled) == {name for step in part for name in step.cosine} - {"end"}
        for name, cosine in signals.cosine.items():
            mean = math.fsum(step.cosine.get(name, 0.0) for step in part) / 3
            assert cosine == pytest.approx(mean, abs=1e-15)


def test_signals_that_are_held_back_survive_a_restart() -> None:
    """Of three whose mean counts, one was measured before; a step that measures none is no part."""
    whole, counting = make(weights_every=3), Counting()
    for _ in range(4):
        counting.round(whole.bench)
    whole.bench.step({"end": 1.0}, frozenset())
    state = copy.deepcopy(whole.bench.state_dict())
    assert len(json.loads(json.dumps(state["held_signals"]))) == 1
    again, rest = make(weights_every=3), Counting()
    again.bench.load_state_dict(state)
    for _ in range(2):
        counting.round(whole.bench)
        rest.round(again.bench)
    assert len(counting.told) == 2
    assert rest.told == counting.told[1:]
    assert again.bench.state_dict()["held_signals"] == []


def fitted(made: Made, **options: Any) -> FitResult:
    """The small tasks, fitted with ``factored``."""
    return fit(
        made.body,
        made.end,
        list(made.others.values()),
        dev=made.dev,
        evaluate=lambda: {"accuracy": 0.5},
        weighter="factored",
        **options,
    )


@pytest.mark.parametrize("rows", ["batch_size", "dev_batch_size", "aux_batch_size"])
def test_fit_refuses_draws_without_rows(rows: str) -> None:
    told = rf"^{rows}=2 is less than one row for each of the draws \(draws_per_step=3\); give more"
    with pytest.raises(ConfigError, match=told):
        fitted(make(), draws_per_step=3, **{rows: 2})


def test_fit_takes_the_options() -> None:
    made = make()
    options = {"n": 2}
    result = fitted(made, options=options, steps=8, eval_every=8, draws_per_step=4, weights_every=3)
    factors = [record["factors"]["all"] for record in result.history]
    # The dev head is ready after the first step's draws; from there every third step decides.
    assert factors[:3] == [dict.fromkeys("abc", 0.0)] * 3
    assert factors[3] == factors[4] == factors[5] != factors[2]
    assert factors[6] == factors[7] != factors[5]
    with pytest.raises(ConfigError, match="draws_per_step=2: a round of this weighter is no step"):
        fit(
            made.body,
            made.end,
            [],
            dev=made.dev,
            evaluate=lambda: {"accuracy": 0.5},
            weighter="diw",
            draws_per_step=2,
        )
