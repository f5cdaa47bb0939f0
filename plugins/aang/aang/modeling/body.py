"""The shared encoder: token ids and who sees whom → hidden states; rows of several tasks packed."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from aang.modeling.attention_masks import attention_masks, is_deberta, take_masks
from aang_core.errors import ModelError
from aang_core.gradients.packing import CannotPackError


class EncoderBody(nn.Module):
    """θ, the parameters that all tasks share: a transformers encoder without its pooler.

    Args:
        base: the encoder.

    Raises:
        ModelError: the encoder cannot keep to a mask of which tokens each token may attend to.
    """

    def __init__(self, base: PreTrainedModel) -> None:
        super().__init__()
        take_masks(base)
        self.base = base

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        """Hidden states ``[B, T, H]`` of token ids ``[B, T]``.

        Args:
            input_ids: ``[B, T]`` int64.
            attention_mask: ``[B, T]`` bool, the real tokens, or ``[B, T, T]`` bool, which tokens
                each token may attend to.
            **inputs: further arguments of the encoder, such as token types.
        """
        mask: Any = attention_mask
        if attention_mask.dim() == 2 and attention_mask.device.type != "cpu":
            # Transformers looks into such a mask, to leave it out where no token is padding, and
            # the host would wait for the device in every pass.
            attention_mask = attention_mask.unsqueeze(1).expand(-1, attention_mask.shape[1], -1)
        if attention_mask.dim() == 3:
            mask = attention_masks(self.base, attention_mask)
        output = self.base(input_ids=input_ids, attention_mask=mask, **inputs)
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
        if is_deberta(self.base):
            raise CannotPackError(
                "DeBERTa computes its relative positions once for all rows, so their gradient "
                "cannot be split by row"
            )
        tokens = max(part["input_ids"].shape[1] for part in inputs)
        three = any(part["attention_mask"].dim() == 3 for part in inputs)
        names = dict.fromkeys(name for part in inputs for name in part)
        return {
            name: torch.cat([_widened(part[name], tokens, three) for part in inputs])
            for name in names
        }

    def unpack(self, features: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Hidden states of one batch's rows, cut to its own number of tokens."""
        return features[:, : inputs["input_ids"].shape[1]]


def _widened(values: Tensor, tokens: int, three: bool) -> Tensor:
    """Pad with zeros, which mean padding in a mask and are masked elsewhere.

    Args:
        values: ``[B, T, ...]``.
        tokens: the width to pad to.
        three: whether to turn masks ``[B, T]`` into ``[B, T, T]``.
    """
    missing = tokens - values.shape[1]
    if values.dim() == 2 and values.dtype == torch.bool and three:
        values = values.unsqueeze(1).expand(-1, values.shape[1], -1)
    if missing == 0:
        return values
    return functional.pad(values, (0, missing) * (values.dim() - 1))
