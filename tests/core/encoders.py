"""Small real encoders, built from config, for tests that need no tokenizer."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from aang_core.modeling import TextModel, load_text_model

VOCABULARY = 50


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


def tiny_text_model(folder: Path, *, tied: bool, classes: int = 3) -> TextModel:
    """The same, ready to be trained, in float64."""
    save_tiny_bert(folder, tied=tied)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), model_max_length=32
    )
    torch.manual_seed(1)
    model = load_text_model(str(folder), tokenizer, [f"class-{i}" for i in range(classes)])
    model.body.double()
    model.classifier.double()
    model.heads._language_model.double()
    return model
