"""Encoders, heads and attention masks."""

from aang_core.modeling import Adapters, EncoderBody, LoraSettings, TextModel
from aang_core.modeling.encoder import load_classifier, load_text_model, load_tokenizer
from aang_core.modeling.heads import LanguageModelHead, set_dropout
from aang_core.modeling.positions import longest_row
from aang_core.modeling.trial import refuse_unusable
