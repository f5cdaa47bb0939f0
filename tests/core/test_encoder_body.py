"""Masks of representations on every kind of encoder, and encoders that cannot keep to them."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from aang_core import ModelError
from tests.core.encoders import ARCHITECTURES, SHAPES, VOCABULARY, tiny_text_model
from tests.core.engine_checks import assert_exact, make_step
from tests.core.engine_steps import oracle, tiny_model
from tests.support.gradients import EndTaskHead, PackedEngine
from tests.support.model import load_text_model

TOKENS = 9


def ids() -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (2, TOKENS), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_token_reads_only_what_its_mask_shows(architecture: str) -> None:
    """From left to right, the last token changes no other token, in any layer."""
    body = tiny_model(architecture, True).body.eval()
    sees = torch.ones(2, TOKENS, TOKENS, dtype=torch.bool).tril()
    changed = ids()
    changed[:, -1] = (changed[:, -1] + 1) % VOCABULARY
    before, after = body(ids(), sees), body(changed, sees)
    torch.testing.assert_close(before[:, :-1], after[:, :-1], rtol=0, atol=0)
    assert not torch.allclose(before[:, -1], after[:, -1])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_mask_of_pairs_that_hides_only_padding_is_the_mask_of_tokens(architecture: str) -> None:
    """And padding changes nothing."""
    body = tiny_model(architecture, True).body.eval()
    alone = body(ids(), torch.ones(2, TOKENS, dtype=torch.bool))
    padded = torch.nn.functional.pad(ids(), (0, 3))
    real = torch.arange(TOKENS + 3).expand(2, -1) < TOKENS
    for mask in (real, real.unsqueeze(1) & real.unsqueeze(2)):
        torch.testing.assert_close(body(padded, mask)[:, :TOKENS], alone, rtol=1e-9, atol=1e-9)


def test_local_layers_of_modernbert_keep_to_window_and_mask() -> None:
    """With two layers, global and local, what is outside both windows changes no token."""
    body = tiny_model("modernbert", True).body.eval()
    assert body.base.config.layer_types == ["full_attention", "sliding_attention"]
    # Tokens see themselves and the next one; in two layers the third is the furthest.
    places = torch.arange(TOKENS)
    sees = ((places - places.unsqueeze(1)) // 2 == 0).expand(2, -1, -1)
    changed = ids()
    changed[:, 3] = (changed[:, 3] + 1) % VOCABULARY
    same = (body(ids(), sees) == body(changed, sees)).all(-1)
    assert same[0].tolist() == [True, False, False, False] + [True] * (TOKENS - 4)


# The first DeBERTa has a layer norm of its own, which computes in float32 in any case.
@pytest.mark.parametrize(
    ("architecture", "tolerance", "reason"),
    [("deberta", 1e-5, "DebertaLayerNorm"), ("deberta-v2", 1e-9, "rel_embeddings")],
)
def test_deberta_is_trained_by_the_stream_engine(
    architecture: str, tolerance: float, reason: str
) -> None:
    """Relative positions belong to no row: packed says so once, and measures the same."""
    model = tiny_model(architecture, True)
    model.body.train()
    step = make_step(model, split=True)
    expected = oracle(step, step.end.task.head)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for rows in (None, 1, 6):
            engine = PackedEngine(step.body, EndTaskHead(), max_rows=rows)
            step.clear()
            measured = engine.step(step.end, step.auxiliaries, step.dev)
            assert_exact(measured, expected, step, tolerance)
    told = [str(w.message) for w in warned]
    assert len(told) == 3
    assert all(reason in sentence for sentence in told)


@pytest.mark.parametrize("shared", [True, False])
def test_objectives_share_one_decoder_unless_each_copies_it(tmp_path: Path, shared: bool) -> None:
    """Its matrix, which is most of a token head; each has a bias of its own in any case."""
    heads = tiny_text_model(tmp_path, tied=True, share_decoder=shared).heads
    first, second = (
        {
            parameter.ndim: parameter
            for parameter in head.parameters()
            if len(parameter) == VOCABULARY
        }
        for head in (heads.language_model(), heads.language_model())
    )
    assert (first[2] is second[2]) is shared
    assert first[1] is not second[1]


def test_a_deberta_with_a_convolution_is_refused(tmp_path: Path) -> None:
    """It mixes neighbours, whatever a mask hides."""
    save_deberta(tmp_path, conv_kernel_size=3)
    with pytest.raises(ModelError, match="does not take an attention mask"):
        tiny_tokenized(tmp_path)


def test_a_language_model_head_without_a_decoder_is_refused(tmp_path: Path) -> None:
    """DeBERTa's newer head multiplies with word embeddings that it is handed."""
    save_deberta(tmp_path, legacy=False)
    with pytest.raises(ModelError, match="no decoder with a row per token"):
        tiny_tokenized(tmp_path)


def save_deberta(folder: Path, **settings: Any) -> None:
    """A tiny DeBERTa-v2 with some settings of its own."""
    config = AutoConfig.for_model("deberta-v2", vocab_size=VOCABULARY, **SHAPES["bert"], **settings)
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)


def tiny_tokenized(folder: Path) -> None:
    """Load the model in ``folder`` with the tokenizer of the tiny models."""
    with_tokenizer = tiny_text_model(folder / "other", tied=True)
    load_text_model(str(folder), with_tokenizer.tokenizer, ["a", "b"])
