"""Whether a folder contains a masked language model, and what to do if it does not."""

from collections.abc import Collection
from typing import Any

from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedConfig
from transformers import PreTrainedModel as Model

from aang_core.errors import ModelError

_ENCODERS = "a masked-LM encoder, such as roberta-base, microsoft/deberta-v3-small or all-MiniLM"


def refuse_decoders(source: str, config: PreTrainedConfig) -> None:
    """Refuse a model that is not a plain encoder.

    Raises:
        ModelError: it has a decoder, or is one; the message says what to give instead.
    """
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"model {source!r} is an encoder-decoder ({config.model_type}); give {_ENCODERS}"
        )
    if type(config) in AutoModelForMaskedLM._model_mapping:
        return
    own_code = "AutoModelForMaskedLM" in (getattr(config, "auto_map", None) or {})
    if not own_code and type(config) in AutoModelForCausalLM._model_mapping:
        raise ModelError(
            f"model {source!r} is a pure decoder ({config.model_type}), which reads from left to "
            f"right; give {_ENCODERS}"
        )


def lacks_language_model(model: Model, missing: Collection[str]) -> bool:
    """Whether the head of a masked-LM ``model`` is new: one of its matrices was ``missing``.

    Args:
        model: a masked language model.
        missing: names of the parameters that the folder lacks; a tied decoder is not among them.
    """
    return any(parameter.dim() > 1 for parameter in _of_head(model, missing))


def tie_decoder(model: Model, missing: Collection[str]) -> None:
    """Tie a new decoder to the word embeddings, which are trained already."""
    decoder: Any = model.get_output_embeddings()
    words = model.get_input_embeddings().weight
    fresh = any(parameter is decoder.weight for parameter in _of_head(model, missing))
    if fresh and decoder.weight is not words and decoder.weight.shape == words.shape:
        decoder.weight = words
        model.config.tie_word_embeddings = True


def _of_head(model: Model, missing: Collection[str]) -> list[nn.Parameter]:
    base = f"{model.base_model_prefix}."
    return [p for name, p in model.named_parameters() if name in missing and base not in name]
