"""Tasks so small that where they lead is known: each pulls two numbers towards a point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from aang_core import Batch, RowLosses, TaskCard
from aang_core.gradients import EndTaskHead, StreamEngine
from aang_core.training.bench import TrainingBench
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.step_rows import RowBudget


class Point(nn.Module):
    """θ, two numbers, the same for every row."""

    def __init__(self) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([4.0, -4.0], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.theta.expand(len(x), 2)


@dataclass
class Pull:
    """½‖θ − centre‖² for every row."""

    name: str
    centre: tuple[float, float]
    factors: Mapping[str, str] = field(default_factory=dict)
    head: nn.Module = field(default_factory=nn.Identity)
    lengths: None = None

    def __len__(self) -> int:
        return 4

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        return Batch({"x": rows.double()}, {}, len(rows))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        distance = head(features) - torch.tensor(self.centre, dtype=torch.float64)
        losses = 0.5 * distance.square().sum(dim=1)
        return RowLosses(losses, torch.ones_like(losses))


@dataclass
class Problem:
    """A bench whose dev score is −‖θ − centre of the end task‖, and the cards of its tasks."""

    body: Point
    bench: TrainingBench
    end: TaskCard
    auxiliaries: list[TaskCard]


def problem(auxiliaries: Sequence[Pull], *, seed: int = 0, steps: int = 1000) -> Problem:
    """The end task wants the origin; steps are plain gradient descent at a rate of 0.1."""
    body, end = Point(), Pull("end", (0.0, 0.0))
    settings = OptimizerSettings(
        lr=0.1,
        head_lr=0.1,
        weight_decay=0.0,
        warmup=0.0,
        max_grad_norm=1e9,
        optimizer="sgd",
        momentum=0.0,
        schedule="constant",
    )
    bench = TrainingBench(
        body,
        end,
        end,
        auxiliaries,
        engine=StreamEngine(body, EndTaskHead()),
        optimization=Optimization(body, [], settings, steps=steps),
        budget=RowBudget(end_task=2, dev=4, auxiliary=4),
        generator=torch.Generator().manual_seed(seed),
        score=lambda rows: -body.theta.detach().norm().item(),
    )
    cards = [TaskCard(task.name, task.factors) for task in auxiliaries]
    return Problem(body, bench, TaskCard("end"), cards)
