"""Which tokens each token may attend to, in the form that an encoder's attention takes."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.deberta.modeling_deberta import DebertaEmbeddings
from transformers.models.deberta_v2.modeling_deberta_v2 import ConvLayer, DebertaV2Embeddings

from aang_core.errors import ModelError

_DEBERTA = (DebertaEmbeddings, DebertaV2Embeddings)


def attention_masks(base: PreTrainedModel, sees: Tensor) -> Tensor | dict[str, Tensor]:
    """``sees`` in the form that the encoder's attention takes.

    A model whose layers have windows of different widths takes one mask for each kind of layer.

    Args:
        base: the encoder.
        sees: ``[B, T, T]`` bool; the rows of padding are empty.
    """
    config = base.config
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return _mask(base, sees)
    place = torch.arange(sees.shape[-1], device=sees.device)
    distance = (place.unsqueeze(0) - place.unsqueeze(1)).abs()
    near = sees & (distance <= config.sliding_window)
    # A token that sees only tokens outside the window still sees itself.
    alone = sees.any(dim=-1, keepdim=True) & ~near.any(dim=-1, keepdim=True)
    return {
        "full_attention": _mask(base, sees),
        "sliding_attention": _mask(base, near | (alone & (distance == 0))),
    }


def _mask(base: PreTrainedModel, sees: Tensor) -> Tensor:
    # A softmax over nothing is NaN, and NaN spreads in backward even from padding; let
    # padding see everything instead. Nobody sees padding, so it changes nothing else.
    empty = ~sees.any(dim=-1, keepdim=True)
    mask = (sees | empty).unsqueeze(1)
    if base.config._attn_implementation != "eager" or is_deberta(base):
        return mask
    # Attention without a fused kernel adds the mask to the scores.
    dtype = next(base.parameters()).dtype
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)


def take_masks(base: PreTrainedModel) -> None:
    """Prepare an encoder for the masks of :func:`attention_masks`.

    DeBERTa's attention takes them as they are, but its embeddings set padding to zero, for which
    they want a mask with one entry per token. Without it, padding has embeddings that nobody sees.

    Raises:
        ModelError: a convolution of the encoder mixes tokens, whatever the mask says.
    """
    for module in base.modules():
        if isinstance(module, ConvLayer):
            raise ModelError(
                f"{type(base).__name__} with a convolution (conv_kernel_size "
                f"{base.config.conv_kernel_size} in its config.json) mixes every token with its "
                "neighbours, even those that an objective's representation hides; use a DeBERTa "
                "without one, such as microsoft/deberta-v3-base, or answerdotai/ModernBERT-base"
            )
        if isinstance(module, _DEBERTA):
            module.register_forward_pre_hook(_without_pairs, with_kwargs=True)


def _without_pairs(
    module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Drop a mask that has an entry for each pair of tokens."""
    mask = named.get("mask")
    return given, {**named, "mask": None} if mask is not None and mask.dim() > 2 else named


def is_deberta(base: PreTrainedModel) -> bool:
    """Whether the encoder is a DeBERTa, of any version."""
    return base.config.model_type in {"deberta", "deberta-v2"}
