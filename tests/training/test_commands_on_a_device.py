"""Whole commands on an accelerator: what they load is moved there, and what they write is read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import Aang
from tests.training.pretend_device import Elsewhere, pretend_device

ON_IT = ("--device", "cuda", "--precision", "fp32")


def _of_inside(name: str) -> Callable[[Elsewhere], object]:
    return lambda tensor: getattr(tensor.inside, name)()


def test_an_encoder_is_prepared(
    aang: Aang,
    encoder: Path,
    task_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is written are the numbers inside, which have a place in memory.
    for name in ("data_ptr", "untyped_storage"):
        monkeypatch.setattr(Elsewhere, name, _of_inside(name), raising=False)
    preparing = [
        *("prepare-encoder", encoder, "--text", task_files / "domain.txt", "--steps", 4),
        *("--eval-every", 2, "--batch-size", 8, "--max-length", 32, "--lr", 5e-3),
        *("--checkpoint-every", 0),
    ]
    with pretend_device():
        done = aang(*preparing, *ON_IT, "--out", tmp_path / "there")
    assert done.status == 0, done.err
    assert aang(*preparing, "--precision", "fp32", "--out", tmp_path / "here").status == 0
    there, here = (
        json.loads((tmp_path / place / "preparation" / "result.json").read_text())["log-likelihood"]
        for place in ("there", "here")
    )
    assert there["after"] > there["before"]
    assert there == pytest.approx(here, abs=0.1)


def test_a_model_predicts(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert aang("train", *train_options, "--steps", 2, "--out", run).status == 0
    predicting = ["predict", run, "--data", task_files / "test.jsonl"]
    with pretend_device():
        there = aang(*predicting, "--device", "cuda", "--out", tmp_path / "there.jsonl")
    assert there.status == 0, there.err
    assert aang(*predicting, "--device", "cpu", "--out", tmp_path / "here.jsonl").status == 0
    there_and_here = (
        [json.loads(line)["probabilities"] for line in (tmp_path / name).read_text().splitlines()]
        for name in ("there.jsonl", "here.jsonl")
    )
    for one, other in zip(*there_and_here, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_signals_are_measured(aang: Aang, train_options: list[object]) -> None:
    without = list(train_options)
    for name in ("--test", "--eval-every", "--space"):
        at = without.index(name)
        del without[at : at + 2]
    measuring = [
        *("diagnose", "--signal-quality", *without, "--space", "tapt"),
        *("--weighter", "single-task"),
        *("--quality-steps", 4, "--quality-every", 2, "--dev-head-rows", 16, "--json"),
    ]
    with pretend_device():
        done = aang(*measuring, *ON_IT)
    assert done.status == 0, done.err
    assert "logistic-16" in done.out
