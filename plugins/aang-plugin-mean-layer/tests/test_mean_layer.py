"""A further layer whose first token begins as the mean of the tokens."""

from pathlib import Path
from typing import Any

import pytest
import torch
from aang.modeling import layers_of
from aang_plugin_mean_layer.hooks import aang_prepare_model
from torch import Tensor
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from aang_core import ModelError
from tests.core.encoders import tiny_text_model
from tests.core.engine_checks import assert_exact, make_step
from tests.core.engine_steps import oracle
from tests.support.data import tag_labels
from tests.support.gradients import EndTaskHead, PackedEngine, StreamEngine
from tests.support.model import TextModel, load_text_model

LENGTHS = torch.tensor([8, 5, 3])
REAL = torch.arange(8) < LENGTHS.unsqueeze(1)
IDS = torch.arange(3, 27).view(3, 8) * REAL


def with_layer(folder: Path, architecture: str, *, added: bool = True, **options: Any) -> TextModel:
    model = tiny_text_model(
        folder,
        tied=True,
        architecture=architecture,
        change=lambda made: aang_prepare_model(made, {"mean_layer": added}, None),
        **options,
    )
    model.body.eval()
    model.classifier.eval()
    return model


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra", "distilbert", "mpnet"])
def test_the_first_token_is_the_mean_and_plain_transformers_reads_it(
    tmp_path: Path, architecture: str
) -> None:
    """Of each text's own tokens, in a padded batch; the rest of the model draws what it drew."""
    before = with_layer(tmp_path / "plain", architecture, added=False)
    drawn = torch.get_rng_state()
    model = with_layer(tmp_path / "encoder", architecture)
    assert torch.equal(torch.get_rng_state(), drawn)
    hidden: Tensor = before.body(IDS, REAL)
    mean = (hidden * REAL.unsqueeze(-1)).sum(1) / LENGTHS.unsqueeze(1)
    after: Tensor = model.body(IDS, REAL)
    assert torch.equal(after[:, 1:], hidden[:, 1:])
    first = after[:, 0]
    cosines = torch.cosine_similarity(first, mean)
    assert (cosines > 0.95).all(), cosines
    assert (torch.cosine_similarity(hidden[:, 0], mean) < cosines).all()

    model.save(tmp_path / "saved")
    saved = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "saved", dtype=torch.float64
    )
    assert saved.config.num_hidden_layers == 3
    logits = saved.eval()(input_ids=IDS, attention_mask=REAL.long()).logits
    ours = model.classifier(model.body(IDS, REAL))
    torch.testing.assert_close(logits, ours)

    ours.square().sum().backward()
    layer = layers_of(model.body)[-1]
    learning = {name for name, p in layer.named_parameters() if p.grad.any()}
    queries = ("query.weight", "q_lin.weight", "attn.q.weight")
    assert any(name.endswith(queries) for name in learning), learning


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("architecture", ["bert", "distilbert"])
def test_signals_are_exact_with_it(tmp_path: Path, architecture: str) -> None:
    """Though it reads the tokens of every row and computes one of them."""
    model = with_layer(tmp_path, architecture)
    model.body.train()
    step = make_step(model)
    expected = oracle(step, step.end.task.head)
    for engine in (StreamEngine, PackedEngine):
        step.clear()
        measured = engine(step.body, EndTaskHead()).step(step.end, step.auxiliaries, step.dev)
        assert_exact(measured, expected, step, 1e-9)


@pytest.mark.parametrize(
    ("architecture", "reason"),
    [
        ("modernbert", "ModernBertModel has classifier_pooling instead; leave the option out"),
        ("deberta", "DebertaModel has layers of another form"),
    ],
)
def test_other_layers_are_refused(tmp_path: Path, architecture: str, reason: str) -> None:
    with pytest.raises(ModelError, match=f"--mean-layer: {reason}"):
        with_layer(tmp_path, architecture)


def test_tags_of_words_are_refused(tmp_path: Path) -> None:
    """Their model reads every token, through the layer."""
    with pytest.raises(ModelError, match="--mean-layer: is for classes of whole texts"):
        with_layer(tmp_path, "bert", task_type=tag_labels(["class-0", "class-1", "class-2"]))


def test_a_head_of_the_same_classes_is_refused(tmp_path: Path) -> None:
    """It was trained on what the layer would change."""
    with_layer(tmp_path / "encoder", "bert", added=False).save(tmp_path / "trained")
    source = str(tmp_path / "trained")
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = load_text_model(source, tokenizer, ["class-0", "class-1", "class-2"])
    with pytest.raises(ModelError, match="has a head of this task's classes"):
        aang_prepare_model(model, {"mean_layer": True, "model": source}, None)
    fresh = load_text_model(source, tokenizer, ["yes", "no"])
    assert aang_prepare_model(fresh, {"mean_layer": True, "model": source}, None) is not None
