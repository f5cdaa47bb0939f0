"""Forward passes through the body and a head, for all engines."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core.gradients.loss_scale import LossScale
from aang_core.tasks.task import Batch, RowLosses, Task

Precision = Literal["fp32", "bf16", "fp16"]

_TYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Passes:
    """Forward passes in a given precision.

    Args:
        body: the module that all tasks share.
        precision: of forward passes; parameters, their gradients and the dev head stay in the
            parameters' own precision.

    Attributes:
        scale: factor on the losses; their gradients must be divided by it.
    """

    def __init__(self, body: nn.Module, precision: Precision) -> None:
        self.body = body
        self.scale = LossScale(moves=precision == "fp16")
        self._type = _TYPES[precision]

    def features(self, batch: Batch) -> Tensor:
        """The body's features of a batch."""
        with self.autocast():
            features: Tensor = self.body(**batch.inputs)
            return features

    def losses(self, task: Task, head: nn.Module, features: Tensor, batch: Batch) -> RowLosses:
        """Losses of a batch's rows through ``head``, with a scaled gradient."""
        with self.autocast():
            return self.scale.on(task.losses(head, features, batch.targets))

    def dev_features(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Features to fit the dev head on: detached, in the parameters' precision."""
        dtype = next(self.body.parameters()).dtype
        return [f.detach().to(dtype) for f in features]

    def trained(self) -> list[nn.Parameter]:
        """θ: the trained parameters of the body."""
        return [p for p in self.body.parameters() if p.requires_grad]

    def autocast(self) -> torch.autocast:
        """The autocast context of forward passes."""
        device = next(self.body.parameters()).device.type
        return torch.autocast(device, self._type, enabled=self._type is not None)


def joined(features: Sequence[Tensor]) -> Tensor:
    """Concatenate the features of several batches.

    Args:
        features: ``[B, T, ...]`` each; T may differ between them, or be missing.

    Returns:
        ``[sum of B, longest T, ...]``, padded with zeros.
    """
    if len(features) == 1:
        return features[0]
    if len({part.shape[1:] for part in features}) == 1:
        return torch.cat(list(features))
    longest = max(part.shape[1] for part in features)
    widths = [(0, 0) * (part.dim() - 2) + (0, longest - part.shape[1]) for part in features]
    return torch.cat(
        [functional.pad(part, width) for part, width in zip(features, widths, strict=True)]
    )
