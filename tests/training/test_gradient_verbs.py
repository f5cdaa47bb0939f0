"""Gradients of single tasks, their inner products, and steps along sums of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import (
    AangError,
    OptimizerSettings,
    PluginError,
    TensorTask,
    Weighter,
    Workbench,
    fit,
)
from tests.support.gradients import EndTaskHead, GradientEngine, PackedEngine, StreamEngine
from tests.support.plugins import NumericalError, WeighterError
from tests.support.training import Optimization, RowBudget, RunTasks, StepSettings, TrainingBench
from tests.training.trainers import build

NAMES = ("end", "a", "b")


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(logits, labels, reduction="none")


class Counting(EndTaskHead):
    """Counts how often it is fitted."""

    fits = 0

    def fit(self, *given: Any) -> nn.Module:
        self.fits += 1
        return super().fit(*given)


def made(
    kind: type[StreamEngine] | type[PackedEngine] = StreamEngine, **more: Any
) -> tuple[TrainingBench, Counting]:
    """Three tasks over eight rows each, all of which a step takes."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4)).double()
    tasks = []
    for i, name in enumerate(NAMES):
        inputs = torch.randn(8, 5, dtype=torch.float64)
        head = nn.Linear(4, 3).double()
        labels = torch.arange(8).add(i) % 3
        tasks.append(TensorTask(name, head, {"input": inputs}, labels, cross_entropy))
    settings = OptimizerSettings(
        lr=0.1,
        head_lr=0.1,
        weight_decay=0.0,
        warmup=0.0,
        max_grad_norm=1e9,
        optimizer="sgd",
        momentum=0.0,
        schedule="constant",
    )
    head = Counting()
    engine: GradientEngine = kind(body, head)
    bench = TrainingBench(
        body,
        RunTasks(tasks[0], tasks[0], tasks[1:]),
        engine,
        Optimization(body, [t.head for t in tasks], settings, steps=100),
        StepSettings(RowBudget(end_task=8, dev=8, auxiliary=16)),
        generator=torch.Generator().manual_seed(0),
        **more,
    )
    return bench, head


def by_autograd(bench: TrainingBench, name: str) -> dict[nn.Parameter, Tensor]:
    task = {"end": bench.tasks.end_task, **bench.tasks.auxiliaries}[name]
    assert isinstance(task, TensorTask)
    losses = task.losses(task.head, bench.body(**task.inputs), {"targets": task.targets})
    parameters = [*bench.body.parameters(), *task.head.parameters()]
    return dict(zip(parameters, torch.autograd.grad(losses.mean(), parameters), strict=True))


@pytest.mark.parametrize("kind", [StreamEngine, PackedEngine])
def test_gradients_equal_autograd(kind: type[StreamEngine] | type[PackedEngine]) -> None:
    """Of body and own head, to 1e-9, in the order of the names; no dev head is fitted."""
    bench, head = made(kind)
    found = bench.gradients(["b", "end", "a"])
    assert found is not None
    assert [update.tasks for update in found] == [("b",), ("end",), ("a",)]
    for update in found:
        expected = by_autograd(bench, update.tasks[0])
        assert update.deltas.keys() == expected.keys()
        for parameter, gradient in update.deltas.items():
            torch.testing.assert_close(gradient, expected[parameter], rtol=1e-9, atol=1e-12)
    assert all(p.grad is None for p in bench.optimization.parameters)
    assert (bench.steps, head.fits) == (0, 0)


def test_inner_products_are_over_the_body() -> None:
    bench, _ = made()
    found = bench.gradients(NAMES)
    assert found is not None
    of_body = [*bench.body.parameters()]
    flat = [torch.cat([by_autograd(bench, name)[p].flatten() for p in of_body]) for name in NAMES]
    expected = [[float(u @ v) for v in flat] for u in flat]
    for row, wanted in zip(bench.dots(found), expected, strict=True):
        assert row == pytest.approx(wanted, rel=1e-9)
    slope = bench.dev_loss(found, [0.0] * 3).gradient
    assert slope[0] == pytest.approx(
        expected[0][0]
        + sum(
            float(by_autograd(bench, "end")[p].square().sum())
            for p in bench.tasks.end_task.head.parameters()
        )
    ), "an update of a gradient can be tried on dev like one of a trial"


def test_a_descent_by_hand() -> None:
    """θ ← θ − lr Σ c_i g_i over the body; each head by its own factor; one step is counted."""
    bench, _ = made()
    before = {p: p.detach().clone() for p in bench.optimization.parameters}
    gradients = {name: by_autograd(bench, name) for name in NAMES}
    found = bench.gradients(NAMES)
    assert found is not None
    coefficients, heads = [2.0, -0.5, 0.25], [1.0, 0.5, 0.0]
    bench.descend(found, coefficients, of_heads=heads)
    of_body = set(bench.body.parameters())
    for parameter, value in before.items():
        factors = coefficients if parameter in of_body else heads
        total = sum(
            (
                c * gradients[n][parameter]
                for n, c in zip(NAMES, factors, strict=True)
                if parameter in gradients[n]
            ),
            torch.zeros_like(value),
        )
        torch.testing.assert_close(parameter.detach(), value - 0.1 * total, rtol=1e-9, atol=1e-12)
    assert bench.steps == 1
    assert bench.last is not None
    assert bench.last.coefficients == dict(zip(NAMES, coefficients, strict=True))


def test_a_coefficient_of_zero_leaves_a_head_alone() -> None:
    """As in a step: with a gradient of zeros, weight decay and momentum would move it."""
    bench, _ = made()
    found = bench.gradients(NAMES)
    assert found is not None
    left: list[bool] = []
    bench.optimization.update = lambda: left.extend(  # type: ignore[method-assign]
        p.grad is None for p in bench.tasks.auxiliaries[NAMES[-1]].head.parameters()
    )
    bench.descend(found, [0.5, 0.5, 0.0])
    assert left
    assert all(left)


def test_the_sum_is_clipped_like_any_gradient() -> None:
    bench, _ = made()
    bench.optimization.settings.__dict__["max_grad_norm"] = 1e-3
    before = {p: p.detach().clone() for p in bench.optimization.parameters}
    found = bench.gradients(NAMES)
    assert found is not None
    bench.descend(found, [1.0] * 3)
    moved = torch.cat([(p.detach() - v).flatten() for p, v in before.items()])
    assert float(moved.norm()) == pytest.approx(0.1 * 1e-3, rel=1e-4)


@pytest.mark.parametrize("gradients", ["stream", "packed"])
@pytest.mark.parametrize("space", ["td+c", "x+y+z"])
def test_equal_coefficients_make_a_plain_step(
    options: dict[str, Any], space: str, gradients: str
) -> None:
    """On text, with objectives that share rows, compare them and have two views of them."""
    states = []
    for verb in ("step", "descend"):
        _, assembly, trainer, modules, _ = build(
            options, space=space, weighter="static", gradients=gradients, lr=1e-3, seed=1
        )
        bench = trainer.bench
        for module in modules.values():
            for part in module.modules():
                if isinstance(part, nn.Dropout):
                    part.p = 0.0
        names = [t.name for t in assembly.auxiliaries]
        if space == "td+c":
            names = [n for n in names if "contrast" in n or "simcse" in n or "end-task" in n][:6]
        tasks = [bench.end_task, *names]
        share = 1 / len(tasks)
        if verb == "step":
            signals = bench.step(dict.fromkeys(tasks, share), frozenset({"norm", "loss"}))
            assert signals is not None
            norms = [signals.norm[name] for name in tasks]
        else:
            found = bench.gradients(tasks)
            assert found is not None
            products = bench.dots(found)
            assert [math.sqrt(products[i][i]) for i in range(len(tasks))] == pytest.approx(
                norms, rel=1e-3, abs=1e-5
            )
            bench.descend(found, [share] * len(tasks))
        states.append({k: v for m in modules.values() for k, v in m.state_dict().items()})
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][name], value, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.gradients([]), "the gradients of no task"),
        (lambda b: b.gradients(["end", "c"]), "'c'.*each once"),
        (lambda b: b.gradients(["a", "a"]), "each once"),
        (lambda b: b.descend(b.gradients(["a"]), [1.0, 1.0]), "1 updates and 2 coefficients"),
        (lambda b: b.descend(b.gradients(["a"]), [math.nan]), "finite numbers, got .nan"),
        (lambda b: b.dots(["end"]), "not an update"),
        (lambda b: b.trial({"a": 1.0}, steps=0), "a trial of 0 steps"),
        (lambda b: b.step({"end": 1.0, "a": 1.0}, frozenset()), "expected 1, got 2"),
        (lambda b: b.step({"end": 0.5, "a": 0.1}, frozenset()), "expected 1, got 0.6"),
    ],
)
def test_bad_input_is_told(call: Any, message: str) -> None:
    bench, _ = made()
    with pytest.raises(WeighterError, match=message):
        call(bench)


def test_a_weighter_may_declare_that_it_leaves_out_loss() -> None:
    bench, _ = made(normalised=False)
    bench.step({"end": 0.5, "a": 0.1}, frozenset())
    with pytest.raises(WeighterError, match=r"1 at most, got 1\.5"):
        bench.step({"end": 0.5, "a": 1.0}, frozenset())


def test_a_sum_that_is_right_in_single_precision_is_right() -> None:
    bench, _ = made()
    bench.step({"end": 0.5 + 5e-5, "a": 0.5}, frozenset())


@pytest.mark.parametrize("signals", [frozenset({"loss"}), frozenset({"norm", "loss"})])
def test_losses_and_norms_pay_for_no_dev_head(signals: Any) -> None:
    """Not even for rows: those of dev stay where they are."""
    bench, head = made()
    found = bench.step({"end": 0.5, "a": 0.2, "b": 0.3}, signals)
    assert found is not None
    assert head.fits == 0
    assert bench.state_dict()["draws"]["rows"]["dev"]["position"] == 0
    assert set(found.tasks) == set(NAMES)
    assert found.dev_norm is None
    assert (found.cosine, found.dot) == ({}, {})
    assert bool(found.norm) == ("norm" in signals)


def test_losses_are_those_before_the_step() -> None:
    """By hand; that of the auxiliary tasks together has their weights."""
    bench, _ = made()
    expected = {}
    for name in NAMES:
        task = {"end": bench.tasks.end_task, **bench.tasks.auxiliaries}[name]
        assert isinstance(task, TensorTask)
        logits = task.head(bench.body(**task.inputs))
        expected[name] = float(cross_entropy(logits.detach(), task.targets).mean())
    found = bench.step({"end": 0.5, "a": 0.2, "b": 0.3}, frozenset({"loss", "cosine"}))
    assert found is not None
    # Shares of the rows follow the weights, so only the end task's rows are all of its rows.
    assert found.loss["end"] == pytest.approx(expected["end"], rel=1e-12)
    mixed = (0.2 * found.loss["a"] + 0.3 * found.loss["b"]) / 0.5
    assert found.auxiliary["loss"] == pytest.approx(mixed, rel=1e-12)
    assert found.dev_norm is not None


class Descends(Weighter):
    """Descends along the sum of all gradients; a task may be given a loss that is not finite."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [*names]
        self.skipped = 0

    def round(self, bench: Workbench) -> None:
        found = bench.gradients(self.names)
        if found is None:
            self.skipped += 1
            return
        bench.descend(found, [1 / len(found)] * len(found))

    def weights(self) -> Mapping[str, float]:
        return dict.fromkeys(self.names, 1 / len(self.names))


def trained(weighter: Any, *, bad: bool = False, **more: Any) -> Any:
    bench, _ = made()
    end, *others = [bench.tasks.end_task, *bench.tasks.auxiliaries.values()]
    if bad:
        others[0].inputs["input"][3] = math.nan  # type: ignore[attr-defined]
    return fit(
        bench.body,
        end,
        others,
        dev=end,
        evaluate=lambda: {"accuracy": 0.5},
        weighter=weighter,
        steps=4,
        eval_every=2,
        batch_size=4,
        aux_batch_size=4,
        **more,
    )


def test_a_bad_gradient_stops_training_and_names_the_task() -> None:
    with pytest.raises(NumericalError, match="the loss of a is nan"):
        trained(Descends(NAMES), bad=True)


def test_a_bad_gradient_may_be_skipped() -> None:
    """The rows with the bad one are left out, and the step counts."""
    weighter = Descends(NAMES)
    result = trained(weighter, bad=True, on_nan="skip")
    assert 0 < weighter.skipped < 4
    assert result.steps == 4
    assert result.history[-1]["skipped"] == weighter.skipped


class Idle(Descends):
    def round(self, bench: Workbench) -> None:
        """Takes no step."""


def test_a_round_without_a_step_is_an_error() -> None:
    with pytest.raises(PluginError, match="weighter Idle: a round: expected at least one step"):
        trained(Idle(NAMES))


class FourTimesOne(Descends):
    def round(self, bench: Workbench) -> None:
        bench.step(dict.fromkeys(self.names, 1.0), frozenset())


def test_coefficients_that_do_not_sum_to_one_are_an_error() -> None:
    with pytest.raises(PluginError, match=r"FourTimesOne: the sum of the coef.* got 3"):
        trained(FourTimesOne(NAMES))


class SetInState(Descends):
    def state_dict(self) -> dict[str, Any]:
        return {"names": {*self.names}}


class SetInRecord(Descends):
    def record(self) -> Mapping[str, Any]:
        return {"names": {*self.names}}


@pytest.mark.parametrize("kind", [SetInState, SetInRecord])
def test_what_cannot_be_saved_is_found_before_anything_is_trained(kind: type[Descends]) -> None:
    weighter = kind(NAMES)
    weighter.round = None  # type: ignore[assignment, method-assign]
    with pytest.raises(AangError, match="JSON values by name"):
        trained(weighter)


def test_a_step_wise_weighter_with_signals_and_no_observe_is_refused() -> None:
    from aang_core import StepwiseWeighter
    from tests.support.plugins import CheckedWeighter

    class Deaf(StepwiseWeighter):
        signals = frozenset({"loss"})

        def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
            return {"end": 1.0}

        def weights(self) -> Mapping[str, float]:
            return {"end": 1.0}

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            pass

    with pytest.raises(
        PluginError, match=r"Deaf: observe: expected a method that learns from loss"
    ):
        CheckedWeighter(Deaf(), None, ["end"])


class Counter(nn.Module):
    """Normalises by running statistics, and counts in a whole number and a flag."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.linear = nn.Linear(5, 4)
        self.register_buffer("seen", torch.tensor(False))
        self.register_buffer("queue", torch.zeros(2))

    def forward(self, input: Tensor) -> Tensor:
        if self.training:
            self.seen = torch.tensor(True)
            self.queue = self.queue.roll(1) + input.mean()
        out: Tensor = self.linear(self.norm(input))
        return out


def with_buffers() -> tuple[TrainingBench, Counter]:
    torch.manual_seed(0)
    body = Counter().double()
    inputs = torch.randn(8, 5, dtype=torch.float64) + 3
    task = TensorTask(
        "end", nn.Linear(4, 3).double(), {"input": inputs}, torch.arange(8) % 3, cross_entropy
    )
    settings = OptimizerSettings(lr=0.1, head_lr=0.1, optimizer="sgd", schedule="constant")
    bench = TrainingBench(
        body,
        RunTasks(task, task, []),
        StreamEngine(body, EndTaskHead()),
        Optimization(body, [task.head], settings, steps=100),
        StepSettings(RowBudget(end_task=4, dev=8, auxiliary=4)),
        generator=torch.Generator().manual_seed(0),
    )
    return bench, body


def test_a_trial_restores_buffers_and_a_whole_update_applies_them() -> None:
    bench, body = with_buffers()
    before = {name: value.clone() for name, value in body.named_buffers()}
    snapshot = bench.snapshot()
    for _ in range(3):
        bench.step({"end": 1.0}, frozenset())
    trained = {name: value.clone() for name, value in body.state_dict().items()}
    snapshot()
    assert all(torch.equal(value, before[name]) for name, value in body.named_buffers())

    bench, body = with_buffers()
    update = bench.trial({"end": 1.0}, steps=3)
    assert bench.steps == 3
    assert all(torch.equal(value, before[name]) for name, value in body.named_buffers())
    bench.apply([update], [1.0])
    for name, value in body.state_dict().items():
        if name in before:
            torch.testing.assert_close(value, trained[name], rtol=1e-9, atol=1e-9)


def test_running_variances_stay_positive_whatever_the_coefficients() -> None:
    """Three updates with α = 1 each: the parameters add them up, buffers take their mean."""
    bench, body = with_buffers()
    updates = [bench.trial({"end": 1.0}, steps=20) for _ in range(3)]
    loss = bench.dev_loss(updates, [1.0] * 3)
    assert math.isfinite(loss.value)
    bench.apply(updates, [1.0] * 3)
    variance = body.norm.running_var
    assert variance is not None
    assert bool((variance > 0).all())
    assert bench.dev_loss([], []).value == pytest.approx(loss.value, rel=1e-9)
