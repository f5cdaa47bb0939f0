"""The shared encoder and the heads on it, built from transformers' own classes.

Public, for commands of plug-ins: :func:`load_text_model` loads an encoder, a :class:`TextModel`
with its :class:`EncoderBody`, from a folder or from the hub, :func:`load_tokenizer` its tokenizer
and :func:`load_classifier` a trained classifier. A :class:`TrainedPart` says what a plug-in has
made of the body, and :func:`layers_of` finds its layers. :class:`EncoderHeads` makes heads on the
body, each a :class:`TransformersHead`.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.modeling.body import EncoderBody, TrainedPart, layers_of
    from aang.modeling.encoder import TextModel, load_text_model
    from aang.modeling.heads import EncoderHeads, TransformersHead
    from aang.modeling.loading import load_classifier, load_tokenizer

__all__ = [
    "EncoderBody",
    "EncoderHeads",
    "TextModel",
    "TrainedPart",
    "TransformersHead",
    "layers_of",
    "load_classifier",
    "load_text_model",
    "load_tokenizer",
]

_HOMES = {
    "aang.modeling.body": "EncoderBody TrainedPart layers_of",
    "aang.modeling.encoder": "TextModel load_text_model",
    "aang.modeling.heads": "EncoderHeads TransformersHead",
    "aang.modeling.loading": "load_classifier load_tokenizer",
}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
