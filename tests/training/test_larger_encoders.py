"""Adapters, frozen layers and newer architectures, from the command line to a plain folder."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    pipeline,
)

from tests.training.conftest import Aang

TEXTS = ["The event loop runs tasks.", "Return the message's headers as bytes."]


@pytest.fixture(scope="session")
def encoders(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small models with the shapes of ModernBERT-base, DeBERTa-v3 and others, and a real
    tokenizer."""
    folder = tmp_path_factory.mktemp("encoders")
    size: dict[str, Any] = {
        "vocab_size": len(AutoTokenizer.from_pretrained(encoder)),
        **{"hidden_size": 32, "num_attention_heads": 2, "max_position_embeddings": 64},
        **{"intermediate_size": 48, "pad_token_id": 0},
    }
    shapes: dict[str, dict[str, Any]] = {
        # Global attention in every third layer, local attention in the others.
        "modernbert": {
            **{"num_hidden_layers": 4, "local_attention": 8},
            **{"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3},
        },
        "deberta-v2": {
            **{"num_hidden_layers": 2, "relative_attention": True, "position_biased_input": False},
            **{"pos_att_type": ["p2c", "c2p"], "position_buckets": 16, "type_vocab_size": 0},
            **{"share_att_key": True, "norm_rel_ebd": "layer_norm"},
        },
        "albert": {"num_hidden_layers": 2, "embedding_size": 16},
        "fnet": {"num_hidden_layers": 2},
        "longformer": {"num_hidden_layers": 2, "attention_window": [4, 4]},
    }
    torch.manual_seed(0)
    for name, shape in shapes.items():
        config = AutoConfig.for_model(name, **size, **shape)
        AutoModelForMaskedLM.from_config(config).save_pretrained(folder / name)
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        if name == "modernbert":  # which knows no types of tokens
            tokenizer.model_input_names = ["input_ids", "attention_mask"]
        tokenizer.save_pretrained(folder / name)
    return {name: folder / name for name in shapes}


@pytest.mark.filterwarnings("ignore:DeBERTa computes its relative positions:UserWarning")
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *(("modernbert", "packed"), ("deberta-v2", "stream")),
        pytest.param("modernbert", "stream", marks=pytest.mark.full),
        pytest.param("deberta-v2", "packed", marks=pytest.mark.full),
        pytest.param("albert", "packed", marks=pytest.mark.full),
        pytest.param("albert", "stream", marks=pytest.mark.full),
    ],
)
def test_td_trains_it_and_plain_transformers_loads_it(
    aang: Aang,
    encoders: dict[str, Path],
    train_options: list[object],
    tmp_path: Path,
    name: str,
    engine: str,
) -> None:
    """The model's predictions are those that the run was scored with."""
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--model", encoders[name], "--gradients", engine),
        *("--set", "factored.n=8", "--out", run),
    )
    assert done.status == 0, done.err
    steps = map(json.loads, (run / "weights.jsonl").read_text(encoding="utf-8").splitlines())
    cosines = [step["cosines"] for step in steps if "cosines" in step]
    assert cosines
    assert all(any(value != 0 for value in step.values()) for step in cosines)
    classify = pipeline("text-classification", model=str(run / "model"))
    assert type(classify.model).__name__.endswith("ForSequenceClassification")
    assert len(classify(TEXTS)) == 2
    scored = aang("evaluate", run, "--data", train_options[5], "--json")
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    test = json.loads(scored.out)["scores"]["macro-f1"]
    assert test == pytest.approx(result["metric"]["test"])


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_a_run_with_adapters(
    aang: Aang,
    encoder: Path,
    train_options: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``model`` needs no peft, ``adapter`` goes on the encoder; both predict the same."""
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--lora", 4, "--lora-alpha", 4, "--lora-target", "query"),
        *("--lora-target", "output.dense", "--lr", 3e-3, "--out", run),
    )
    assert done.status == 0, done.err
    assert "adapters of rank 4 on 6 linear layers" in done.err
    described = json.loads((run / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert (described["r"], described["lora_alpha"]) == (4, 4)
    assert sorted(described["target_modules"]) == ["output.dense", "query"]
    base: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(
        encoder,
        num_labels=len(json.loads((run / "evaluation.json").read_text(encoding="utf-8"))["labels"]),
    )
    with_peft = PeftModel.from_pretrained(base, str(run / "adapter")).eval()
    merged = AutoModelForSequenceClassification.from_pretrained(run / "model").eval()
    tokens = AutoTokenizer.from_pretrained(run / "model")(TEXTS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = merged(**tokens).logits
        torch.testing.assert_close(with_peft(**tokens).logits, expected, rtol=1e-4, atol=1e-5)
    # The layers with an adapter have moved, and no other layer.
    before, after = (load_file(place / "model.safetensors") for place in (encoder, run / "model"))
    moved = {
        name.removesuffix(".weight")
        for name, value in after.items()
        if name in before and not torch.equal(value, before[name])
    }
    assert moved == {
        f"bert.encoder.layer.{i}.{name}"
        for i in (0, 1)
        for name in ("attention.self.query", "attention.output.dense", "output.dense")
    }
    monkeypatch.setitem(sys.modules, "peft", None)
    predicted = aang("predict", run, *TEXTS)
    assert predicted.status == 0, predicted.err


def test_stages_of_pre_training_train_adapters_too(
    aang: Aang, encoder: Path, train_options: list[object], tmp_path: Path
) -> None:
    """A stage saves the encoder with its adapters merged, and the fine-tuning begins with new
    ones."""
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--recipe", "tapt", "--lora", 2, "--lr", 1e-2),
        *("--head-lr", 1e-2, "--set", "tapt.steps=3", "--out", run, "--quiet"),
    )
    assert done.status == 0, done.err
    stage, first, last = (
        load_file(place / "model.safetensors")
        for place in (run / "pretraining" / "tapt" / "model", encoder, run / "model")
    )
    query = "bert.encoder.layer.0.attention.self.{}.weight"
    for name, moves in (("query", True), ("value", True), ("key", False)):
        values = [part[query.format(name)] for part in (first, stage, last)]
        assert torch.equal(values[0], values[1]) is not moves
        assert torch.equal(values[1], values[2]) is not moves
    assert not [name for name in stage if "lora" in name]


def test_frozen_layers_keep_their_weights(
    aang: Aang, encoder: Path, train_options: list[object], tmp_path: Path
) -> None:
    """Embeddings and the first layer are those of the encoder, bit for bit."""
    run = tmp_path / "run"
    done = aang("train", *train_options, "--freeze-layers", 1, "--lr", 1e-2, "--out", run)
    assert done.status == 0, done.err
    assert "the embeddings and the first 1 of 2 layers are not trained" in done.err
    before, after = (load_file(place / "model.safetensors") for place in (encoder, run / "model"))
    moved = {n for n, value in after.items() if n in before and not torch.equal(value, before[n])}
    assert moved
    assert all(name.startswith("bert.encoder.layer.1.") for name in moved)


def test_a_mean_layer_is_added_once_after_pre_training(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """The stage trains the encoder as it was, and a training of the run's model has no more."""
    run, again = tmp_path / "run", tmp_path / "again"
    done = aang(
        *("train", *train_options, "--recipe", "tapt", "--mean-layer", "--freeze-layers", 1),
        *("--set", "tapt.steps=2", "--steps", 2, "--eval-every", 2, "--out", run),
    )
    assert done.status == 0, done.err
    assert "a layer is added whose first token begins as the mean" in done.err
    quick = ("--weighter", "single-task", "--steps", 2, "--eval-every", 2)
    done = aang("train", *train_options, *quick, "--model", run / "model", "--out", again)
    assert done.status == 0, done.err
    folders = (run / "pretraining" / "tapt" / "model", run / "model", again / "model")
    layers = [AutoConfig.from_pretrained(folder).num_hidden_layers for folder in folders]
    assert layers == [2, 3, 3]
    predicted = aang("predict", run, *TEXTS, "--label-only")
    classify = pipeline("text-classification", model=str(run / "model"))
    assert predicted.out.split() == [answer["label"] for answer in classify(TEXTS)]


@pytest.mark.parametrize(
    ("pooling", "options", "layers"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, [], 3),
        ({"pooling_mode": "mean"}, [], 3),
        ({"pooling_mode": "mean"}, ["--no-mean-layer"], 2),
        ({"pooling_mode": "mean"}, ["--weighter", "single-task"], 2),
        ({"pooling_mode": "mean"}, ["--lora", 2], 2),
        ({"pooling_mode": "mean"}, ["--from-scratch"], 2),
        ({"pooling_mode": "cls"}, [], 2),
        (None, [], 2),
    ],
)
def test_contrast_gives_sentence_encoders_a_mean_layer(
    aang: Aang,
    encoder: Path,
    train_options: list[object],
    tmp_path: Path,
    pooling: dict[str, Any] | None,
    options: list[object],
    layers: int,
) -> None:
    """Those whose folder says, as sentence-transformers writes it, that the mean is their vector.

    The option, another method, adapters and random weights go before.
    """
    folder = shutil.copytree(encoder, tmp_path / "encoder")
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    run = tmp_path / "run"
    given = [option for option in train_options if option not in ("--space", "td")]
    quick = ("--model", folder, "--steps", 2, "--eval-every", 2, "--no-test-score")
    done = aang("train", *given, *quick, *options, "--out", run)
    assert done.status == 0, done.err
    assert AutoConfig.from_pretrained(run / "model").num_hidden_layers == layers
    assert ("a layer is added whose first token begins as the mean" in done.err) is (layers == 3)


def test_a_damaged_file_about_the_mean_is_told(
    aang: Aang, encoder: Path, train_options: list[object], tmp_path: Path
) -> None:
    folder = shutil.copytree(encoder, tmp_path / "encoder")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("[1]")
    given = [option for option in train_options if option not in ("--space", "td")]
    done = aang("train", *given, "--model", folder, "--out", tmp_path / "run")
    assert done.status == 2
    assert f"--model {folder}: cannot load its 1_Pooling/config.json: " in done.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--lora", 2, "--lora-target", "LayerNorm"], "--lora-target LayerNorm: is LayerNorm"),
        (["--freeze-layers", 2], "--freeze-layers 2: BertModel has 2 layers"),
        (["--lora-target", "query"], "--lora-target goes with --lora;"),
        (["--lora-alpha", 8], "--lora-alpha goes with --lora;"),
        (["--lora", 2, "--from-scratch"], "--lora 2 never trains some of the weights"),
        (["--lora", 2, "--mean-layer"], "--mean-layer: does not go with --lora"),
        (["--lora", 0], "--lora"),
        (["--freeze-layers", -1], "--freeze-layers"),
    ],
)
def test_refused_before_a_folder_is_made(
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    options: list[object],
    reason: str,
) -> None:
    """In one line that says what to do."""
    done = aang("train", *train_options, *options, "--out", tmp_path / "run")
    assert done.status == 2
    assert reason in done.err
    assert not (tmp_path / "run").exists()


def test_a_deberta_with_a_convolution_is_refused(
    aang: Aang, encoders: dict[str, Path], train_options: list[object], tmp_path: Path
) -> None:
    """As deberta-v2-xlarge has one."""
    folder = tmp_path / "encoder"
    shutil.copytree(encoders["deberta-v2"], folder)
    described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(described | {"conv_kernel_size": 3}))
    asked = ("--model", folder, "--allow-missing-weights", "--out", tmp_path / "run")
    done = aang("train", *train_options, *asked)
    assert done.status == 2
    assert "does not take an attention mask" in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fnet", "in FNetModel a token changes others even if the attention mask hides it"),
        ("longformer", "LongformerModel does not take an attention mask with an entry for each"),
    ],
)
def test_an_encoder_that_does_not_keep_to_masks_is_refused(
    aang: Aang,
    encoders: dict[str, Path],
    train_options: list[object],
    tmp_path: Path,
    name: str,
    reason: str,
) -> None:
    """Also if the end task is trained alone, and before a folder is made."""
    asked = ("--model", encoders[name], "--weighter", "single-task", "--out", tmp_path / "run")
    done = aang("train", *train_options, *asked)
    assert done.status == 2
    assert f"Error: --model {encoders[name]}: {reason}" in done.err
    assert not (tmp_path / "run").exists()
