"""Frozen first layers: out of v and every g, and out of the backward pass."""

from pathlib import Path
from typing import Any

import pytest
import torch
from aang_plugin_lora.frozen_layers import freeze_layers
from aang_plugin_lora.hooks import aang_prepare_model
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AlbertConfig, AlbertForMaskedLM

from aang_core import ModelError
from tests.core.encoders import ARCHITECTURES, PACKED, VOCABULARY, tiny_text_model
from tests.core.engine_checks import assert_exact, make_step
from tests.core.engine_steps import oracle
from tests.support.gradients import EndTaskHead, PackedEngine, StreamEngine
from tests.support.model import TextModel, load_text_model, part_in_words

# ALBERT repeats one layer, so that none can be frozen.
LAYERED = tuple(name for name in ARCHITECTURES if name != "albert")


def frozen(
    folder: Path,
    architecture: str = "bert",
    count: int | None = 1,
    dropout: float = 0.0,
    **more: Any,
) -> TextModel:
    """A tiny encoder of two layers whose first ``count`` are frozen."""
    options = {"freeze_layers": count, "lora": None, "lora_alpha": None, "lora_target": (), **more}
    return tiny_text_model(
        folder,
        tied=True,
        architecture=architecture,
        dropout=dropout,
        change=lambda model: aang_prepare_model(model, options),
    )


def layers(model: TextModel) -> nn.ModuleList:
    return next(m for m in model.body.modules() if isinstance(m, nn.ModuleList) and len(m) == 2)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("architecture", [name for name in PACKED if name in LAYERED])
def test_engines_are_exact_over_the_last_layers(tmp_path: Path, architecture: str) -> None:
    """To 1e-9, in float64; MPNet's position biases are read by the first layer, so they are out."""
    model = frozen(tmp_path, architecture)
    model.body.train()
    step = make_step(model, split=True)
    expected = oracle(step, step.end.task.head)
    head = EndTaskHead()
    for engine in (StreamEngine(step.body, head), PackedEngine(step.body, head)):
        step.clear()
        assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, step, 1e-9)


@pytest.mark.parametrize("architecture", LAYERED)
def test_only_what_follows_is_trained(tmp_path: Path, architecture: str) -> None:
    """The last layer, and a norm after it; embeddings, projections and biases of positions not."""
    model = frozen(tmp_path, architecture)
    of_last = set(layers(model)[1].parameters())
    trained = {name: p for name, p in model.body.named_parameters() if p.requires_grad}
    rest = {name for name, p in trained.items() if p not in of_last}
    assert rest == ({"base.final_norm.weight"} if architecture == "modernbert" else set())
    assert all(p.requires_grad for p in of_last)


@pytest.mark.parametrize("architecture", LAYERED)
def test_frozen_layers_record_nothing_for_a_backward_pass(
    tmp_path: Path, architecture: str
) -> None:
    """What reaches the first trained layer has no graph, from the embeddings on."""
    seen: list[bool] = []

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        values = (*given, *named.values())
        seen.extend(v.requires_grad for v in values if isinstance(v, Tensor))

    for count in (0, 1):
        model = frozen(tmp_path, architecture, count)
        layers(model)[count].register_forward_pre_hook(note, with_kwargs=True)
        ids = torch.arange(3, 11).unsqueeze(0)
        hidden = model.body.train()(ids, torch.ones(1, 8, dtype=torch.bool))
        assert hidden.requires_grad
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("engine", [StreamEngine, PackedEngine])
def test_a_step_costs_less(tmp_path: Path, engine: type[StreamEngine] | type[PackedEngine]) -> None:
    """Backward is two thirds of a layer's arithmetic; of a frozen one only forward is left."""

    def flops(count: int | None) -> int:
        model = frozen(tmp_path, count=count)
        step = make_step(model, selected=(0.05, 0.05, 0.05, 0.05))
        made = engine(step.body, EndTaskHead())
        with FlopCounterMode(display=False) as counter:
            made.step(step.end, step.auxiliaries, step.dev)
        return int(counter.get_total_flops())

    whole, last = flops(None), flops(1)
    # Half of the layers keep a third of their arithmetic, and the first trained one computes no
    # gradient of its input; heads cost what they did.
    assert 0.55 * whole < last < 0.65 * whole


@pytest.mark.parametrize("count", [2, 3, 100])
def test_a_layer_at_least_is_trained(tmp_path: Path, count: int) -> None:
    """The message says how many there are."""
    with pytest.raises(
        ModelError, match=f"--freeze-layers {count}: BertModel has 2 layers.*at most 1"
    ):
        frozen(tmp_path, count=count)


def test_layers_that_share_their_parameters_are_refused(tmp_path: Path) -> None:
    """ALBERT repeats one layer."""
    tokenizer = tiny_text_model(tmp_path / "other", tied=True).tokenizer
    config = AlbertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        embedding_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
    )
    AlbertForMaskedLM(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="share their parameters"):
        freeze_layers(load_text_model(str(tmp_path), tokenizer, ["a", "b"]).body, 1)


def test_adapters_go_on_layers_that_are_not_frozen(tmp_path: Path) -> None:
    """Both options together: less of the encoder is adapted."""
    model = frozen(tmp_path, lora=2)
    names = [name for name, p in model.body.named_parameters() if p.requires_grad]
    assert len(names) == 4
    assert all("layer.1." in name and "lora_" in name for name in names)
    with pytest.raises(ModelError, match=r"--lora-target layer\.0\.attention\.self\.query"):
        frozen(tmp_path, lora=2, lora_target=("layer.0.attention.self.query",))


def test_what_is_trained_is_said(tmp_path: Path) -> None:
    model = frozen(tmp_path, lora=2)
    assert part_in_words(model.body, model.parts) == (
        "the embeddings and the first 1 of 2 layers are not trained; adapters of rank 2 on 2 "
        "linear layers (query, value): 128 of 5,424 parameters of the encoder are trained"
    )
    assert part_in_words(model.body, ()) is None


def test_freezing_draws_nothing(tmp_path: Path) -> None:
    """A run with the option starts from the same heads as one without."""
    states = []
    for count in (None, 1):
        frozen(tmp_path, count=count, dropout=0.1)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)
