"""Predictions of a classifier over tokenised rows."""

import torch
from torch import Tensor, nn

from aang_core.assembly.end_task import encoder_inputs
from aang_core.corpora.tokens import TokenRows
from aang_core.tasks.processes import ALONE, Processes


class Classifier(nn.Module):
    """Body and head as one: the encoder's keyword arguments → logits ``[B, C]``."""

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(**inputs))
        return logits


def part_of(rows: int, count: int, seed: int) -> Tensor:
    """Draw ``count`` of the indices below ``rows``, or all if there are fewer.

    With the same seed, a larger part contains every smaller one.

    Returns:
        The indices, int64, ascending.
    """
    drawn = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:count]
    return drawn.sort().values


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
        classifier: a module from the encoder's keyword arguments to logits ``[B, C]``.
        rows: tokenised rows.
        batch_size: rows per batch.
        processes: the processes that share the batches.
        part: indices of the rows to predict, int64 ``[N]``; None predicts all of them.

    Returns:
        Logits ``[N, C]`` on the CPU, in the order of ``rows`` or of ``part``, in every process.
    """
    classifier.eval()
    like = next(classifier.parameters())
    part = torch.arange(len(rows)) if part is None else part
    batches = torch.argsort(rows.lengths[part], stable=True).split(batch_size)
    own: list[tuple[Tensor, Tensor]] = []
    for indices in batches[processes.rank :: processes.size]:
        padded = rows.rows(part[indices])
        inputs = encoder_inputs(padded, padded.ids, padded.real)
        own.append((indices, classifier(**{n: t.to(like.device) for n, t in inputs.items()})))
    classes = processes.largest(own[0][1].shape[1] if own else 0)
    logits = torch.zeros(len(part), classes, dtype=like.dtype, device=like.device)
    for indices, part in own:
        logits[indices.to(like.device)] = part
    return processes.sum([logits])[0].cpu()
