"""Other implementations of the same signals: the arithmetic of AANG's released code, and torchjd.

``published`` is written from the description of that code, not from the code itself. What makes it
expensive: the dev head is fitted with ten passes through the body; the shared base is a masked-LM
model, so every pass, those of classification included, computes vocabulary logits at every token;
each objective's gradient is one call of autograd over the graph of all rows that it shares with the
objectives of the same data, transform and representation; and the gradients are kept as lists.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients import FreshDevHead, Segment
from aang_core.gradients.passes import Precision
from aang_core.tasks.task import Batch, Task
from benchmarks.steps.ours import Way
from benchmarks.steps.setting import StepInputs

DEV_HEAD_SHARE = 4
"""The dev head is fitted on 32 of 128 rows; scaled down, on a quarter of them."""

DEV_HEAD_PASSES = 10


def published(step: StepInputs, precision: Precision) -> Way:
    """The arithmetic of the authors' released step."""
    if precision != "fp32":
        raise ValueError("the released step is compared in fp32 only")
    base = _MaskedLanguageModel(step)

    def way() -> object:
        body = list(step.model.body.parameters())
        probe = _fitted_dev_head(step, base)
        hidden, _ = base(step.dev)
        v = _gradients(_loss(step.end.task, probe, hidden, step.dev), body)
        gradients: list[list[Tensor]] = []
        for group in _groups(step):
            gradients += _group_gradients(base, group, body)
        hidden, _ = base(step.end.batches[0])
        end = step.end.task
        gradients.append(_gradients(_loss(end, end.head, hidden, step.end.batches[0]), body))
        segments = [*step.auxiliaries, step.end]
        for i, parameter in enumerate(body):
            parameter.grad = sum(
                (s.coefficient * g[i] for s, g in zip(segments, gradients, strict=True)),
                torch.zeros_like(parameter),
            )
        return [_cosine(g, v) for g in gradients]

    return way


class _MaskedLanguageModel(nn.Module):
    """The shared base: hidden states, and vocabulary logits at every token whether used or not."""

    def __init__(self, step: StepInputs) -> None:
        super().__init__()
        self.body = step.model.body
        self.head = step.model.heads.language_model()

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        hidden: Tensor = self.body(**batch.inputs)
        return hidden, self.head(hidden.flatten(0, 1))


def _fitted_dev_head(step: StepInputs, base: nn.Module) -> nn.Module:
    """Ten iterations on a few rows, each with its own pass through the fixed base."""
    batch = step.end.batches[0]
    few = batch.rows // DEV_HEAD_SHARE
    rows = Batch(_first(batch.inputs, few), _first(batch.targets, few), few)
    fitting = FreshDevHead(torch.Generator().manual_seed(0), iterations=1)
    probe: nn.Module | None = None
    for _ in range(DEV_HEAD_PASSES):
        with torch.no_grad():
            hidden, _ = base(rows)
        probe = fitting.fit(step.end.task, [hidden], [rows])
    assert probe is not None
    return probe


def _first(tensors: Mapping[str, Tensor], rows: int) -> dict[str, Tensor]:
    return {name: value[:rows] for name, value in tensors.items()}


def _groups(step: StepInputs) -> list[list[Segment]]:
    groups: dict[tuple[str, str], list[Segment]] = defaultdict(list)
    for objective, segment in zip(step.objectives, step.auxiliaries, strict=True):
        groups[objective.rows_of].append(segment)
    return list(groups.values())


def _group_gradients(
    base: nn.Module, group: Sequence[Segment], body: Sequence[nn.Parameter]
) -> list[list[Tensor]]:
    """One pass over the group's rows, one gradient over its whole graph for each objective."""
    batches = [s.batches[0] for s in group]
    inputs = {name: torch.cat([b.inputs[name] for b in batches]) for name in batches[0].inputs}
    rows = sum(b.rows for b in batches)
    hidden, _ = base(Batch(inputs, {}, rows))
    gradients, start = [], 0
    for segment, batch in zip(group, batches, strict=True):
        part = hidden[start : start + batch.rows]
        loss = _loss(segment.task, segment.task.head, part, batch)
        gradients.append(_gradients(loss, body, retain=segment is not group[-1]))
        start += batch.rows
    return gradients


def _loss(task: Task, head: nn.Module, hidden: Tensor, batch: Batch) -> Tensor:
    return task.losses(head, hidden, batch.targets).mean()


def _gradients(
    loss: Tensor, parameters: Sequence[nn.Parameter], *, retain: bool = False
) -> list[Tensor]:
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=retain)
    return [
        torch.zeros_like(p) if g is None else g for p, g in zip(parameters, gradients, strict=True)
    ]


def _cosine(gradients: Sequence[Tensor], v: Sequence[Tensor]) -> Tensor:
    dot = sum(((g * w).sum() for g, w in zip(gradients, v, strict=True)), torch.zeros(()))
    norm = sum((g.square().sum() for g in gradients), torch.zeros(())).sqrt()
    return dot / (norm * sum((w.square().sum() for w in v), torch.zeros(())).sqrt())


def torchjd(step: StepInputs, precision: Precision) -> Way:
    """The Jacobian of all losses over the body, by torchjd's public ``jac``, one row at a time."""
    from torchjd.autojac import jac  # an optional dependency of the benchmarks

    if precision != "fp32":
        raise ValueError("torchjd is compared in fp32 only")
    fitting = FreshDevHead(torch.Generator().manual_seed(0))

    def way() -> object:
        segments = [*step.auxiliaries, step.end]
        batches = [step.dev, *(s.batches[0] for s in segments)]
        model = step.model
        hidden = model.body(**model.body.pack([b.inputs for b in batches]))
        parts = hidden.split([b.rows for b in batches])
        probe = fitting.fit(step.end.task, [parts[-1].detach()], step.end.batches)
        tasks = [(step.end.task, probe), *((s.task, s.task.head) for s in segments)]
        losses = [
            _loss(task, head, part, batch)
            for (task, head), part, batch in zip(tasks, parts, batches, strict=True)
        ]
        body = list(model.body.parameters())
        rows = jac(losses, body, parallel_chunk_size=1)
        weights = torch.tensor([s.coefficient for s in segments])
        for parameter, jacobian in zip(body, rows, strict=True):
            parameter.grad = torch.tensordot(weights, jacobian[1:], dims=1)
        flat = torch.cat([jacobian.flatten(1) for jacobian in rows], dim=1)
        return nn.functional.cosine_similarity(flat[1:], flat[:1])

    return way
