"""Trains on rows that every process has drawn for itself; started by torchrun."""

import os

import torch
from torch import nn

from aang_core import TensorTask, fit


def main() -> None:
    torch.manual_seed(int(os.environ["RANK"]))
    inputs = torch.randn(20, 4)
    loss = nn.CrossEntropyLoss(reduction="none")
    labels = (inputs[:, 0] > 0).long()
    task = TensorTask("sign", nn.Linear(8, 2), {"input": inputs}, labels, loss)
    fit(
        nn.Linear(4, 8),
        task,
        [],
        dev=task,
        evaluate=lambda: {"accuracy": 0.5},
        weighter="single-task",
        steps=2,
    )


if __name__ == "__main__":
    main()
