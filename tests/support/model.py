"""Encoders, heads and attention masks."""

from aang.modeling import EncoderBody, TextModel
from aang.modeling.body import part_in_words
from aang.modeling.encoder import load_text_model
from aang.modeling.heads import LanguageModelHead, set_dropout
from aang.modeling.loading import load_classifier, load_tokenizer, longest_row
from aang.modeling.trial import refuse_unusable
