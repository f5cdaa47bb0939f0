"""Steps of several tasks on tiny real encoders, and what torch.autograd makes of them."""

import functools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import Batch, RowLosses, Task
from tests.core.encoders import VOCABULARY, tiny_text_model
from tests.support.gradients import Segment
from tests.support.model import TextModel

CLASSES = 3


@dataclass
class Classify(Task):
    """Classification by the first token, under any head of that kind."""

    head: nn.Module
    name: str = "end-task"
    factors: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return 0

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        raise NotImplementedError("the batches of these tests are made by hand")

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = functional.cross_entropy(head(features), targets["labels"], reduction="none")
        return RowLosses(losses, torch.ones_like(losses))


class Denoise(Classify):
    """Denoising of the selected tokens, of which a row may have none."""

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        row, position = targets["selected"].nonzero(as_tuple=True)
        logits = head(features[row, position])
        losses = functional.cross_entropy(logits, targets["ids"][row, position], reduction="none")
        sums = losses.new_zeros(len(features)).index_add(0, row, losses)
        return RowLosses(sums, targets["selected"].sum(dim=1))


@functools.cache
def tiny_model(
    architecture: str,
    tied: bool,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> TextModel:
    """A tiny encoder, made once; tests that change it must restore it."""
    with tempfile.TemporaryDirectory() as folder:
        return tiny_text_model(
            Path(folder),
            tied=tied,
            architecture=architecture,
            dropout=dropout,
            dtype=dtype,
            classes=CLASSES,
            **options,
        )


def text_batch(
    rows: int, tokens: int, generator: torch.Generator, *, kind: str = "all", selected: float = 0.3
) -> Batch:
    """Random rows, the first of which is padded.

    kind: who sees whom: ``"all"``, ``"before"``, or ``"random"`` pairs.
    selected: share of the tokens that are to be denoised.
    """
    ids = torch.randint(3, VOCABULARY, (rows, tokens), generator=generator)
    real = torch.ones_like(ids, dtype=torch.bool)
    real[0, max(2, tokens - 2) :] = False
    ids[~real] = 0
    attention = real
    if kind != "all":
        square = torch.ones(rows, tokens, tokens, dtype=torch.bool)
        if kind == "before":
            square = square.tril()
        else:
            square = torch.rand(square.shape, generator=generator) < 0.5
            square |= torch.eye(tokens, dtype=torch.bool)
        attention = square & real.unsqueeze(1)
    targets = {
        "labels": torch.randint(CLASSES, (rows,), generator=generator),
        "ids": torch.randint(VOCABULARY, ids.shape, generator=generator),
        "selected": (torch.rand(ids.shape, generator=generator) < selected) & real,
    }
    return Batch({"input_ids": ids, "attention_mask": attention}, targets, rows)


@dataclass
class Step:
    """One step's segments; dev rows are the end task's."""

    body: nn.Module
    end: Segment
    auxiliaries: list[Segment]
    dev: list[Batch]

    @property
    def segments(self) -> list[Segment]:
        return [*self.auxiliaries, self.end]

    @property
    def parameters(self) -> list[nn.Parameter]:
        modules = [self.body, *(s.task.head for s in self.segments)]
        return list(dict.fromkeys(p for m in modules for p in m.parameters() if p.requires_grad))

    @property
    def of_body(self) -> list[nn.Parameter]:
        return [p for p in self.body.parameters() if p.requires_grad]

    def clear(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


@dataclass
class Expected:
    """What torch.autograd says: by task, and the gradient of every trained parameter."""

    dot: dict[str, float]
    norm: dict[str, float]
    auxiliary_dot: float
    auxiliary_norm: float
    dev_norm: float
    gradients: list[Tensor | None]


def oracle(step: Step, probe: nn.Module) -> Expected:
    """Every task's gradient taken whole, by one call of torch.autograd.grad each."""
    v = _flat(_loss(step.body, step.end.task, probe, step.dev), step.of_body)
    losses = {s.task.name: _loss(step.body, s.task, s.task.head, s.batches) for s in step.segments}
    g = {name: _flat(loss, step.of_body) for name, loss in losses.items()}
    weight = sum(s.coefficient for s in step.auxiliaries) or 1.0
    mixed = sum((s.coefficient * g[s.task.name] for s in step.auxiliaries), torch.zeros_like(v))
    total = sum((s.coefficient * losses[s.task.name] for s in step.segments), torch.zeros(()))
    return Expected(
        dot={name: float(gradient @ v) for name, gradient in g.items()},
        norm={name: float(gradient.norm()) for name, gradient in g.items()},
        auxiliary_dot=float(mixed @ v) / weight,
        auxiliary_norm=float(mixed.norm()) / weight,
        dev_norm=float(v.norm()),
        gradients=list(torch.autograd.grad(total, step.parameters, allow_unused=True)),
    )


def _loss(body: nn.Module, task: Task, head: nn.Module, batches: Sequence[Batch]) -> Tensor:
    parts = [task.losses(head, body(**batch.inputs), batch.targets) for batch in batches]
    count = sum(int(p.counts.sum()) for p in parts)
    return torch.cat([p.sums for p in parts]).sum() / max(count, 1)


def _flat(loss: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return torch.cat(
        [
            (torch.zeros_like(p) if g is None else g).flatten()
            for p, g in zip(parameters, gradients, strict=True)
        ]
    )
