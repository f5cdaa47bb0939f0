"""Weights that a model's folder lacks: never random without being asked for."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from tests.training.conftest import Aang


@pytest.fixture
def with_names(encoder: Path, tmp_path: Path) -> Callable[[Callable[[str], str | None]], Path]:
    """The encoder with other names of its weights; a weight without a name is left out."""

    def renamed(new: Callable[[str], str | None]) -> Path:
        folder = shutil.copytree(encoder, tmp_path / "renamed")
        weights: dict[str, Tensor] = load_file(folder / "model.safetensors")
        kept = {new(name): value for name, value in weights.items()}
        save_file({k: v for k, v in kept.items() if k}, folder / "model.safetensors")
        return folder

    return renamed


def test_an_encoder_with_renamed_weights_is_refused(
    aang: Aang,
    train_options: list[object],
    with_names: Callable[[Callable[[str], str | None]], Path],
    tmp_path: Path,
) -> None:
    """The message counts and names them; --allow-missing-weights trains nevertheless."""
    folder = with_names(lambda name: name.replace("attention.self.query", "attention.self.q"))
    run = tmp_path / "run"
    options = ["train", *train_options, "--model", folder, "--steps", 1, "--out", run]
    done = aang(*options)
    assert done.status == 2
    assert f"--model {folder}: 4 of the 37 weights of the encoder" in done.err
    assert "bert.encoder.layer.0.attention.self.query.bias" in done.err
    assert not run.exists()
    done = aang(*options, "--allow-missing-weights", "--lora", 2)
    assert done.status == 2
    assert "--allow-missing-weights makes them at random" in done.err
    done = aang(*options, "--allow-missing-weights")
    assert done.status == 0, done.err


def test_preparing_such_an_encoder_is_refused(
    aang: Aang,
    task_files: Path,
    with_names: Callable[[Callable[[str], str | None]], Path],
    tmp_path: Path,
) -> None:
    folder = with_names(lambda name: None if "layer.1." in name else name)
    text = task_files / "domain.txt"
    done = aang("prepare-encoder", folder, "--text", text, "--out", tmp_path / "out", "--steps", 1)
    assert done.status == 2
    assert "16 of the 37 weights of the encoder are not in its folder" in done.err
    assert not (tmp_path / "out").exists()


def test_a_missing_language_model_head_and_pooler_are_no_error(
    aang: Aang,
    train_options: list[object],
    with_names: Callable[[Callable[[str], str | None]], Path],
    tmp_path: Path,
) -> None:
    """One line says that the head is missing."""
    folder = with_names(lambda name: name if name.startswith("bert.") else None)
    run = tmp_path / "run"
    done = aang("train", *train_options, "--model", folder, "--steps", 1, "--out", run)
    assert done.status == 0, done.err
    assert [line for line in done.err.splitlines() if "has no language-model head" in line]
    assert not any("pooler" in name for name in load_file(folder / "model.safetensors"))


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_an_encoder_does_not_predict(
    aang: Aang, encoder: Path, task_files: Path, command: str
) -> None:
    texts = ["a text"] if command == "predict" else ["--data", task_files / "test.jsonl"]
    done = aang(command, encoder, *texts)
    assert done.status == 2
    assert f"{encoder}: has no trained classification head" in done.err
    assert "classifier.weight" in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("auto", "lacking", "told"),
    [
        (AutoModelForSequenceClassification, "classifier.bias", "has no trained classification"),
        (AutoModelForTokenClassification, "classifier.weight", "has no trained classification"),
        (
            AutoModelForSequenceClassification,
            "bert.encoder.layer.1.output.dense.bias",
            "weights of the classifier are not in its folder",
        ),
    ],
)
def test_a_classifier_that_lacks_a_weight_does_not_predict(
    aang: Aang, encoder: Path, tmp_path: Path, auto: type, lacking: str, told: str
) -> None:
    """Whole, the same folder predicts."""
    folder = shutil.copytree(encoder, tmp_path / "classifier")
    auto.from_pretrained(encoder, num_labels=3).save_pretrained(folder)  # type: ignore[attr-defined]
    assert aang("predict", folder, "a text").status == 0
    weights = load_file(folder / "model.safetensors")
    del weights[lacking]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    done = aang("predict", folder, "a text")
    assert done.status == 2
    assert f"{folder}: {told}" in done.err
    assert lacking in done.err
    assert done.out == ""


def test_a_run_whose_model_lost_its_head_does_not_predict(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert aang("train", *train_options, "--steps", 1, "--out", run).status == 0
    done = aang("predict", run, "a text")
    assert json.loads(done.out)["predicted"]
    path = run / "model" / "model.safetensors"
    weights = {k: v for k, v in load_file(path).items() if not k.startswith("classifier")}
    save_file(weights, path, metadata={"format": "pt"})
    (run / "model.json").unlink()  # the checksums of the model that it had
    done = aang("predict", run, "a text")
    assert done.status == 2
    assert "has no trained classification head" in done.err
