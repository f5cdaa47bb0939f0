"""Predictions of a classifier over tokenised rows."""

import torch
from torch import Tensor, nn

from aang_core.build.end_task import encoder_inputs
from aang_core.corpora.tokens import TokenRows


class Classifier(nn.Module):
    """Body and head as one: the encoder's keyword arguments → logits ``[B, C]``."""

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(**inputs))
        return logits


@torch.inference_mode()
def predict(classifier: nn.Module, rows: TokenRows, *, batch_size: int = 64) -> Tensor:
    """Logits ``[N, C]`` on the CPU, in the rows' own order; leaves ``classifier`` in eval mode.

    Rows are taken by length, so that a batch is padded little.
    """
    classifier.eval()
    device = next(classifier.parameters()).device
    by_length = torch.argsort(rows.lengths, stable=True)
    logits = []
    for indices in by_length.split(batch_size):
        padded = rows.rows(indices)
        inputs = encoder_inputs(padded, padded.ids, padded.real)
        logits.append(classifier(**{name: t.to(device) for name, t in inputs.items()}).cpu())
    return torch.cat(logits)[torch.argsort(by_length)]
