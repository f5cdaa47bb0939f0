"""The shared encoder: token ids and who sees whom → hidden states; and which part is trained."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.models.deberta.modeling_deberta import DebertaEmbeddings
from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Embeddings

from aang_core.errors import ModelError
from aang_core.gradients.segments import CannotPackError

if TYPE_CHECKING:
    from aang.modeling.heads import TransformersHead


class EncoderBody(nn.Module):
    """θ, the parameters that all tasks share: a transformers encoder without its pooler.

    Args:
        base: the encoder.
    """

    def __init__(self, base: PreTrainedModel) -> None:
        super().__init__()
        for module in base.modules():
            if isinstance(module, DebertaEmbeddings | DebertaV2Embeddings):
                # DeBERTa's attention takes masks as they are, but its embeddings set padding to
                # zero, for which they want one entry per token. Without it, padding has embeddings
                # that no token sees.
                module.register_forward_pre_hook(_without_pairs, with_kwargs=True)
        self.base = base

    @property
    def embeddings(self) -> nn.Module:
        """Token ids ``[B, T]`` → word embeddings ``[B, T, E]``."""
        return self.base.get_input_embeddings()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        noise: Tensor | None = None,
        **inputs: Tensor,
    ) -> Tensor:
        """Hidden states ``[B, T, H]`` of token ids ``[B, T]``.

        Args:
            input_ids: ``[B, T]`` int64.
            attention_mask: ``[B, T]`` bool, the real tokens, or ``[B, T, T]`` bool, which tokens
                each token may attend to.
            noise: ``[B, T, E]``, added to the word embeddings; None for none.
            **inputs: further arguments of the encoder, such as token types.
        """
        mask: Any = attention_mask
        if attention_mask.dim() == 2 and attention_mask.device.type != "cpu":
            # transformers would read such a mask, to leave it out if no token is padding, so the
            # host would wait for the device in every pass.
            attention_mask = attention_mask.unsqueeze(1).expand(-1, attention_mask.shape[1], -1)
        if attention_mask.dim() == 3:
            mask = _attention_masks(self.base, attention_mask)
        words = {"input_ids": input_ids}
        if noise is not None:
            words = {"inputs_embeds": self.embeddings(input_ids) + noise}
        output = self.base(**words, attention_mask=mask, **inputs)
        hidden: Tensor = output.last_hidden_state
        return hidden

    def save_memory(self) -> None:
        """Store only the inputs of each layer, and recompute the rest in the backward pass.

        Raises:
            ModelError: transformers does not support this for the architecture.
        """
        try:
            self.base.activation_checkpointing_enable()
        except ValueError as error:
            raise ModelError(
                f"--save-memory: {type(self.base).__name__} cannot recompute its layers; leave "
                "the option out, or give --micro-batch-size"
            ) from error

    def pack(self, inputs: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """Concatenate the rows of several batches, padded to the longest.

        See :class:`aang_core.gradients.PacksRows`.

        Raises:
            CannotPackError: the encoder is a DeBERTa with relative positions.
        """
        if _is_deberta(self.base):
            raise CannotPackError(
                "DeBERTa computes its relative positions once for all rows, so their gradient "
                "cannot be split by row"
            )
        tokens = max(part["input_ids"].shape[1] for part in inputs)
        three = any(part["attention_mask"].dim() == 3 for part in inputs)
        names = dict.fromkeys(name for part in inputs for name in part)
        noise = next((part["noise"] for part in inputs if "noise" in part), None)
        if noise is not None:
            inputs = [_with_noise(part, noise) for part in inputs]
        return {
            name: torch.cat([_widened(part[name], tokens, three) for part in inputs])
            for name in names
        }

    def unpack(self, features: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Hidden states of one batch's rows, cut to its own number of tokens."""
        return features[:, : inputs["input_ids"].shape[1]]


class TrainedPart:
    """What a plug-in has made of an encoder.

    Args:
        said: a phrase for people, such as "the embeddings are not trained".

    Attributes:
        folder: the folder in the run folder that :meth:`save` writes; None if it writes none.

    Examples:
        >>> from aang import TrainedPart
        >>> TrainedPart("the embeddings are not trained").said
        'the embeddings are not trained'
    """

    folder: str | None = None

    def __init__(self, said: str) -> None:
        self.said = said

    def plain(self, base: PreTrainedModel) -> PreTrainedModel:
        """The encoder as transformers knows it, to be saved; ``base`` itself if it is that."""
        return base

    def save(self, folder: Path, head: "TransformersHead") -> None:
        """Save only this part, for those who already have the encoder.

        Args:
            folder: an empty folder.
            head: the end task's head.
        """


def part_in_words(body: EncoderBody, parts: Sequence[TrainedPart]) -> str | None:
    """A sentence about which part of the encoder is trained; None if all of it is."""
    if not parts:
        return None
    parameters = list(body.parameters())
    trained = sum(p.numel() for p in parameters if p.requires_grad)
    total = sum(p.numel() for p in parameters)
    said = "; ".join(part.said for part in parts)
    return f"{said}: {trained:,} of {total:,} parameters of the encoder are trained"


def layers_of(body: EncoderBody) -> nn.ModuleList | None:
    """The layers of an encoder; None if it does not have them in one list."""
    wanted = getattr(body.base.config, "num_hidden_layers", None)
    for module in body.modules():
        if isinstance(module, nn.ModuleList) and len(module) == wanted:
            return module
    return None


def _widened(values: Tensor, tokens: int, three: bool) -> Tensor:
    """Pad with zeros, which mean padding in a mask and are masked elsewhere.

    Args:
        values: ``[B, T, ...]``, or noise ``[B, T, E]``.
        tokens: the width to pad to.
        three: whether to turn masks ``[B, T]`` into ``[B, T, T]``.
    """
    missing = tokens - values.shape[1]
    if values.dim() == 2 and values.dtype == torch.bool and three:
        values = values.unsqueeze(1).expand(-1, values.shape[1], -1)
    if missing == 0:
        return values
    if values.is_floating_point():  # noise, whose last dimension is that of the embeddings
        return functional.pad(values, (0, 0, 0, missing))
    return functional.pad(values, (0, missing) * (values.dim() - 1))


def _with_noise(inputs: Mapping[str, Tensor], like: Tensor) -> Mapping[str, Tensor]:
    """Inputs with zero noise if they have none, for a pass shared with inputs that have some."""
    shape = (*inputs["input_ids"].shape, like.shape[2])
    return {"noise": like.new_zeros(shape), **inputs}


def _attention_masks(base: PreTrainedModel, sees: Tensor) -> Tensor | dict[str, Tensor]:
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
    # padding see everything instead. No token sees padding, so it changes nothing else.
    empty = ~sees.any(dim=-1, keepdim=True)
    mask = (sees | empty).unsqueeze(1)
    if base.config._attn_implementation != "eager" or _is_deberta(base):
        return mask
    # Attention without a fused kernel adds the mask to the scores.
    dtype = next(base.parameters()).dtype
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)


def _without_pairs(
    module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Drop a mask that has an entry for each pair of tokens."""
    mask = named.get("mask")
    return given, {**named, "mask": None} if mask is not None and mask.dim() > 2 else named


def _is_deberta(base: PreTrainedModel) -> bool:
    """Whether the encoder is a DeBERTa, of any version."""
    return base.config.model_type in {"deberta", "deberta-v2"}
