"""What is found out about an encoder when it is loaded, on small models of every family."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    XLNetConfig,
    XLNetModel,
)

from aang_core import ModelError
from tests.core.encoders import SHAPES, VOCABULARY, tiny_text_model
from tests.support.model import TextModel, load_text_model, longest_row, refuse_unusable

POSITIONS = 24
TOKENS = 9

_BERT = {**SHAPES["bert"], "max_position_embeddings": POSITIONS}
_XLM = {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "max_position_embeddings": POSITIONS}
_SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "mask_token_id": 4}

FROM_PADDING = (
    *("roberta", "xlm-roberta", "camembert", "mpnet", "data2vec-text", "xlm-roberta-xl"),
    *("roberta-prelayernorm", "ibert", "xmod"),
)
"""Families that count positions from that of padding."""

ACCEPTED: dict[str, dict[str, Any]] = {
    **dict.fromkeys((*FROM_PADDING, "bert", "ernie", "megatron-bert", "big_bird"), _BERT),
    "xmod": {**_BERT, "languages": ["en_XX"], "default_language": "en_XX"},
    **{name: {**_BERT, "embedding_size": 8} for name in ("albert", "electra", "roformer")},
    "rembert": {**_BERT, "input_embedding_size": 8, "output_embedding_size": 8},
    **{name: SHAPES[name] for name in ("distilbert", "modernbert", "deberta", "deberta-v2")},
    "eurobert": {**_BERT, **_SPECIAL, "num_key_value_heads": 2, "head_dim": 8},
}

MIXES = "a token changes others even if the attention mask hides it"
NO_MASK = "does not take an attention mask with an entry for each pair of tokens"
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "convbert": (MIXES, {**_BERT, "embedding_size": 16, "head_ratio": 1, "conv_kernel_size": 3}),
    "fnet": (MIXES, _BERT),
    "nystromformer": (MIXES, _BERT),
    "mobilebert": (
        MIXES,
        {**_BERT, "embedding_size": 8, "intra_bottleneck_size": 8, "true_hidden_size": 8},
    ),
    "esm": (NO_MASK, {**_BERT, **_SPECIAL}),
    "flaubert": (NO_MASK, _XLM),
    "funnel": (
        NO_MASK,
        {"d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 24, "block_sizes": [1, 1]},
    ),
    "layoutlm": (NO_MASK, _BERT),
    "longformer": (NO_MASK, {**_BERT, "attention_window": [4, 4]}),
    "xlm": (NO_MASK, _XLM),
    "luke": (
        "the head of LukeForSequenceClassification cannot be computed",
        {**_BERT, "entity_vocab_size": 10, "entity_emb_size": 8},
    ),
}


def loaded(folder: Path, family: str, shape: dict[str, Any], **options: Any) -> TextModel:
    """A small model of a family."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, vocab_size=VOCABULARY, pad_token_id=0, **shape)
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    return load_text_model(str(folder), limitless(), ["a", "b", "c"], **options)


def limitless() -> PreTrainedTokenizerFast:
    """A tokenizer that does not say how many tokens its encoder takes."""
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    )


def ids(rows: int, tokens: int) -> Tensor:
    return torch.randint(5, VOCABULARY, (rows, tokens), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("family", REFUSED)
def test_an_encoder_that_cannot_be_trained_is_refused(tmp_path: Path, family: str) -> None:
    """In a sentence that says why and what to use instead."""
    reason, shape = REFUSED[family]
    with pytest.raises(ModelError, match=f"{reason}.*Use another encoder, such as roberta-base"):
        loaded(tmp_path, family, shape)


@pytest.mark.parametrize("family", ACCEPTED)
def test_heads_of_other_encoders_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    """The saved classifier has the same logits, and so has the language model."""
    model = loaded(tmp_path / "encoder", family, ACCEPTED[family])
    model.save(tmp_path / "saved")
    real = torch.ones(2, TOKENS, dtype=torch.bool)
    row = ids(2, TOKENS)
    hidden = model.body.eval()(row, real)
    words = model.heads.language_model().eval()(hidden.flatten(0, 1)).view(2, TOKENS, -1)
    for made, auto, folder in (
        (model.classifier.eval()(hidden), AutoModelForSequenceClassification, "saved"),
        (words, AutoModelForMaskedLM, "encoder"),
    ):
        saved = auto.from_pretrained(tmp_path / folder).eval()
        expected = saved(input_ids=row, attention_mask=real.long()).logits
        torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", ACCEPTED)
def test_the_longest_row_is_the_longest_that_the_encoder_takes(family: str) -> None:
    """Whatever the number of the padding token; attention without a table takes longer rows."""
    for padding in (0, 3):
        shape = {**ACCEPTED[family], "pad_token_id": padding}
        config = AutoConfig.for_model(family, vocab_size=VOCABULARY, **shape)
        model = AutoModel.from_config(config).eval()
        longest = longest_row(model, limitless())
        of_padding = 1 if family == "mpnet" else padding
        before = of_padding + 1 if family in FROM_PADDING else 0
        assert longest == config.max_position_embeddings - before
        assert takes(model, longest)
        if family in FROM_PADDING:
            assert not takes(model, longest + 1)


def takes(model: PreTrainedModel, tokens: int) -> bool:
    row = ids(1, tokens)
    try:
        model(input_ids=row, attention_mask=torch.ones_like(row))
    except (IndexError, RuntimeError):
        return False
    return True


def test_an_encoder_without_positions_takes_what_its_tokenizer_takes() -> None:
    """XLNet says that it has -1 positions."""
    model = XLNetModel(XLNetConfig(vocab_size=9, d_model=4, n_layer=1, n_head=1, d_inner=4))
    tokenizer = limitless()
    tokenizer.model_max_length = 7
    assert longest_row(model, tokenizer) == 7


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
def test_a_trial_leaves_no_trace(tmp_path: Path, training: bool, dtype: torch.dtype) -> None:
    """Nothing is drawn, though there is dropout; no mode and no parameter changes."""
    model = tiny_text_model(tmp_path, tied=True, dropout=0.5, dtype=dtype)
    parts: list[nn.Module] = [model.body.base, model.classifier]
    for part in parts:
        part.train(training)
    before = {name: p.clone() for name, p in model.body.named_parameters()}
    state = torch.get_rng_state()
    refuse_unusable("encoder", model.body, [model.classifier], 32)
    assert torch.equal(torch.get_rng_state(), state)
    assert {m.training for part in parts for m in part.modules()} == {training}
    for name, parameter in model.body.named_parameters():
        assert parameter.grad is None
        assert torch.equal(parameter, before[name])


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_rows_may_be_shorter_than_the_trial(tmp_path: Path, longest: int) -> None:
    """Then its row is as short."""
    model = tiny_text_model(tmp_path, tied=True)
    refuse_unusable("encoder", model.body, [model.classifier], longest)


def test_without_weights_nothing_is_tried(tmp_path: Path) -> None:
    """On the meta device there is nothing to compute."""
    model = tiny_text_model(tmp_path, tied=True)
    model.body.to("meta")
    refuse_unusable("encoder", model.body, [model.classifier], 32)


@pytest.mark.parametrize("family", [*ACCEPTED, "deberta-v2"])
def test_the_dropout_that_is_asked_for_is_everywhere(tmp_path: Path, family: str) -> None:
    """In the encoder and in the head, whatever the family calls it. EuroBERT has none."""
    model = loaded(tmp_path, family, ACCEPTED.get(family) or SHAPES[family], dropout=0.25)
    modules = [*model.body.modules(), *model.classifier.modules()]
    found = {module.p for module in modules if isinstance(module, nn.Dropout)}
    assert found == (set() if family == "eurobert" else {0.25})
