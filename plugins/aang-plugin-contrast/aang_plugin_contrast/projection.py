"""What both contrasts compare: the first token of each row, projected, on the unit sphere."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class Projection(nn.Module):
    """Hidden states ``[B, T, H]`` → the first token's, projected: ``[B, P]``.

    Args:
        hidden_size: H.
        size: P; 0 leaves the first token unchanged.
        activation: applied to the projection, such as tanh.
    """

    def __init__(self, hidden_size: int, size: int, activation: nn.Module | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden_size, size) if size else nn.Identity()
        self.activation = activation or nn.Identity()

    def forward(self, hidden: Tensor) -> Tensor:
        projected: Tensor = self.activation(self.linear(hidden[:, 0]))
        return projected


def similarities(head: nn.Module, hidden: Tensor, temperature: float) -> Tensor:
    """Cosines of all pairs of rows, divided by ``temperature``: ``[B, B]``.

    Computed at least in single precision: with a temperature of 0.1, the rounding of a cosine in
    bfloat16 changes the input of the softmax by hundredths.
    """
    projected = head(hidden)
    projected = projected.to(torch.promote_types(projected.dtype, torch.float32))
    with torch.autocast(projected.device.type, enabled=False):
        unit = normalize(projected, dim=1)
        return unit @ unit.T / temperature
