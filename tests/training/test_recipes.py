"""The papers' baselines by name: continued pre-training in stages, and fixed choices of options."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aang import Run
from safetensors.torch import load_file
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from transformers import AutoModelForMaskedLM
from transformers.models.bert.modeling_bert import BertEmbeddings

from tests.training.conftest import Aang


@pytest.fixture(scope="session")
def train_options(train_options: list[object]) -> list[object]:
    """Without a space, which would override that of a recipe."""
    place = train_options.index("--space")
    return train_options[:place] + train_options[place + 2 :]


def result_of(run: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return result


def body_of(folder: Path) -> dict[str, torch.Tensor]:
    """The encoder's tensors in a model folder, whatever head is on it."""
    tensors = load_file(folder / "model.safetensors")
    return {name: t for name, t in tensors.items() if ".encoder." in name}


def test_stages_are_chained(
    aang: Aang, train_options: list[object], domain: list[object], tmp_path: Path
) -> None:
    """DAPT, then TAPT from where DAPT ended, then fine-tuning from where TAPT ended."""
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, *domain, "--recipe", "dapt+tapt", "--out", run),
        *("--set", "dapt.steps=20", "--set", "dapt.eval_every=10", "--set", "dapt.lr=0.01"),
        # A rate at which nothing moves, so that where a stage begins can be told.
        *("--set", "tapt.lr=1e-12", "--set", "tapt.steps=2", "--lr", "1e-12", "--head-lr", "0.01"),
    )
    assert done.status == 0, done.err
    result = result_of(run)
    assert result["recipe"] == "dapt+tapt"
    assert result["weighter"] == "single-task"
    stages = result["pretraining"]
    assert list(stages) == ["dapt", "tapt"]
    assert stages["dapt"]["steps"] == 20
    assert stages["tapt"]["steps"] == 2
    assert stages["dapt"]["texts"] == {"train": 72, "held_out": 8}
    likelihood = stages["dapt"]["log-likelihood"]
    assert likelihood["after"] > likelihood["before"] + 0.05
    assert "note" not in stages["dapt"]
    assert set(stages["dapt"]["accuracy"]) == {"before", "after"}
    dapt, tapt = (body_of(run / stages[name]["model"]) for name in ("dapt", "tapt"))
    assert dapt
    for name, tensor in body_of(run / "model").items():
        torch.testing.assert_close(tensor, dapt[name], rtol=0, atol=1e-6)
        torch.testing.assert_close(tensor, tapt[name], rtol=0, atol=1e-6)
    saved = AutoModelForMaskedLM.from_pretrained(run / stages["tapt"]["model"])
    assert saved.config.architectures == ["BertForMaskedLM"]
    steps = (run / "pretraining" / "dapt" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in steps] == [0, 10, 20]


def test_contrast_follows_a_stage(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    """The stage has steps of its own; what is given about it leaves the rest of the recipe."""
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--recipe", "tapt+contrast", "--out", run),
        *("--set", "tapt.steps=3", "--steps", 2),
    )
    assert done.status == 0, done.err
    result = result_of(run)
    assert result["pretraining"]["tapt"]["steps"] == 3
    assert (result["weighter"], result["space"]) == ("static", "contrast")
    lines = (run / "weights.jsonl").read_text().splitlines()
    assert [json.loads(line)["end_task_weight"] for line in lines] == [0.5, 0.5]


def test_every_row_that_the_encoder_trains_on_is_counted(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Those of pre-training, of the main training, and of the final fine-tuning."""
    seen = 0

    def count(module: nn.Module, _: object, output: torch.Tensor) -> None:
        nonlocal seen
        if isinstance(module, BertEmbeddings) and module.training:
            seen += len(output)

    run = tmp_path / "run"
    counting = register_module_forward_hook(count)
    try:
        done = aang(
            *("train", *train_options, "--recipe", "tapt", "--out", run, "--final-fine-tuning", 2),
            *("--set", "tapt.steps=3", "--set", "tapt.batch_size=5"),
        )
    finally:
        counting.remove()
    assert done.status == 0, done.err
    outcome = Run.open(run).outcome
    assert outcome.pretraining["tapt"].body_rows == 15
    assert outcome.body_rows == 48
    assert outcome.all_body_rows == seen == 15 + 48 + 2 * 96


def test_a_stage_trains_all_its_steps_and_keeps_the_last_state(
    aang: Aang, train_options: list[object], encoder: Path, tmp_path: Path
) -> None:
    """Even at a harmful learning rate: keeping the untrained model would not be pre-training."""
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--recipe", "tapt", "--out", run),
        *("--set", "tapt.steps=12", "--set", "tapt.eval_every=1"),
        *("--set", "tapt.lr=3.0", "--set", "tapt.head_lr=3.0"),
    )
    assert done.status == 0, done.err
    stage = result_of(run)["pretraining"]["tapt"]
    assert stage["best_step"] == 0
    assert stage["steps"] == 12
    assert stage["log-likelihood"]["after"] < stage["log-likelihood"]["before"]
    assert "made held-out text less likely" in stage["note"]
    assert stage["note"] in done.err
    before, after = body_of(encoder), body_of(run / stage["model"])
    assert all(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("recipe", "n", "end_task_weight"), [("static-td", 3, 0.5), ("multitask", 24, 1 / 25)]
)
def test_static_td_samples_and_multitask_trains_all(
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    recipe: str,
    n: int,
    end_task_weight: float,
) -> None:
    """AANG's Static Multitask-TD (section 7.3) and MT-TARTAN (TARTAN, section 3.1)."""
    run = tmp_path / recipe
    done = aang("train", *train_options, "--recipe", recipe, "--steps", 2, "--out", run)
    assert done.status == 0, done.err
    for line in (run / "weights.jsonl").read_text().splitlines():
        coefficients = json.loads(line)["coefficients"]
        assert coefficients.pop("end-task") == pytest.approx(end_task_weight)
        assert len(coefficients) == n
        for coefficient in coefficients.values():
            assert coefficient == pytest.approx((1 - end_task_weight) / n)


@pytest.mark.parametrize(
    ("recipe", "weighter", "objectives"),
    [
        ("static-td", "static", 24),
        ("gpt-style", "meta-tartan", 1),
        ("xlnet-style", "meta-tartan", 1),
        ("bert-style", "meta-tartan", 1),
        ("x+y+z", "factored", 3),
    ],
)
def test_choices_of_options(
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    recipe: str,
    weighter: str,
    objectives: int,
) -> None:
    run = tmp_path / "run"
    done = aang("train", *train_options, "--recipe", recipe, "--steps", 2, "--out", run)
    assert done.status == 0, done.err
    result = result_of(run)
    assert result["weighter"] == weighter
    assert result["objectives"] == objectives


def test_pre_training_needs_no_other_weighter_than_the_cores_own(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = aang(
        *("--disable-plugin", "tartan", "train", *train_options, "--out", run),
        *("--recipe", "tapt", "--set", "tapt.steps=2", "--weighter", "factored"),
        *("--space", "tapt", "--steps", 2),
    )
    assert done.status == 0, done.err
    result = result_of(run)
    assert result["weighter"] == "factored"
    assert list(result["pretraining"]) == ["tapt"]


def test_the_default_needs_a_plugin_and_says_which(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = aang("--disable-plugin", "contrast", "train", *train_options, "--out", run)
    assert done.status == 2
    assert "aang-plugin-contrast is disabled. It is what aang train does by default" in done.err
    assert not run.exists()


def test_options_override_a_recipe(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--recipe", "multitask", "--space", "tapt"),
        *("--set", "static.end_task_weight=0.25", "--steps", 1, "--out", run),
    )
    assert done.status == 0, done.err
    (line,) = (run / "weights.jsonl").read_text().splitlines()
    assert json.loads(line)["end_task_weight"] == 0.25


BAD: dict[str, tuple[Callable[[Path], list[object]], list[str]]] = {
    "no such recipe": (lambda d: ["--recipe", "tap"], ["no recipe tap", "did you mean"]),
    "no such option of a stage": (
        lambda d: ["--recipe", "tapt", "--set", "tapt.epochs=3"],
        ["--set tapt.epochs", "eval_every"],
    ),
    "early stopping of a stage": (
        lambda d: ["--recipe", "tapt", "--set", "tapt.patience=3"],
        ["--set tapt.patience", "eval_every"],
    ),
    "a stage that the recipe has not": (
        lambda d: ["--recipe", "tapt", "--set", "dapt.steps=3"],
        ["--set dapt"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(aang: Aang, train_options: list[object], tmp_path: Path, case: str) -> None:
    options, names = BAD[case]
    run = tmp_path / "run"
    done = aang("train", *train_options, "--out", run, *options(tmp_path))
    assert done.status == 2
    for name in names:
        assert name in done.err
    assert not run.exists()


@pytest.mark.parametrize("recipe", ["dapt", "dapt+tapt"])
def test_domain_data_is_asked_for_before_anything_is_written(
    aang: Aang, train_options: list[object], tmp_path: Path, recipe: str
) -> None:
    run = tmp_path / "run"
    done = aang("train", *train_options, "--recipe", recipe, "--out", run)
    assert done.status == 2
    assert "--domain" in done.err
    assert not run.exists()
