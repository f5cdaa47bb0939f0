"""The trainer in this process: checkpoints, what a step computes, and the dev head's purpose."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from aang_core import (
    AangError,
    DataError,
    FitResult,
    OptimizerSettings,
    StepSignals,
    TensorTask,
    fit,
    load_plugins,
)
from tests.support.runs import SourceReader, assemble, load_model, prepare_sources, resolve_config
from tests.support.training import Optimization, load_checkpoint, save_checkpoint
from tests.training.trainers import assert_goes_on, build


@pytest.mark.parametrize(
    ("weighter", "dev_head"),
    [
        ("single-task", "own-rows"),
        ("static", "own-rows"),
        ("meta-tartan", "own-rows"),
        ("factored", "own-rows"),
        ("factored", "remembered"),
        ("factored", "drawn"),
        ("factored", "end-task"),
    ],
)
def test_training_goes_on_from_a_checkpoint_as_if_nothing_had_happened(
    options: dict[str, Any], tmp_path: Path, weighter: str, dev_head: str
) -> None:
    """Rows, tasks, dropout, moments, schedule and weights: all bit-identical after a restart."""
    given = {**options, "weighter": weighter, "dev_head": dev_head}
    assert_goes_on(given, tmp_path / "checkpoint", rounds=6, at=4)


@pytest.mark.parametrize(
    "more",
    [
        {"dev_head_fit": "logistic", "dev_head_rows": 20},
        {"dev_average": 0.8, "task_clip": 0.1, "clip_apart": True},
        {"dev_average": 0.8, "dev_head": "drawn", "dev_head_rows": 24, "micro_batch_size": 3},
        {"dev_average": 0.8, "precision": "fp16", "meta_every": 2},
    ],
)
def test_with_every_option_of_the_signals_it_goes_on_bit_by_bit(
    options: dict[str, Any], tmp_path: Path, more: dict[str, Any]
) -> None:
    """Signals are measured before the checkpoint and after it."""
    assert_goes_on({**options, **more}, tmp_path / "checkpoint", rounds=5, at=3)


def test_a_step_that_is_left_out_is_not_remembered(options: dict[str, Any]) -> None:
    """Its features and its dev gradient may be what is not finite."""
    more = {"on_nan": "skip", "dev_average": 0.5}
    _, _, trainer, modules, _ = build(options, **more)
    for _ in range(3):
        trainer.weighter.round(trainer.bench)
    before = dict(trainer.bench.dev_head.state_dict())
    embeddings = next(modules["body"].parameters())
    good = embeddings.detach().clone()
    with torch.no_grad():
        embeddings.fill_(float("nan"))
    trainer.weighter.round(trainer.bench)
    assert trainer.bench.numbers.skipped == 1
    with torch.no_grad():
        embeddings.copy_(good)
    after = trainer.bench.dev_head.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    trainer.weighter.round(trainer.bench)
    assert trainer.bench.last is not None
    assert trainer.bench.last.signals is not None


def test_what_is_drawn_aside_is_drawn_again(options: dict[str, Any]) -> None:
    """Looking on from beside changes nothing in a training."""
    _, _, plain, _, _ = build(options)
    for _ in range(4):
        plain.weighter.round(plain.bench)
    _, _, watched, _, _ = build(options)
    for _ in range(4):
        watched.weighter.round(watched.bench)
        with watched.bench.aside() as draws:
            draws.rows("end-task", 50)
            torch.rand(3)
    assert plain.bench.last == watched.bench.last
    assert plain.weighter.state_dict() == watched.weighter.state_dict()


def test_a_checkpoint_of_another_space_is_refused(
    options: dict[str, Any], domain: list[object], tmp_path: Path
) -> None:
    _, _, trainer, _, _ = build(options)
    save_checkpoint(tmp_path / "checkpoint", trainer)
    _, _, other, _, _ = build(options, space="td+ed", domain=[str(path) for path in domain[1:]])
    with pytest.raises(DataError, match="another model or space"):
        load_checkpoint(tmp_path / "checkpoint", other)
    with pytest.raises(DataError, match="no usable checkpoint"):
        load_checkpoint(tmp_path / "nothing", trainer)


@pytest.mark.parametrize(
    ("weighter", "n", "body_passes", "dev_head_fits"),
    [
        ("single-task", 0, 1, 0),
        ("static", 3, 2, 0),
        ("meta-tartan", 3, 5, 1),
        ("factored", 3, 5, 1),
    ],
)
def test_passes_of_a_step(
    options: dict[str, Any], weighter: str, n: int, body_passes: int, dev_head_fits: int
) -> None:
    """A pass per task and one more over the dev rows for those who measure. For static, which does
    not, one for the end task and one for all objectives."""
    settings = {weighter: {"n": n}} if n else {}
    options = {**options, "dev_head": "own-rows"}
    _, assembly, trainer, _, _ = build(options, weighter=weighter, set=settings)
    forward: list[int] = []
    backward: list[int] = []
    fits: list[int] = []

    def count(_: nn.Module, __: Any, hidden: torch.Tensor) -> None:
        forward.append(1)
        hidden.register_hook(lambda _: backward.append(1))

    assembly.model.body.register_forward_hook(count)
    dev_head = trainer.bench.dev_head
    fit = dev_head.fit

    def counted(*arguments: Any) -> nn.Module:
        fits.append(1)
        return fit(*arguments)

    dev_head.fit = counted  # type: ignore[method-assign]
    trainer.weighter.round(trainer.bench)
    assert len(forward) == len(backward) == body_passes
    assert len(fits) == dev_head_fits


def test_the_step_updates_heads_of_sampled_objectives_only(options: dict[str, Any]) -> None:
    """An objective that was not sampled keeps its head; the body and the end task move."""
    _, _, trainer, modules, _ = build(options, set={"factored": {"n": 2}}, warmup=0.0)
    embeddings = {id(p) for p in modules["body"].parameters()}

    def own(module: nn.Module) -> list[torch.Tensor]:
        return [p.detach().clone() for p in module.parameters() if id(p) not in embeddings]

    before = {name: own(module) for name, module in modules.items() if name != "body"}
    trainer.weighter.round(trainer.bench)
    assert trainer.bench.last is not None
    moved = {
        name
        for name, values in before.items()
        if any(not torch.equal(a, b) for a, b in zip(values, own(modules[name]), strict=True))
    }
    assert moved == set(trainer.bench.last.coefficients)
    assert len(moved) == 3


def test_a_step_must_name_known_tasks(options: dict[str, Any]) -> None:
    _, _, trainer, _, _ = build(options)
    with pytest.raises(AangError, match="nobody"):
        trainer.bench.step({"end-task": 0.5, "nobody": 0.5}, frozenset())
    with pytest.raises(AangError, match="end-task"):
        trainer.bench.step({}, frozenset())


def fitted(scores: Sequence[float], **more: Any) -> FitResult:
    """Train a line, with a dev score after each step that is known in advance."""
    inputs, left = {"input": torch.linspace(-1, 1, 8).unsqueeze(1)}, iter(scores)
    loss = nn.CrossEntropyLoss(reduction="none")
    end = TensorTask("end", nn.Linear(2, 2), inputs, torch.arange(8) % 2, loss)
    return fit(
        *(nn.Linear(1, 2), end, []),
        dev=end,
        evaluate=lambda: {"accuracy": next(left)},
        weighter="single-task",
        steps=len(scores) - 1,
        eval_every=1,
        **more,
    )


def test_an_equal_score_is_not_better() -> None:
    """The first evaluation is of the untrained model."""
    assert fitted([0.1, 0.3, 0.3, 0.2, 0.3]).best_step == 1
    assert fitted([0.3, 0.3, 0.3]).best_step == 0


@pytest.mark.parametrize(("patience", "steps"), [(1, 2), (2, 5), (3, 6), (4, 7)])
def test_training_ends_after_evaluations_without_a_better_score(patience: int, steps: int) -> None:
    """An equal score does not count as better; a better one begins the count anew."""
    result = fitted([0.1, 0.2, 0.2, 0.3, 0.1, 0.3, 0.2, 0.4], patience=patience)
    assert result.steps == steps


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_matrices_decay_and_biases_and_gains_do_not(optimizer: Any) -> None:
    """Of the body and of the heads; a parameter of the body that a head shares is the body's."""
    body = nn.ModuleDict({"words": nn.Embedding(5, 3), "layer": nn.Linear(3, 3)})
    body["norm"], frozen = nn.LayerNorm(3), nn.Linear(3, 3)
    body["frozen"] = frozen.requires_grad_(False)
    head, tied = nn.Linear(3, 2), nn.Linear(3, 5)
    tied.weight = body["words"].weight
    settings = OptimizerSettings(
        lr=0.1, head_lr=0.2, weight_decay=0.3, head_weight_decay=0.4, optimizer=optimizer
    )
    groups = Optimization(body, [head, tied], settings, 10).optimizer.param_groups
    found = {p: (g["initial_lr"], g["weight_decay"]) for g in groups for p in g["params"]}
    of_body, of_heads = body.parameters(), (*head.parameters(), tied.bias)
    expected = {p: (0.1, 0.3 if p.dim() == 2 else 0.0) for p in of_body if p.requires_grad}
    expected |= {p: (0.2, 0.4 if p.dim() == 2 else 0.0) for p in of_heads}
    assert found == expected
    assert sum(len(g["params"]) for g in groups) == len(expected)


def test_a_training_of_unknown_length_keeps_a_constant_rate() -> None:
    shares = [0.0]
    settings = OptimizerSettings(lr=0.1, head_lr=0.1, schedule="constant", warmup=0.1)
    optimization = Optimization(nn.Linear(1, 1), [], settings, 1, lambda: shares[-1])
    rates = []
    for share in (0.05, 0.1, 0.5, 0.9):
        shares.append(share)
        optimization.catch_up(optimization.schedule.last_epoch + 1)
        rates.append(optimization.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.05, 0.1, 0.1, 0.1])


SGD = {"optimizer": "sgd", "momentum": 0.5, "schedule": "constant", "lr": 0.05, "head_lr": 0.1}


def test_sgd_at_a_constant_rate(options: dict[str, Any], tmp_path: Path) -> None:
    """After the warm-up the rate stays, and a checkpoint has the momentum."""
    _, _, trainer, _, _ = build(options, **SGD, steps=6, warmup=0.5, weighter="static")
    optimizer = trainer.bench.optimization.optimizer
    assert isinstance(optimizer, torch.optim.SGD)
    factors = []
    for _ in range(6):
        factors.append(optimizer.param_groups[0]["lr"] / 0.05)
        trainer.weighter.round(trainer.bench)
    assert factors == pytest.approx([0, 1 / 3, 2 / 3, 1, 1, 1])
    groups = optimizer.param_groups
    assert {(g["initial_lr"], g["momentum"]) for g in groups} == {(0.05, 0.5), (0.1, 0.5)}
    assert_goes_on({**options, **SGD}, tmp_path / "checkpoint", rounds=5, at=3)


@pytest.mark.parametrize(("optimizer", "ratio"), [("sgd", 10.0), ("adamw", 1.0)])
def test_under_adamw_an_update_hardly_depends_on_its_weight(
    options: dict[str, Any], optimizer: str, ratio: float
) -> None:
    """The δ of αVIL for ten times the weight w_t / Σw, at the same rows and dropout.

    A gradient is divided by its own size, so only ε and the clip can tell the weights apart.
    """
    given = {**SGD, "optimizer": optimizer, "lr": 1e-3, "head_lr": 1e-3, "adam_eps": 1e-14}
    given |= {"weighter": "alpha-vil", "weight_decay": 0.0, "max_grad_norm": 1e6}
    lengths = []
    for weight in (0.05, 0.5):
        _, _, trainer, _, _ = build(options, **given)
        update = trainer.bench.trial({"end-task": weight}, fraction=0.1)
        norms = [d.double().norm() for d in update.deltas.values()]  # type: ignore[attr-defined]
        lengths.append(torch.stack(norms).norm().item())
    assert lengths[1] / lengths[0] == pytest.approx(ratio, rel=0.05)


def test_meta_fraction_holds_dev_rows_out(options: dict[str, Any], task_files: Path) -> None:
    """The dev gradient's rows and the dev metric's rows are disjoint and together all of dev."""
    train = str(task_files / "train.jsonl")
    _, assembly, _, _, _ = build(options, train=train, dev=train, meta_fraction=0.4)
    rows = [_texts(assembly.dev), _texts(assembly.meta.rows)]
    assert len(rows[0]) + len(rows[1]) == len(_texts(assembly.end_task.rows))
    assert not rows[0] & rows[1]


@pytest.mark.parametrize("fraction", [0.0, 0.4])
def test_each_part_of_dev_has_its_digest(
    options: dict[str, Any], task_files: Path, fraction: float
) -> None:
    """``--resume`` notices a change in either; without a fraction there is one part."""
    train = str(task_files / "train.jsonl")
    config = resolve_config({}, {**options, "dev": train, "meta_fraction": fraction})
    sources = prepare_sources(config, load_plugins().registry)
    reader = SourceReader(sources, load_model(sources))
    assembly = assemble(sources, reader=reader)
    digests = reader.digests()
    assert digests["dev"] == assembly.dev.digest
    assert digests.get("meta", digests["dev"]) == assembly.meta.rows.digest
    assert ("meta" in digests) == (fraction > 0)


def _texts(rows: Any) -> set[tuple[int, ...]]:
    padded = rows.rows(torch.arange(len(rows)))
    return {tuple(r[m].tolist()) for r, m in zip(padded.ids, padded.real, strict=True)}


def test_weighter_that_measures_but_does_not_observe_is_refused() -> None:
    from aang_core import PluginError, StepwiseWeighter

    class Deaf(StepwiseWeighter):
        signals = frozenset({"dot"})

        def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
            return {}

        def weights(self) -> Mapping[str, float]:
            return {}

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            return None

    with pytest.raises(PluginError, match="Deaf asks for dot"):
        Deaf().observe((), StepSignals({}, {}, {}, {}, 0.0))
