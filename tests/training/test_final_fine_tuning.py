"""The end task alone, from the best model of the search."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.support.runs import final_fine_tuning
from tests.training.conftest import Aang


def tuned(
    aang: Aang, train_options: list[object], run: Path, *more: object
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """``result.json``, and the lines of the fine-tuning's log."""
    done = aang("train", *train_options, "--space", "x+y+z", *more, "--out", run)
    assert done.status == 0, done.err
    log = run / "final-fine-tuning" / "metrics.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return json.loads((run / "result.json").read_text()), [json.loads(line) for line in lines]


def test_a_model_that_does_not_get_better_is_kept_as_it_was(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """At 1e-6 a few epochs change no answer, and after three of them it stops."""
    few = ("--train-rows", 24, "--steps", 2, "--eval-every", 2)
    plain, _ = tuned(aang, train_options, tmp_path / "plain", *few)
    result, lines = tuned(aang, train_options, tmp_path / "run", *few, "--final-fine-tuning", 9)
    found = result["final_fine_tuning"]
    scores = {part: plain["metric"][part] for part in ("dev", "test")}
    assert found.pop("train_seconds") > 0
    assert found == {
        "epochs": 3,
        "best_epoch": 0,
        "kept": False,
        "before": scores,
        "after": scores,
        "body_rows": 9 * 8,
    }
    assert result["metric"] == plain["metric"]
    assert result["steps"] == plain["steps"]
    # 24 training rows, 8 a step.
    assert [line["step"] for line in lines] == [0, 3, 6, 9]
    models = [load_file(tmp_path / run / "model" / "model.safetensors") for run in ("plain", "run")]
    for name, tensor in models[0].items():
        assert torch.equal(tensor, models[1][name])


def test_a_better_one_is_kept_and_both_scores_are_told(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a search at a rate at which nothing is learned, and at a rate that learns."""
    monkeypatch.setattr(final_fine_tuning, "LEARNING_RATE", 3e-3)
    result, lines = tuned(
        *(aang, train_options, tmp_path / "run", "--final-fine-tuning", 6),
        *("--lr", 1e-12, "--head-lr", 1e-12, "--dropout", 0.0),
    )
    found = result["final_fine_tuning"]
    best = max(lines, key=lambda line: line["dev"]["macro-f1"])
    assert found["kept"]
    assert found["best_epoch"] == best["step"] // 12
    assert found["after"]["dev"] == best["dev"]["macro-f1"] > found["before"]["dev"]
    assert found["after"] == {part: result["metric"][part] for part in ("dev", "test")}
    assert found["before"]["dev"] == lines[0]["dev"]["macro-f1"]


def test_bad_input(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = aang("train", *train_options, "--final-fine-tuning", 0, "--out", run)
    assert done.status == 2
    assert "--final-fine-tuning" in done.err
    assert not run.exists()
