"""Class weights and balanced rows: exact in both engines, in micro-batches and after a restart."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from aang import Run
from torch import Tensor, nn
from torch.nn import functional

from aang_core import Batch, ConfigError, OptimizerSettings, RowLosses, TensorTask, fit
from tests.support.runs import EndTask
from tests.support.training import BalancedOrder
from tests.training.conftest import Aang
from tests.training.trainers import assert_goes_on, build

WEIGHTS = torch.tensor([1.0, 7.5, 2.0], dtype=torch.float64)


def test_the_loss_is_torchs_weighted_mean(options: dict[str, Any]) -> None:
    """Even of a single row, whose weight cancels out; the head is the end task's."""
    _, assembly, _, _, _ = build(options, class_weights="balanced", weighter="single-task")
    counts = Counter(assembly.end_task.rows.labels.tolist())
    weights = assembly.class_weights
    assert weights is not None
    assert min(weights.values()) == 1.0
    for name, i in zip(weights, sorted(counts), strict=True):
        assert weights[name] == pytest.approx(max(counts.values()) / counts[i])
    tensor = torch.tensor(list(weights.values()))
    for task in (assembly.end_task, assembly.meta):
        for rows in (torch.arange(8), torch.tensor([3])):
            batch = task.batch(rows, torch.Generator())
            logits = torch.randn(len(rows), len(weights))
            found = task.losses(nn.Identity(), logits, batch.targets).mean()
            labels = batch.targets["labels"]
            torch.testing.assert_close(found, functional.cross_entropy(logits, labels, tensor))


def test_objectives_with_the_end_tasks_labels_have_its_weights(options: dict[str, Any]) -> None:
    """They train the loss that the end task trains, on corrupted texts."""
    _, assembly, *_ = build(options, class_weights="balanced", space="td", weighter="static")
    assert assembly.class_weights is not None
    weights = torch.tensor(list(assembly.class_weights.values()))
    task = next(task for task in assembly.auxiliaries if task.name.endswith("/end-task"))
    labels = torch.tensor([0, 1, 1, 2])
    logits = torch.randn(len(labels), len(weights))
    found = task.losses(nn.Identity(), logits, {"label": labels}).mean()
    torch.testing.assert_close(found, functional.cross_entropy(logits, labels, weights))


class Weighted(TensorTask):
    """A task whose rows weigh as their classes do."""

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        made = super().batch(rows, generator)
        weights = WEIGHTS[made.targets["targets"]]
        return Batch(made.inputs, {**made.targets, "weights": weights}, made.rows)

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        found = super().losses(head, features, targets)
        return RowLosses(found.sums * targets["weights"], targets["weights"])


@pytest.mark.parametrize("gradients", ["stream", "packed"])
def test_a_step_of_either_engine_is_that_of_the_weighted_mean(gradients: Any) -> None:
    """All rows in one step of plain descent; the objective's loss is not weighted."""
    torch.manual_seed(2)
    inputs = torch.randn(11, 4, dtype=torch.float64)
    body = nn.Linear(4, 5).double()
    loss = nn.CrossEntropyLoss(reduction="none")
    labels = torch.tensor([0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0])
    end = Weighted("end", nn.Linear(5, 3).double(), {"input": inputs}, labels, loss)
    other = TensorTask("other", nn.Linear(5, 3).double(), {"input": inputs}, labels.flip(0), loss)
    logits = end.head(body(inputs))
    expected = functional.cross_entropy(logits, labels, WEIGHTS)
    others = functional.cross_entropy(other.head(body(inputs)), labels.flip(0))
    gradient = torch.autograd.grad(0.5 * expected + 0.5 * others, body.weight)[0]
    before: list[Tensor] = []
    moved: list[Tensor] = []
    losses: list[Mapping[str, float]] = []

    class Look:
        def after_round(self, step: int, record: Mapping[str, Any]) -> None:
            moved.append(body.weight.detach().clone())
            losses.append(record["losses"])

        def after_evaluation(self, *arguments: Any) -> None:
            before.append(body.weight.detach().clone())

    fit(
        *(body, end, [other]),
        dev=end,
        evaluate=lambda: {"accuracy": 0.5},
        weighter="static",
        steps=1,
        batch_size=11,
        aux_batch_size=11,
        gradients=gradients,
        optimizer=OptimizerSettings(lr=1e-3, head_lr=1e-3, max_grad_norm=1e9, weight_decay=0.0),
        observers=[Look()],
    )
    assert losses[0] == pytest.approx(
        {"end": float(expected.detach()), "other": float(others.detach())}, abs=1e-12
    )
    # AdamW's first step goes along the sign of the gradient.
    step = moved[0] - before[0]
    assert torch.equal(step.sign(), -gradient.sign())


@pytest.mark.parametrize("weighter", ["single-task", "factored"])
def test_micro_batches_change_nothing(options: dict[str, Any], weighter: str) -> None:
    """The end task's loss in the first step, and the model after three of the end task alone."""
    found = []
    for more in ({}, {"micro_batch_size": 3}):
        given = {**options, "dropout": 0.0, "class_weights": "balanced", "weighter": weighter}
        _, _, trainer, modules, records = build({**given, **more}, steps=3)
        trainer.train()
        found.append((records.weights, {k: v.clone() for k, v in _tensors(modules).items()}))
    (one, model), (two, other) = found
    assert two[0]["losses"]["end-task"] == pytest.approx(one[0]["losses"]["end-task"], rel=1e-5)
    if weighter == "single-task":
        for name, value in model.items():
            torch.testing.assert_close(other[name], value, rtol=1e-3, atol=2e-5)


def _tensors(modules: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    return {
        f"{name}.{key}": value
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }


def test_classes_come_equally_often_and_rows_of_a_class_too() -> None:
    strata = torch.tensor([0] * 40 + [1] * 8 + [2] * 2)
    order, generator = BalancedOrder(strata), torch.Generator().manual_seed(1)
    taken = torch.cat([order.take(n, generator) for n in (7, 32, 1, 20)])
    assert Counter(strata[taken].tolist()) == {0: 20, 1: 20, 2: 20}
    counts = Counter(taken.tolist())
    assert all(counts[row] == 10 for row in (48, 49))
    assert {counts[row] for row in range(40, 48)} == {2, 3}
    assert all(counts[row] <= 1 for row in range(40))
    saved, state = order.state_dict(), generator.get_state()
    expected = [order.take(9, generator).tolist() for _ in range(9)]
    again = BalancedOrder(strata)
    again.load_state_dict(saved)
    generator.set_state(state)
    assert [again.take(9, generator).tolist() for _ in range(9)] == expected


def test_balanced_rows_go_on_from_a_checkpoint(options: dict[str, Any], tmp_path: Path) -> None:
    given = {**options, "balanced_rows": True, "dev_head": "drawn", "dev_head_rows": 9}
    assembly = assert_goes_on(given, tmp_path / "checkpoint", rounds=6, at=3)
    assert assembly.end_task.strata is not None
    assert assembly.meta.strata is None


def test_a_run_shows_both_in_its_records_and_its_report(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    from aang_plugin_report.page import tables_of

    options = [*train_options, "--weighter", "single-task", "--steps", 2, "--eval-every", 1]
    for option, fact in (
        (["--class-weights", "balanced"], "class weights"),
        (["--class-weights", "xml=2.5", "--balanced-rows"], "end-task rows"),
    ):
        out = tmp_path / fact.replace(" ", "-")
        done = aang("train", *options, *option, "--out", out)
        assert done.status == 0, done.err
        assert ("weights  " if fact == "class weights" else "rows  ") in done.err
        run = Run.open(out)
        assert f"<dt>{fact}</dt>" in (out / "report.html").read_text(encoding="utf-8")
        (table,) = (t for t in tables_of(run) if t.title == "Examples by class")
        assert table.header[-1] == "weight in the loss"
        data = json.loads((out / "data.json").read_text(encoding="utf-8"))
        assert min(data["class_weights"].values()) == 1.0
        assert data.get("balanced_rows", False) == ("--balanced-rows" in option)
    assert data["class_weights"]["xml"] == 2.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--class-weights", "xlm=2"], "there is no class 'xlm'; did you mean xml?"),
        (["--class-weights", "xml"], "NAME=WEIGHT"),
        (["--class-weights", "xml=0"], "a number above zero"),
        (["--class-weights", "xml=nan"], "a number above zero"),
        (["--class-weights", "balanced", "--class-weights", "xml=2"], "NAME=WEIGHT"),
        (["--class-weights", "xml=1", "--class-weights", "xml=2"], "given twice"),
        (["--class-weights", "balanced", "--balanced-rows"], "give one of them"),
    ],
)
def test_bad_input(aang: Aang, train_options: list[object], given: list[str], said: str) -> None:
    done = aang("train", *train_options, *given, "--dry-run")
    assert done.status == 2
    assert said in done.err


def test_other_kinds_of_end_task_are_refused_by_name(options: dict[str, Any]) -> None:
    from tests.support.runs import class_weights, strata

    config, assembly, _, _, _ = build(options, class_weights="balanced", weighter="single-task")
    rows = assembly.end_task.rows
    assert rows.labels is not None
    rows.labels = rows.labels.float()
    with pytest.raises(ConfigError, match="--class-weights: is for end tasks with one class"):
        class_weights(config, ["a"], rows)
    with pytest.raises(ConfigError, match="--balanced-rows: is for end tasks with one class"):
        strata(config.model_copy(update={"balanced_rows": True}), rows)


def test_without_either_nothing_is_carried(options: dict[str, Any]) -> None:
    _, assembly, _, _, _ = build(options, weighter="single-task")
    end: EndTask = assembly.end_task
    assert end.strata is None
    assert set(end.batch(torch.arange(2), torch.Generator()).targets) == {"labels"}
