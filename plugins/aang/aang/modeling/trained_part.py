"""Which part of an encoder is trained, where a plug-in has chosen it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn
from transformers import PreTrainedModel

if TYPE_CHECKING:
    from aang.modeling.body import EncoderBody
    from aang.modeling.heads import TransformersHead


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
        """Save what is only this part's, for those who have the encoder already.

        Args:
            folder: an empty folder.
            head: the end task's head.
        """


def part_in_words(body: "EncoderBody", parts: Sequence[TrainedPart]) -> str | None:
    """A sentence about what of the encoder is trained; None if all of it is."""
    if not parts:
        return None
    parameters = list(body.parameters())
    trained = sum(p.numel() for p in parameters if p.requires_grad)
    total = sum(p.numel() for p in parameters)
    said = "; ".join(part.said for part in parts)
    return f"{said}: {trained:,} of {total:,} parameters of the encoder are trained"


def layers_of(body: "EncoderBody") -> nn.ModuleList | None:
    """The layers of an encoder; None if it does not have them in one list."""
    wanted = getattr(body.base.config, "num_hidden_layers", None)
    for module in body.modules():
        if isinstance(module, nn.ModuleList) and len(module) == wanted:
            return module
    return None
