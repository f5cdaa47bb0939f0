"""Small real encoders, built from config, for tests that need no tokenizer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from aang import TrainedPart
from tokenizers import Tokenizer, models
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
)

from tests.support.model import TextModel, load_text_model

VOCABULARY = 50

PACKED = ("bert", "roberta", "albert", "electra", "distilbert", "modernbert")
"""Architectures whose gradients the packed engine splits by row."""

ARCHITECTURES = (*PACKED, "mpnet", "deberta", "deberta-v2")

_BERT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
# As DeBERTa-v3 has it: positions are relative to the other token, and nothing else.
_RELATIVE = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["p2c", "c2p"],
    "type_vocab_size": 0,
}
SHAPES: dict[str, dict[str, Any]] = {
    "bert": _BERT,
    "roberta": {**_BERT, "max_position_embeddings": 34, "type_vocab_size": 1},
    "albert": {**_BERT, "max_position_embeddings": 32, "embedding_size": 8},
    "electra": {**_BERT, "max_position_embeddings": 32, "embedding_size": 8},
    "distilbert": {
        **{"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2},
        "max_position_embeddings": 32,
    },
    "mpnet": {**_BERT, "max_position_embeddings": 34},
    # A window smaller than the rows of the tests, so that local layers see less than global ones.
    "modernbert": {
        **_BERT,
        "max_position_embeddings": 32,
        "local_attention": 4,
        **{"bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2},
    },
    "deberta": {**_BERT, **_RELATIVE, "max_position_embeddings": 32},
    "deberta-v2": {
        **_BERT,
        **_RELATIVE,
        "max_position_embeddings": 32,
        **{"position_buckets": 4, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    },
}

DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "classifier_dropout",
    "classifier_dropout_prob",
    "seq_classif_dropout",
    "cls_dropout",
    "pooler_dropout",
)


def save_tiny_bert(folder: Path, *, tied: bool, dropout: float = 0.0) -> Path:
    """A two-layer masked-LM BERT, as a transformers folder."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        tie_word_embeddings=tied,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def save_tiny_encoder(folder: Path, architecture: str, *, tied: bool, dropout: float) -> Path:
    """A two-layer masked-LM model of an architecture, as a transformers folder."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        architecture,
        vocab_size=VOCABULARY,
        tie_word_embeddings=tied,
        pad_token_id=0,
        **SHAPES[architecture],
    )
    for name in DROPOUTS:
        if hasattr(config, name):
            setattr(config, name, dropout)
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    return folder


def tiny_text_model(
    folder: Path,
    *,
    tied: bool,
    classes: int = 3,
    architecture: str = "bert",
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float64,
    change: Callable[[TextModel], TrainedPart | None] = lambda model: None,
    **options: Any,
) -> TextModel:
    """A tiny encoder that is ready to be trained, in float64 unless said otherwise.

    change: changes what is trained, as a plug-in does. options: further ones of `load_text_model`.
    """
    if architecture == "bert":
        save_tiny_bert(folder, tied=tied, dropout=dropout)
    else:
        save_tiny_encoder(folder, architecture, tied=tied, dropout=dropout)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), model_max_length=32
    )
    torch.manual_seed(1)
    labels = [f"class-{i}" for i in range(classes)]
    model = load_text_model(str(folder), tokenizer, labels, **options)
    if (part := change(model)) is not None:
        model = replace(model, parts=(part,))
    model.body.to(dtype)
    model.classifier.to(dtype)
    return model
