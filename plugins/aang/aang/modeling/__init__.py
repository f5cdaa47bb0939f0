"""The shared encoder and the heads on it, built from transformers' own classes.

Public, for commands of plug-ins: :func:`load_text_model` loads an encoder, a :class:`TextModel`
with its :class:`EncoderBody`, from a folder or from the hub, :func:`load_tokenizer` its tokenizer
and :func:`load_classifier` a trained classifier. A :class:`TrainedPart` says what a plug-in has
made of the body, and :func:`layers_of` finds its layers. :class:`EncoderHeads` makes heads on the
body, each a :class:`TransformersHead`.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang.modeling.body import EncoderBody as EncoderBody
    from aang.modeling.body import TrainedPart as TrainedPart
    from aang.modeling.body import layers_of as layers_of
    from aang.modeling.encoder import TextModel as TextModel
    from aang.modeling.encoder import load_text_model as load_text_model
    from aang.modeling.heads import EncoderHeads as EncoderHeads
    from aang.modeling.heads import TransformersHead as TransformersHead
    from aang.modeling.loading import load_classifier as load_classifier
    from aang.modeling.loading import load_tokenizer as load_tokenizer
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
