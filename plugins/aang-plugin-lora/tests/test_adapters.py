"""Low-rank adapters: exact signals over them alone, and folders that need neither AANG nor peft."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from aang_plugin_lora.adapters import Adapters, LoraSettings
from peft import PeftModel
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    SqueezeBertConfig,
    SqueezeBertModel,
)

from aang_core import ModelError
from tests.core.encoders import ARCHITECTURES, PACKED, VOCABULARY, tiny_text_model
from tests.core.engine_checks import assert_exact, make_step
from tests.core.engine_steps import oracle
from tests.support.gradients import EndTaskHead, PackedEngine, StreamEngine
from tests.support.model import TextModel

LORA = LoraSettings(rank=2)
CLASSES = 3


def with_adapters(settings: LoraSettings) -> Callable[[TextModel], Adapters]:
    return lambda model: Adapters(model.body.base, settings)


IDS = torch.arange(3, 11).unsqueeze(0)
ALL = torch.ones(1, 8, dtype=torch.bool)


def adapted(folder: Path, architecture: str = "bert", settings: LoraSettings = LORA) -> TextModel:
    """A tiny encoder whose adapters have learned something: at the start, B is zero."""
    model = tiny_text_model(
        folder, tied=True, architecture=architecture, change=with_adapters(settings)
    )
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.body.named_parameters():
        if "lora_B" in name:
            drawn = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.data.copy_(0.1 * drawn)
    return model


def logits_of(model: TextModel) -> Tensor:
    model.body.eval()
    model.classifier.eval()
    logits: Tensor = model.classifier(model.body(IDS, ALL))
    return logits


def adapted_layers(model: TextModel) -> set[str]:
    """The ends of the names of the layers with an adapter."""
    names = (name for name, _ in model.body.named_parameters() if "lora_A" in name)
    return {name.split(".lora_A")[0].rpartition(".")[2] for name in names}


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("architecture", PACKED)
def test_engines_are_exact_over_the_adapters(tmp_path: Path, architecture: str) -> None:
    """Cosines, dots, norms and every ``.grad`` to 1e-9, over adapters and heads alone."""
    model = adapted(tmp_path, architecture)
    model.body.train()
    step = make_step(model, split=True)
    adapters = {p for name, p in model.body.named_parameters() if "lora_" in name}
    assert set(step.of_body) == adapters
    expected = oracle(step, step.end.task.head)
    head = EndTaskHead()
    for engine in (
        StreamEngine(step.body, head),
        PackedEngine(step.body, head),
        PackedEngine(step.body, head, max_rows=6),
    ):
        step.clear()
        assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, step, 1e-9)
        assert all(p.grad is None for p in model.body.parameters() if p not in adapters)


def test_recomputed_layers_have_the_same_gradients(tmp_path: Path) -> None:
    """``--save-memory``, though no input of the first layer needs a gradient."""
    model = adapted(tmp_path)
    model.body.train()
    step = make_step(model)
    expected = oracle(step, step.end.task.head)
    model.body.save_memory()
    step.clear()
    measured = StreamEngine(step.body, EndTaskHead()).step(step.end, step.auxiliaries, step.dev)
    assert_exact(measured, expected, step, 1e-9)


def test_a_new_adapter_changes_nothing(tmp_path: Path) -> None:
    """B starts at zero (Hu et al., section 4.1)."""
    plain = tiny_text_model(tmp_path, tied=True)
    model = tiny_text_model(tmp_path, tied=True, change=with_adapters(LORA))
    assert torch.equal(plain.body.eval()(IDS, ALL), model.body.eval()(IDS, ALL))


# peft asks transformers for an attribute by its older name.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_saved_merged_and_as_an_adapter(tmp_path: Path, architecture: str) -> None:
    """Plain transformers loads the one, peft the other; both predict what was trained."""
    model = adapted(tmp_path / "encoder", architecture)
    (adapters,) = model.parts
    expected = logits_of(model)
    model.save(tmp_path / "merged")
    adapters.save(tmp_path / "adapter", model.classifier)
    assert torch.equal(logits_of(model), expected)  # saving has changed nothing
    merged = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "merged", dtype=torch.float64
    )
    assert not [name for name, _ in merged.named_modules() if "lora" in name]
    base: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "encoder", num_labels=CLASSES, dtype=torch.float64
    )
    for loaded in (merged, PeftModel.from_pretrained(base, str(tmp_path / "adapter"))):
        logits = loaded.eval()(input_ids=IDS, attention_mask=ALL.long()).logits
        tolerance = 1e-5 if architecture == "deberta" else 1e-9
        torch.testing.assert_close(logits, expected, rtol=tolerance, atol=tolerance)
    described = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert described["base_model_name_or_path"] is None  # a folder of this machine
    assert (described["r"], described["lora_alpha"]) == (2, 4)


def test_a_language_model_is_saved_merged(tmp_path: Path) -> None:
    """As a stage of pre-training does; its decoder is still tied."""
    model = adapted(tmp_path / "encoder")
    model.save_language_model(tmp_path / "merged", model.heads.language_model())
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path / "merged", dtype=torch.float64)
    words = loaded.get_input_embeddings().weight
    assert loaded.get_output_embeddings().weight is words
    found = loaded.base_model.eval()(input_ids=IDS, attention_mask=ALL.long()).last_hidden_state
    torch.testing.assert_close(found, model.body.eval()(IDS, ALL), rtol=1e-9, atol=1e-9)


def test_a_copied_decoder_is_trained(tmp_path: Path) -> None:
    """The word embeddings are fixed; a copy of them that an objective owns is not."""
    for shared in (True, False):
        change = with_adapters(LORA)
        model = tiny_text_model(tmp_path, tied=True, change=change, share_decoder=shared)
        head = model.heads.language_model()
        sizes = [len(p) for p in head.parameters() if p.requires_grad and p.dim() > 1]
        assert (VOCABULARY in sizes) is not shared


@pytest.mark.parametrize(
    ("architecture", "given", "expected"),
    [
        ("bert", (), {"query", "value"}),
        ("deberta-v2", (), {"query_proj", "value_proj"}),
        ("modernbert", (), {"Wqkv", "Wo", "Wi"}),
        ("bert", ("key", "output.dense"), {"key", "dense"}),
        ("bert", ("all-linear",), {"query", "key", "value", "dense"}),
    ],
)
def test_targets(
    tmp_path: Path, architecture: str, given: tuple[str, ...], expected: set[str]
) -> None:
    """peft's choice for the architecture; every linear layer where it has none."""
    assert adapted_layers(adapted(tmp_path, architecture, LoraSettings(2, 1, given))) == expected


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("LayerNorm", "is LayerNorm; .*end in dense, key, query, value"),
        ("word_embeddings", "is Embedding"),
        ("qurey", "is not in the encoder"),
    ],
)
def test_a_target_that_is_no_linear_layer_is_refused(
    tmp_path: Path, target: str, reason: str
) -> None:
    """The message names those that there are."""
    with pytest.raises(ModelError, match=f"--lora-target {target}: {reason}"):
        adapted(tmp_path, settings=LoraSettings(2, targets=("query", target)))


def test_an_encoder_without_linear_layers_is_refused() -> None:
    """SqueezeBERT is made of convolutions."""
    config = SqueezeBertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        embedding_size=16,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=16,
    )
    encoder = SqueezeBertModel(config)
    del encoder.pooler
    with pytest.raises(ModelError, match="--lora: SqueezeBertModel has no linear layers"):
        Adapters(encoder, LORA)
