"""The shared encoder and the heads on it, built from transformers' own classes."""

from aang_core.modeling.encoder import (
    EncoderBody,
    TextModel,
    load_classifier,
    load_text_model,
    load_tokenizer,
)
from aang_core.modeling.heads import EncoderHeads, TransformersHead

__all__ = [
    "EncoderBody",
    "EncoderHeads",
    "TextModel",
    "TransformersHead",
    "load_classifier",
    "load_text_model",
    "load_tokenizer",
]
