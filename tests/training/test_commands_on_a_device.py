"""Whole commands on an accelerator: what they load is moved there, and what they write is read."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from benchmarks.signal_quality import plugin
from tests.training.conftest import Aang
from tests.training.pretend_device import Elsewhere, pretend_device

ON_IT = ("--device", "cuda", "--precision", "fp32")

OFTEN = [
    ("--recipe", "contrast"),
    ("--recipe", "tapt", "--set", "tapt.steps=2", "--set", "tapt.batch_size=8"),
]
SELDOM = [
    ("--recipe", "aang-td", "--scale-rows", 0.1),
    ("--weighter", "factored", "--space", "td", "--gradients", "packed"),
    ("--weighter", "factored", "--space", "td", "--dev-head-fit", "logistic", "--task-clip", 1),
    ("--recipe", "contrast", "--final-fine-tuning", 2),
    ("--recipe", "contrast", "--lora", 4),
    ("--weighter", "alpha-vil", "--space", "tapt", "--set", "alpha-vil.n=1"),
    ("--weighter", "meta-tartan", "--space", "tapt"),
    ("--weighter", "forkmerge", "--space", "td"),
]


@contextmanager
def device() -> Iterator[None]:
    """A pretended device that a whole command finds, asks for its memory and saves models from."""
    save = PreTrainedModel.save_pretrained

    def saved(*args: Any, **named: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            # What is written are the numbers inside, which have a place in memory.
            for name in ("data_ptr", "untyped_storage"):
                patch.setattr(Elsewhere, name, _of_inside(name), raising=False)
            save(*args, **named)

    with pretend_device(), pytest.MonkeyPatch.context() as patch:
        properties = SimpleNamespace(total_memory=2**36)
        patch.setattr(torch.cuda, "get_device_properties", lambda device=None: properties)
        patch.setattr(torch.cuda, "max_memory_allocated", lambda device=None: 2**30)
        patch.setattr(PreTrainedModel, "save_pretrained", saved)
        yield


def without(options: Sequence[object], *names: str) -> list[object]:
    """The options without some, each of which has a value."""
    kept = list(options)
    for name in names:
        at = kept.index(name)
        del kept[at : at + 2]
    return kept


def _of_inside(name: str) -> Callable[[Elsewhere], object]:
    return lambda tensor: getattr(tensor.inside, name)()


@pytest.mark.parametrize(
    "options",
    [*OFTEN, *(pytest.param(options, marks=pytest.mark.full) for options in SELDOM)],
    ids=lambda options: " ".join(map(str, options)),
)
def test_a_model_is_trained_and_predicts(
    aang: Aang,
    train_options: list[object],
    task_files: Path,
    tmp_path: Path,
    options: tuple[object, ...],
) -> None:
    run = tmp_path / "run"
    asked = [*without(train_options, "--space"), "--steps", 2, "--eval-every", 1]
    predicting = ["predict", run, "--data", task_files / "test.jsonl"]
    with device():
        done = aang("train", *asked, *options, *ON_IT, "--out", run)
        assert done.status == 0, done.err
        there = aang(*predicting, "--device", "cuda", "--out", tmp_path / "there.jsonl")
    assert there.status == 0, there.err
    assert aang(*predicting, "--device", "cpu", "--out", tmp_path / "here.jsonl").status == 0
    there_and_here = (
        [json.loads(line)["probabilities"] for line in (tmp_path / name).read_text().splitlines()]
        for name in ("there.jsonl", "here.jsonl")
    )
    for one, other in zip(*there_and_here, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_an_encoder_is_prepared(
    aang: Aang, encoder: Path, task_files: Path, tmp_path: Path
) -> None:
    preparing = [
        *("prepare-encoder", encoder, "--text", task_files / "domain.txt", "--steps", 4),
        *("--eval-every", 2, "--batch-size", 8, "--max-length", 32, "--lr", 5e-3),
        *("--checkpoint-every", 0),
    ]
    with device():
        done = aang(*preparing, *ON_IT, "--out", tmp_path / "there")
    assert done.status == 0, done.err
    assert aang(*preparing, "--precision", "fp32", "--out", tmp_path / "here").status == 0
    there, here = (
        json.loads((tmp_path / place / "preparation" / "result.json").read_text())["log-likelihood"]
        for place in ("there", "here")
    )
    assert there["after"] > there["before"]
    assert there == pytest.approx(here, abs=0.1)


@pytest.mark.full
def test_signals_are_measured(aang: Aang, train_options: list[object]) -> None:
    asked = without(train_options, "--test", "--eval-every", "--space")
    measuring = [
        *("--plugin", plugin.__file__, "signal-quality", *asked, "--space", "tapt"),
        *("--weighter", "single-task"),
        *("--quality-steps", 4, "--quality-every", 2, "--dev-head-rows", 16, "--json"),
    ]
    with device():
        done = aang(*measuring, *ON_IT)
    assert done.status == 0, done.err
    assert "logistic-16" in done.out
