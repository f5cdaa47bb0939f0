"""Your own modules and losses under any weighter.

    python examples/plain_pytorch.py static

The end task has few rows: is a point inside the ring? Two helpers have many: the point's distance
from the centre, which matters for the answer, and a random colour, which does not.
"""

import sys
from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from aang_core import OptimizerSettings, TensorTask, fit


def main(weighter: str = "static") -> None:
    """Train under ``weighter`` and print the result."""
    torch.manual_seed(0)
    x = torch.rand(3000, 2) * 4 - 2
    radius = x.norm(dim=1, keepdim=True)
    inside = ((radius > 0.8) & (radius < 1.4)).long().squeeze(1)
    colour = torch.randint(2, (3000,))
    body = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
    head = nn.Linear(32, 2)
    by_row = partial(cross_entropy, reduction="none")

    def distance(predicted: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return mse_loss(predicted, wanted, reduction="none").squeeze(1)

    def rows(first: int, last: int) -> dict[str, torch.Tensor]:
        return {"input": x[first:last]}  # what the body's forward is called with

    @torch.no_grad()
    def score(first: int, last: int) -> dict[str, float]:
        predicted = head(body(x[first:last])).argmax(dim=1)
        return {"accuracy": (predicted == inside[first:last]).float().mean().item()}

    result = fit(
        body,
        TensorTask("inside", head, rows(0, 60), inside[:60], by_row),
        [
            TensorTask("radius", nn.Linear(32, 1), rows(160, 1500), radius[160:1500], distance),
            TensorTask("colour", nn.Linear(32, 2), rows(160, 1500), colour[160:1500], by_row),
        ],
        dev=TensorTask("inside", head, rows(60, 160), inside[60:160], by_row),
        evaluate=lambda: score(60, 160),
        weighter=weighter,
        optimizer=OptimizerSettings(lr=1e-2, head_lr=1e-2),
        steps=1500,
        patience=20,
    )
    print(f"{weighter}: test accuracy {score(1500, 3000)['accuracy']:.3f}, {result.weights}")


if __name__ == "__main__":
    main(*sys.argv[1:])
