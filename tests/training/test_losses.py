"""Losses: in training, in both engines, over trials, skipped steps and restarts; and on dev."""

import statistics
from pathlib import Path
from typing import Any

import pytest
import torch
from aang import Run
from torch import nn
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from aang_core import TensorTask, fit
from tests.support.training import LossMeans, load_checkpoint, save_checkpoint
from tests.training.conftest import Aang
from tests.training.launching import lines
from tests.training.trainers import build

ROWS = 12


def tasks() -> tuple[nn.Module, list[TensorTask]]:
    torch.manual_seed(5)
    inputs = torch.randn(ROWS, 4, dtype=torch.float64)
    body = nn.Linear(4, 6).double()
    found = []
    for i, name in enumerate(("end", "a", "b")):
        head = nn.Linear(6, 2).double()
        targets = (inputs[:, i] > 0).long()
        loss = nn.CrossEntropyLoss(reduction="none")
        found.append(TensorTask(name, head, {"input": inputs}, targets, loss))
    return body, found


@pytest.mark.parametrize("gradients", ["stream", "packed"])
@pytest.mark.parametrize("weighter", ["single-task", "static", "factored", "alpha-vil", "pcgrad"])
def test_the_first_loss_is_that_of_the_untrained_model(gradients: Any, weighter: str) -> None:
    """A step over all rows of each task has the mean loss over all of them, before the update."""
    body, (end, *others) = tasks()
    with torch.no_grad():
        expected = {
            task.name: float(
                functional.cross_entropy(task.head(body(task.inputs["input"])), task.targets)
            )
            for task in (end, *others)
        }
    options = {"factored": {"n": 2}, "static": {"n": 2}}.get(weighter, {})
    result = fit(
        *(body, end, others),
        dev=end,
        evaluate=lambda: {"accuracy": 0.5},
        weighter=weighter,
        options=options,
        steps=6,
        batch_size=ROWS,
        aux_batch_size=2 * ROWS,
        gradients=gradients,
    )
    losses = result.history[0]["losses"]
    if weighter == "alpha-vil":
        # Its round is one of trials, each of which starts from the same parameters.
        assert losses.keys() == expected.keys()
        return
    assert losses == pytest.approx({name: expected[name] for name in losses}, abs=1e-12)
    assert losses.keys() == ({"end"} if weighter == "single-task" else expected.keys())
    assert next(iter(losses)) == "end"


def test_micro_batches_agree(options: dict[str, Any]) -> None:
    lines = []
    for more in ({}, {"micro_batch_size": 3}):
        alone = {"dropout": 0.0, "weighter": "single-task"}
        _, _, trainer, _, records = build({**options, **alone}, **more)
        trainer.train()
        lines.append([line["losses"] for line in records.weights])
    for one, two in zip(*lines, strict=True):
        assert two == pytest.approx(one, rel=1e-4)
        assert one.keys() == {"end-task"}


def test_an_evaluation_has_the_mean_since_the_one_before(options: dict[str, Any]) -> None:
    _, _, trainer, _, records = build(options, steps=6, eval_every=3)
    trainer.train()
    assert records.losses[0] == {}
    for i, found in enumerate(records.losses[1:]):
        means = LossMeans()
        for line in records.weights[3 * i : 3 * i + 3]:
            means.add(line["losses"])
        assert found == means.means()
        assert "end-task" in found


def test_the_mean_survives_a_restart(options: dict[str, Any], tmp_path: Path) -> None:
    """A checkpoint in the middle of an interval holds the steps since the last evaluation."""

    class At:
        def reached(self, trainer: Any) -> None:
            if trainer.bench.steps == 4:
                save_checkpoint(tmp_path / "checkpoint", trainer)

        def save(self, trainer: Any) -> None:
            raise AssertionError("no round fails")

    _, _, trainer, _, records = build(options, steps=6, eval_every=3)
    trainer.boundary = At()
    trainer.train()
    _, _, again, _, rest = build(options, steps=6, eval_every=3, seed=99)
    load_checkpoint(tmp_path / "checkpoint", again)
    again.train()
    assert rest.losses == records.losses[-1:]
    assert rest.weights == records.weights[4:]


def test_means_go_on_from_a_saved_state() -> None:
    """Of (1 + 2) / 2 and one more step of 6 comes 3, not 4.5."""
    before, after = LossMeans(), LossMeans()
    before.add({"end": 1.0})
    before.add({"end": 2.0, "a": 5.0})
    after.load_state_dict(before.state_dict())
    after.add({"end": 6.0})
    assert after.means() == {"end": 3.0, "a": 5.0}


def test_steps_without_targets_have_no_loss() -> None:
    """A text of ten tokens often has none selected, which is no loss of zero."""
    losses = LossMeans()
    for loss in (2.0, 0.0, 4.0):
        losses.add({"a": loss, "b": 0.0})
    assert losses.means() == {"a": 3.0, "b": 0.0}


def test_a_skipped_step_has_no_loss(options: dict[str, Any]) -> None:
    _, assembly, trainer, _, records = build(options, steps=3, eval_every=1, on_nan="skip")
    own, calls = assembly.end_task.losses, []

    def losses(*arguments: Any) -> Any:
        found = own(*arguments)
        calls.append(trainer.bench.steps)
        return found._replace(sums=found.sums * float("nan")) if calls[-1] == 1 else found

    assembly.end_task.losses = losses  # type: ignore[method-assign]
    trainer.train()
    assert [bool(line["losses"]) for line in records.weights] == [True, False, True]
    assert [bool(line) for line in records.losses] == [False, True, False, True]


def test_the_loss_on_dev_is_that_of_transformers(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """The saved model, which is that of the best step, has the loss recorded there."""
    out = tmp_path / "run"
    more = ["--space", "task/no-op/bidirectional/denoise", "--precision", "fp32", "--quiet"]
    assert aang("train", *train_options, *more, "--out", out).status == 0
    run = Run.open(out)
    model = AutoModelForSequenceClassification.from_pretrained(run.model_folder)
    tokenizer = AutoTokenizer.from_pretrained(run.model_folder)
    rows = lines(task_files / "dev.jsonl")
    texts = [row["text"] for row in rows]
    inputs = tokenizer(texts, truncation=True, max_length=48, padding=True, return_tensors="pt")
    labels = torch.tensor([model.config.label2id[row["label"]] for row in rows])
    with torch.inference_mode():
        expected = float(model(**inputs, labels=labels).loss)
    best = run.outcome.best_step
    assert run.metrics.loc[best, "loss"] == pytest.approx(expected, rel=1e-5)


def test_the_loss_of_numbers_is_in_units_of_their_spread(
    aang: Aang, encoder: Path, kind_files: Path, tmp_path: Path
) -> None:
    """It is the squared RMSE over the variance of the training labels."""
    out, folder = tmp_path / "run", kind_files / "regression"
    command = ["train", "--train", folder / "train.jsonl", "--dev", folder / "dev.jsonl"]
    command += ["--model", encoder, "--max-length", 32, "--steps", 2, "--eval-every", 1, "--quiet"]
    assert (
        aang(*command, "--weighter", "single-task", "--precision", "fp32", "--out", out).status == 0
    )
    variance = statistics.pvariance(row["label"] for row in lines(folder / "train.jsonl"))
    for line in lines(out / "metrics.jsonl"):
        assert line["dev"]["loss"] == pytest.approx(line["dev"]["rmse"] ** 2 / variance, rel=1e-5)
