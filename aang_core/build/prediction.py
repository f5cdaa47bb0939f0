"""Predictions of a classifier over tokenised rows."""

import torch
from torch import Tensor, nn

from aang_core.build.end_task import encoder_inputs
from aang_core.corpora.tokens import TokenRows


@torch.inference_mode()
def predict(body: nn.Module, head: nn.Module, rows: TokenRows, *, batch_size: int = 64) -> Tensor:
    """Logits ``[N, C]`` on the CPU, in the rows' own order, in evaluation mode.

    Rows are taken by length, so that a batch is padded little.
    """
    device = next(body.parameters()).device
    was_training = body.training, head.training
    body.eval()
    head.eval()
    by_length = torch.argsort(rows.lengths, stable=True)
    logits = []
    for indices in by_length.split(batch_size):
        padded = rows.rows(indices)
        inputs = encoder_inputs(padded, padded.ids, padded.real)
        logits.append(head(body(**{name: t.to(device) for name, t in inputs.items()})).cpu())
    body.train(was_training[0])
    head.train(was_training[1])
    return torch.cat(logits)[torch.argsort(by_length)]
