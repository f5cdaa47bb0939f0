"""Encoders, heads and attention masks."""

from aang.modeling import EncoderBody, TextModel
from aang.modeling.encoder import load_classifier, load_text_model, load_tokenizer
from aang.modeling.heads import LanguageModelHead, set_dropout
from aang.modeling.positions import longest_row
from aang.modeling.trial import refuse_unusable
