"""Predictions of a classifier over tokenised rows."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang.assembly.end_task import encoder_inputs
from aang.corpora.tokens import TokenRows
from aang.modeling import TextModel
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import to_device


class Classifier(nn.Module):
    """Body and end task's head as one: from the encoder's keyword arguments to logits."""

    def __init__(self, model: TextModel) -> None:
        super().__init__()
        self.body, self.head = model.body, model.classifier

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(**inputs))
        return logits


@torch.inference_mode()
def predict(
    classifier: nn.Module,
    rows: TokenRows,
    *,
    batch_size: int = 64,
    processes: Processes = ALONE,
    part: Tensor | None = None,
) -> Tensor:
    """Apply a classifier to rows; it stays in evaluation mode afterwards.

    Batches contain rows of similar length, so that there is little padding.

    Args:
        classifier: a module from the encoder's keyword arguments to logits ``[B, C]``, or
            ``[B, T, C]`` of tokens.
        rows: tokenised rows.
        batch_size: rows per batch.
        processes: the processes that share the batches.
        part: indices of the rows to predict, int64 ``[N]``; None predicts all of them.

    Returns:
        Logits ``[N, C]`` or ``[N, T, C]`` on the CPU, in the order of ``rows`` or of ``part``, in
        every process; T is the longest row's, and padding has zeros.
    """
    classifier.eval()
    like = next(classifier.parameters())
    part = torch.arange(len(rows)) if part is None else part
    batches = torch.argsort(rows.lengths[part], stable=True).split(batch_size)
    own: list[tuple[Tensor, Tensor]] = []
    for indices in batches[processes.rank :: processes.size]:
        padded = rows.rows(part[indices])
        inputs = encoder_inputs(padded, padded.real)
        moved = {n: to_device(t, like.device) for n, t in inputs.items()}
        own.append((to_device(indices, like.device), classifier(**moved)))
    # A process without a batch does not know how many dimensions the others found.
    sizes = [
        max((found.shape[dim] for _, found in own if found.dim() > dim), default=0)
        for dim in (1, 2)
    ]
    shape = [size for size in map(processes.largest, sizes) if size]
    logits = torch.zeros(len(part), *shape, dtype=like.dtype, device=like.device)
    for indices, found in own:
        missing = [(0, most - size) for size, most in zip(found.shape[1:], shape, strict=True)]
        widths = [width for pair in reversed(missing) for width in pair]
        logits[indices] = functional.pad(found.to(like.dtype), widths)
    return processes.sum([logits])[0].cpu()
