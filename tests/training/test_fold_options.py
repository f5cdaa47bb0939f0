"""What a run on folds needs: training on dev, too, stopping early on purpose, logits on test."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from aang import Run
from safetensors.torch import load_file

from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.resuming import after_lines, everything, kill

ALONE = ("--weighter", "single-task", "--eval-every", 2, "--quiet")
LOGITS = "test_predictions.jsonl"


def trained(aang: Aang, train_options: list[object], run: Path, *more: object) -> str:
    """Train on the end task alone; what the command printed."""
    done = aang("train", *train_options, *ALONE, *more, "--out", run)
    assert done.status == 0, done.err
    return " ".join(done.out.split())


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def parts_in(folder: Path) -> list[object]:
    parts = ("train", "dev", "test")
    return [option for part in parts for option in (f"--{part}", folder / f"{part}.jsonl")]


def log(run: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / name).read_text(encoding="utf-8").splitlines()]


def test_dev_rows_train_like_the_rows_of_train(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """Every step is that of a run on one file with both parts."""
    both = tmp_path / "both.jsonl"
    both.write_bytes(b"".join((task_files / f"{n}.jsonl").read_bytes() for n in ("train", "dev")))
    weighed = ("--class-weights", "balanced", "--steps", 6)
    run, one_file = tmp_path / "run", tmp_path / "one-file"
    trained(aang, train_options, run, *weighed, "--train-on-dev", "--patience", 1)
    trained(aang, train_options, one_file, *weighed, "--train", both)
    assert (run / "metrics.jsonl").read_bytes() == (one_file / "metrics.jsonl").read_bytes()
    result, data = document(run / "result.json"), document(run / "data.json")
    controls = document(one_file / "result.json")["controls"]
    assert (result["trained_on_dev"], result["best_step"], result["steps"]) == (True, 6, 6)
    assert result["controls"] == controls
    assert [data["parts"][part]["examples"] for part in ("train", "dev")] == [136, 40]
    assert data["class_weights"] == document(one_file / "data.json")["class_weights"]


def test_nothing_calls_scores_of_trained_rows_held_out(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    out = trained(aang, train_options, run, "--steps", 2, "--train-on-dev")
    notes = document(run / "data.json")["notes"]
    assert any("the 40 dev rows are trained on" in note for note in notes)
    assert "The last model is kept. Dev rows were trained on" in out
    assert "dev (trained on)" in out
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert "Dev rows were trained on, too" in card
    assert "validation" not in card
    report = aang("report", run, "--out", tmp_path / "page.html")
    assert report.status == 0, report.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "were trained on: no score of new texts" in page
    assert "best on dev" not in page


def test_a_control_is_not_compared_on_rows_that_were_trained_on(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    few = ("--steps", 1, "--no-test-score")
    assert "ahead of this model on dev" in trained(aang, train_options, tmp_path / "plain", *few)
    out = trained(aang, train_options, tmp_path / "run", *few, "--train-on-dev")
    assert "ahead of this model" not in out


def test_the_first_steps_of_a_longer_run(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """The learning rate falls as for all steps, so every number is the same."""
    options = ("--steps", 8, "--train-on-dev", "--test-predictions")
    trained(aang, train_options, tmp_path / "all", *options)
    out = trained(aang, train_options, tmp_path / "first", *options, "--stop-after", 5)
    assert "The first 5 of 8 steps were trained" in out
    assert document(tmp_path / "first" / "result.json")["steps"] == 5
    for name in (LOGITS, "weights.jsonl"):
        first, whole = (
            {line["step"]: line for line in log(tmp_path / run, name)} for run in ("first", "all")
        )
        assert max(first) == 5
        assert {step: first[step] for step in first if step in whole} == {
            step: whole[step] for step in whole if step <= 5
        }


def test_a_round_of_several_steps_ends_before_training_does(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    rounds = ("--space", "td", "--weighter", "autosem", "--set", "autosem.k=4")
    run = tmp_path / "run"
    trained(aang, train_options, run, *rounds, "--steps", 12, "--stop-after", 6)
    assert document(run / "result.json")["steps"] == 8
    assert log(run, "metrics.jsonl")[-1]["step"] == 8


def test_logits_of_test_change_nothing_and_are_those_of_the_saved_model(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    options = ("--steps", 4, "--train-on-dev", "--dropout", 0.2)
    trained(aang, train_options, tmp_path / "plain", *options)
    run = tmp_path / "run"
    trained(aang, train_options, run, *options, "--test-predictions")
    assert not (tmp_path / "plain" / LOGITS).exists()
    for name in ("metrics.jsonl", "weights.jsonl"):
        assert (run / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    plain, model = (
        load_file(tmp_path / folder / "model" / "model.safetensors") for folder in ("plain", "run")
    )
    assert all(torch.equal(tensor, model[name]) for name, tensor in plain.items())
    lines = log(run, LOGITS)
    assert [line["step"] for line in lines] == [0, 2, 4]
    predicted = Run.open(run).predict(task_files / "test.jsonl")
    labels = document(run / "evaluation.json")["labels"]
    expected = torch.tensor(predicted[[f"P({label})" for label in labels]].to_numpy())
    found = torch.tensor(lines[-1]["logits"], dtype=expected.dtype).softmax(1)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", ["multi-label", "regression"])
def test_logits_of_other_kinds(
    aang: Aang, train_options: list[object], kind_files: Path, tmp_path: Path, kind: str
) -> None:
    run = tmp_path / "run"
    trained(
        aang, train_options, run, *parts_in(kind_files / kind), "--steps", 2, "--test-predictions"
    )
    rows = document(run / "data.json")["parts"]["test"]["examples"]
    shape = torch.tensor(log(run, LOGITS)[-1]["logits"]).shape
    assert len(shape) == 2
    assert shape[0] == rows


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--stop-after", 7), "--stop-after 7 is more than the --steps 6"),
        (("--train-on-dev", "--final-fine-tuning", 2), "--final-fine-tuning keeps"),
        (("--train-on-dev", "--meta-fraction", 0.5), "--meta-fraction reserves dev rows"),
        (("--test-predictions", "--no-test-score"), "the run has no test rows to predict"),
    ],
)
def test_options_that_do_not_go_together(
    aang: Aang, train_options: list[object], tmp_path: Path, options: tuple[object, ...], said: str
) -> None:
    done = aang("train", *train_options, *options, "--out", tmp_path / "run")
    assert done.status != 0
    assert said in " ".join(done.err.split())
    assert not (tmp_path / "run").exists()


def test_labels_of_words_have_no_logits_a_text(
    aang: Aang, train_options: list[object], kind_files: Path, tmp_path: Path
) -> None:
    options = (*train_options, *parts_in(kind_files / "token-labels"), "--test-predictions")
    done = aang("train", *options, "--out", tmp_path / "run")
    assert done.status != 0
    assert "this task labels words" in " ".join(done.err.split())


def test_dev_rows_of_a_class_that_train_lacks(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    dev = tmp_path / "dev.jsonl"
    new = json.dumps({"text": "What is this?", "label": "another"})
    dev.write_text((task_files / "dev.jsonl").read_text(encoding="utf-8") + new + "\n")
    done = aang("train", *train_options, "--dev", dev, "--train-on-dev")
    assert done.status != 0
    assert "1 of the 41 dev rows have a class that train lacks" in " ".join(done.err.split())


@pytest.mark.full
def test_killed_and_resumed(forks: Forks, train_options: list[object], tmp_path: Path) -> None:
    """The log of logits is cut back to the checkpoint, too."""
    command = [
        *("train", *train_options, *ALONE, "--steps", 16, "--stop-after", 12),
        *("--train-on-dev", "--test-predictions", "--checkpoint-every", 0),
    ]
    whole, run = tmp_path / "whole", tmp_path / "run"
    child = forks.aang(*command, "--out", whole)
    assert child.wait() == 0, child.said
    child = forks.aang(*command, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 7))
    kill(child)
    child = forks.aang("train", "--resume", run, "--quiet")
    assert child.wait() == 0, child.said
    assert everything(run) == everything(whole)
    assert (run / LOGITS).read_bytes() == (whole / LOGITS).read_bytes()
