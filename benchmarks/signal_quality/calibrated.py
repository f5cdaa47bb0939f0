"""A head whose logits are divided by the temperature that suits dev rows best."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from aang_core.tasks.task import Batch, RowLosses, Task

_ITERATIONS = 30

_LEAST = 1e-3
"""Lower bound of the inverse temperature. Logits worse than chance would need zero or less."""


class Calibrated(nn.Module):
    """Logits of ``head``, divided by a temperature.

    An overconfident head makes the loss on dev rise even while it makes fewer mistakes. At the best
    temperature for dev, that loss no longer changes with confidence alone, because its derivative
    with respect to the temperature is zero there.

    Args:
        head: computes logits.
        inverse: the inverse temperature; 1 changes nothing.
    """

    def __init__(self, head: nn.Module, inverse: float | Tensor) -> None:
        super().__init__()
        self.head = head
        self.inverse = inverse

    @property
    def temperature(self) -> float:
        """What logits are divided by."""
        return 1 / float(self.inverse)

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(features)
        return logits * self.inverse

    @classmethod
    @torch.no_grad()
    def of(
        cls, end_task: Task, head: nn.Module, features: Sequence[Tensor], batches: Sequence[Batch]
    ) -> "Calibrated":
        """The head with the temperature that minimises the end task's mean loss on rows.

        The loss of a classifier is convex in the inverse temperature (Guo et al., On Calibration of
        Modern Neural Networks, ICML 2017), so L-BFGS finds the best one.

        Args:
            end_task: the end task, whose loss is a cross-entropy.
            head: computes logits.
            features: the body's features of each batch.
            batches: labelled rows.
        """
        logits = [head(f).float() for f in features]
        inverse = torch.ones((), device=logits[0].device, requires_grad=True)
        scaled = cls(nn.Identity(), inverse)
        optimizer = torch.optim.LBFGS(
            [inverse], max_iter=_ITERATIONS, line_search_fn="strong_wolfe"
        )

        @torch.enable_grad()
        def loss() -> Tensor:
            optimizer.zero_grad()
            parts = [
                end_task.losses(scaled, found, batch.targets)
                for found, batch in zip(logits, batches, strict=True)
            ]
            mean = RowLosses.pool(parts).mean()
            mean.backward()
            return mean

        optimizer.step(loss)
        return cls(head, max(float(inverse.detach()), _LEAST))
